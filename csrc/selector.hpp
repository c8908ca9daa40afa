// The rule that picks the next pair of variables. A new rule is one file that registers it; nothing else names it.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

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

// The group in which m - M is largest, its extremes, and the stopping test; shared by all rules but wss2's.
struct Violation {
  int group = 0;
  Extreme top, bottom;
  double gap = 0.0;  // -infinity where a side is empty
};
Violation widest_violation(const State& state);

// A number that users give to rules. Rules that read the same number name the same object.
struct Number {
  const char* name;
  const char* label;    // in reports
  const char* meaning;  // in help
  double initial;
  double low, high;  // it lies strictly between
};

inline constexpr Number kSigma{"sigma", "sigma", "smallest share of the largest violation that a pair may have",
                               0.5,     0.0,     1.0};

struct SelectorSpec {
  std::string name = "wss2";
  std::map<std::string, double> numbers;  // by name; those left out have their initial value
  std::optional<std::uint64_t> seed;      // empty: the operating system's entropy
};

// What a selector is made from.
struct Setup {
  const SelectorSpec& spec;
  Index size;  // variables of the problem

  double operator[](const Number& number) const {
    const auto given = spec.numbers.find(number.name);
    return given == spec.numbers.end() ? number.initial : given->second;
  }
};

// All that is known of a rule.
struct Rule {
  const char* name;
  const char* label;  // what it does, in a few words
  int year;           // of its publication; rules are listed in this order
  std::unique_ptr<Selector> (*make)(const Setup&);
  const Number* numbers[5] = {};   // that it reads, four at the most; null after the last
  bool random = false;             // draws, and so needs a seed to be repeatable
  bool once_only = false;          // takes a pair or a variable once, and so may end `exhausted`
  bool as_libsvm = false;          // takes LIBSVM's pairs, to the bit; listed first
  bool decomposition = false;      // may be made anew for each round of `solve_linear`
  const Number* budget = nullptr;  // that its paper calls a privacy budget,
  const char* caveat = "";         // and why it is none: a sentence that begins after the number
};

template <typename S>
std::unique_ptr<Selector> make(const Setup& setup) {
  return std::make_unique<S>(setup);
}

// A rule's file holds one of these for it, at namespace scope. They are linked while the program is loaded, and only
// read from then on.
struct Registered {
  explicit Registered(const Rule& rule);

  const Rule rule;
  Registered* next = nullptr;
};

std::vector<const Rule*> rules();

// Throws InvalidInput for a name that no rule has.
const Rule& rule_named(const std::string& name);

// Throws InvalidInput for an unknown name, or a number of the rule out of its range.
std::unique_ptr<Selector> make_selector(const SelectorSpec& spec, Index size);

}  // namespace dpsvm
