// Random numbers that belong to one solve: repeatable from a seed, or seeded by the operating system.
#pragma once

#include <array>
#include <optional>

#include "types.hpp"

namespace dpsvm {

// xoshiro256++ (Blackman and Vigna 2021), its state filled by splitmix64.
class Random {
 public:
  explicit Random(std::optional<std::uint64_t> seed);

  std::uint64_t bits();
  double uniform();      // in [0, 1), 53 bits
  Index below(Index n);  // uniform on 0 .. n-1, without bias; n > 0

 private:
  std::array<std::uint64_t, 4> state_;
};

// The seed of problem k of a fit seeded with `seed`: independent streams whatever the order of solution.
std::uint64_t derived_seed(std::uint64_t seed, Index k);

}  // namespace dpsvm
