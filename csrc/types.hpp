// The words every other file uses.
#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>

namespace dpsvm {

using Index = std::ptrdiff_t;

// Input the caller can correct; the binding turns it into ValueError.
struct InvalidInput : std::invalid_argument {
  using std::invalid_argument::invalid_argument;
};

enum class StopReason {
  stationary,  // the violation of optimality is below the tolerance
  exhausted,   // a once-only selector has no pair left
  stalled,     // steps no longer do what they promise (descent.hpp)
  max_iter,
  time_limit,
  cancelled,  // the monitor asked for it
};

}  // namespace dpsvm
