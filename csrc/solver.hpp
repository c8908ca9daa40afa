// Sequential minimal optimisation.
#pragma once

#include <algorithm>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "problem.hpp"
#include "qmatrix.hpp"
#include "selector.hpp"
#include "watch.hpp"

namespace dpsvm {

// Where the solver stood after an iteration.
struct TracePoint {
  std::int64_t iteration;
  double gap;        // m - M over the active variables, when the pair was selected
  double objective;  // followed through the steps, not summed anew
  Index active;      // variables not shrunk
};

struct SolverOptions {
  double tol = 1e-3;  // stop when m - M is below
  bool shrinking = true;
  bool semidefinite = false;     // the kernel has no negative eigenvalues, rounding apart
  std::int64_t max_iter = -1;    // -1: no limit
  std::int64_t trace_every = 0;  // call `trace` after the first and every so many iterations; 0: never
  std::function<void(const TracePoint&)> trace;
  ThreadPool* pool = nullptr;  // threads that may share the passes over all variables
};

// Iterations after which LIBSVM gives up on so many variables.
inline std::int64_t libsvm_cap(Index variables) { return std::max<std::int64_t>(10'000'000, 100 * variables); }

inline constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

struct SolverResult {
  std::vector<double> alpha;  // [size] in the problem's order
  double rho = kUnknown;      // offset: the decision is sum of y a K - rho
  double r = kUnknown;        // nu machines: half the sum of the two groups' offsets; NaN for the others
  double objective = kUnknown;
  double gap = kUnknown;    // m - M over all variables
  double range = kUnknown;  // of sum of y a K over the samples
  std::int64_t iterations = 0;
  std::int64_t draws = 0;  // randomised selections
  StopReason stop_reason = StopReason::stationary;
  std::string marks;  // see Progress
};

[[noreturn]] void throw_overflow();

// rho, r, objective and gap where nothing is shrunk and State::top is current.
SolverResult result_at(const State& state);

// Requires a feasible problem.alpha and q over the problem's variables, in their order (q is reordered on the way).
// Ensures: alpha is feasible, and `stationary` only if gap < tol over all variables; throws InvalidInput where the
// gap overflows. A solve cancelled before its start
// was known has NaN for rho, r, objective and gap. Iterations and marks go on from those of progress.
SolverResult solve(const Problem& problem, QMatrix& q, Selector& selector, const SolverOptions& options, Watch& watch,
                   Progress progress);

}  // namespace dpsvm
