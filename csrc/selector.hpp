// The rule that picks the next pair of variables. A new rule is one class in one file and one line in selector.cpp.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "qmatrix.hpp"
#include "random.hpp"
#include "state.hpp"

namespace dpsvm {

struct Choice {
  enum class Kind { pair, stationary, exhausted } kind;
  Index i = -1, j = -1;  // i in I_up, j in I_low, of one group, v_i > v_j
  double gap = 0.0;      // m - M over the active variables
};

// Contract: `state.top` is current. `stationary` exactly when the gap over the active variables is below `tol`;
// `exhausted` when the rule has no pair left although the gap is not. A selector may remember earlier choices, by
// State::original.
class Selector {
 public:
  virtual ~Selector() = default;
  virtual Choice select(const State& state, QMatrix& q, double tol) = 0;

  // The j this rule would take now with this i of the group, `row` being i's kernel row; -1 if it cannot tell. A guess:
  // it decides only which rows are computed ahead.
  virtual Index partner(const State&, int /*group*/, Index /*i*/, Row /*row*/) const { return -1; }

  // Randomised selections made so far.
  virtual std::int64_t draws() const { return 0; }
};

struct SelectorSpec {
  std::string name = "wss2";
  double selection_epsilon = 1.0;     // dpwss
  double sigma = 0.5;                 // wss3, wss4, dpwss: the share of the largest violation a pair must reach
  std::optional<std::uint64_t> seed;  // empty: the operating system's entropy
};

// Throws InvalidInput for an unknown name or a parameter out of range.
std::unique_ptr<Selector> make_selector(const SelectorSpec& spec, Index size);

// The group in which m - M is largest, its extremes, and the stopping test; shared by all rules but wss2's.
struct Violation {
  int group = 0;
  Extreme top, bottom;
  double gap = 0.0;  // -infinity where a side is empty
};
Violation widest_violation(const State& state);

std::unique_ptr<Selector> make_wss1();
std::unique_ptr<Selector> make_wss2();
std::unique_ptr<Selector> make_wss3(double sigma, std::optional<std::uint64_t> seed);
std::unique_ptr<Selector> make_wss4(double sigma, std::optional<std::uint64_t> seed);
std::unique_ptr<Selector> make_wss_wr(Index size);
std::unique_ptr<Selector> make_dpwss(double selection_epsilon, double sigma, std::optional<std::uint64_t> seed,
                                     Index size);

}  // namespace dpsvm
