// Selections by violation alone: the maximal violating pair (Keerthi et al. 2001, WSS 1), and two that take any pair
// whose violation is at least a share sigma of the largest (Chen, Fan, Lin 2006, constant-factor WSS 3 and WSS 4), here
// drawn uniformly.
#include <cmath>

#include "selector.hpp"

namespace dpsvm {

namespace {

class Wss1 final : public Selector {
 public:
  explicit Wss1(const Setup&) {}

  Choice select(const State& s, QMatrix&, double tol) override {
    const Violation worst = widest_violation(s);
    if (worst.gap < tol) return {Choice::Kind::stationary, -1, -1, worst.gap};
    return {Choice::Kind::pair, worst.top.index, worst.bottom.index, worst.gap};
  }
};

// The active variables with `bit` whose v is at least (at most) a threshold.
std::vector<Index> at_least(const State& s, std::uint8_t bit, double threshold) {
  std::vector<Index> found;
  for (Index t = 0; t < s.active; ++t)
    if ((s.side[t] & bit) && s.v[t] >= threshold) found.push_back(t);
  return found;
}

std::vector<Index> at_most(const State& s, std::uint8_t bit, double threshold) {
  std::vector<Index> found;
  for (Index t = 0; t < s.active; ++t)
    if ((s.side[t] & bit) && s.v[t] <= threshold) found.push_back(t);
  return found;
}

class RandomSelector : public Selector {
 public:
  explicit RandomSelector(const Setup& setup) : sigma_(setup[kSigma]), random_(setup.spec.seed) {}

  std::int64_t draws() const override { return draws_; }

 protected:
  Index draw(const std::vector<Index>& from) { return from[random_.below(static_cast<Index>(from.size()))]; }

  double sigma_;
  Random random_;
  std::int64_t draws_ = 0;
};

// Uniform over the qualifying pairs, by rejection from the variables that occur in one. The maximal violating pair
// always qualifies where the gap is finite, so the sets are not empty and the loop ends.
class Wss3 final : public RandomSelector {
 public:
  using RandomSelector::RandomSelector;

  Choice select(const State& s, QMatrix&, double tol) override {
    const Violation worst = widest_violation(s);
    if (worst.gap < tol) return {Choice::Kind::stationary, -1, -1, worst.gap};
    if (std::isinf(worst.gap)) return {Choice::Kind::pair, worst.top.index, worst.bottom.index, worst.gap};
    const double needed = sigma_ * worst.gap;
    const auto ups = at_least(s, up_bit(worst.group), worst.bottom.value + needed);
    const auto lows = at_most(s, low_bit(worst.group), worst.top.value - needed);
    ++draws_;
    for (;;) {
      const Index i = draw(ups), j = draw(lows);
      if (s.v[i] - s.v[j] >= needed) return {Choice::Kind::pair, i, j, worst.gap};
    }
  }
};

class Wss4 final : public RandomSelector {
 public:
  using RandomSelector::RandomSelector;

  Choice select(const State& s, QMatrix&, double tol) override {
    const Violation worst = widest_violation(s);
    if (worst.gap < tol) return {Choice::Kind::stationary, -1, -1, worst.gap};
    if (std::isinf(worst.gap)) return {Choice::Kind::pair, worst.top.index, worst.bottom.index, worst.gap};
    const auto lows = at_most(s, low_bit(worst.group), worst.top.value - sigma_ * worst.gap);
    ++draws_;
    return {Choice::Kind::pair, worst.top.index, draw(lows), worst.gap};
  }
};

Rule drawn(const char* name, const char* label, decltype(Rule::make) make) {
  Rule rule{name, label, 2006, make, {&kSigma}};
  rule.random = true;
  return rule;
}

Registered wss1({"wss1", "maximal violating pair", 2001, make<Wss1>});
Registered wss3(drawn("wss3", "drawn from pairs near the largest violation", make<Wss3>));
Registered wss4(drawn("wss4", "worst i, j drawn near the largest violation", make<Wss4>));

}  // namespace

}  // namespace dpsvm
