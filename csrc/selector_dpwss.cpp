// DPWSS: the partner is drawn by the exponential mechanism among the pairs of constant-factor violation, each ordered
// pair once only.
//
// With m the largest v over I_up and M the smallest over I_low, the score of a partner t is q_t = (m - v_t) / (m - M),
// and j is drawn with probability proportional to exp(epsilon q_t / (2 (1 - sigma))) among the t in I_low with
// q_t >= sigma, m - v_t > tol and the ordered pair (i, t) not used before. When none is left the rule is exhausted.
//
// No privacy guarantee follows: the candidates and i depend on the data, and every update reads raw rows.
#include <algorithm>
#include <cmath>
#include <limits>

#include "selector.hpp"

namespace dpsvm {

namespace {

constexpr Number kEpsilon{"selection_epsilon",
                          "eps",
                          "how sharply the better pair is preferred; no privacy guarantee",
                          1.0,
                          0.0,
                          std::numeric_limits<double>::infinity()};

class Dpwss final : public Selector {
 public:
  explicit Dpwss(const Setup& setup)
      : sigma_(setup[kSigma]), rate_(setup[kEpsilon] / (2 * (1 - sigma_))), random_(setup.spec.seed),
        partners_(setup.size), used_(setup.size, 0) {}

  Choice select(const State& s, QMatrix&, double tol) override {
    const Violation worst = widest_violation(s);
    if (worst.gap < tol) return {Choice::Kind::stationary, -1, -1, worst.gap};
    const Index i = worst.top.index;

    std::vector<Index>& partners = partners_[s.original[i]];
    for (Index t : partners) used_[t] = 1;
    Index j = guess(s, worst, tol);
    if (j < 0) j = weigh_all(s, worst, tol);
    for (Index t : partners) used_[t] = 0;

    if (j < 0) return {Choice::Kind::exhausted, -1, -1, worst.gap};
    ++draws_;
    partners.push_back(s.original[j]);
    return {Choice::Kind::pair, i, j, worst.gap};
  }

  std::int64_t draws() const override { return draws_; }

 private:
  // Guesses at the most: enough where one variable in a dozen is a candidate of middling weight.
  static constexpr int kGuesses = 32;

  // The violation a candidate must reach.
  double threshold(const Violation& worst, double tol) const {
    return std::max(sigma_ * worst.gap, std::nextafter(tol, std::numeric_limits<double>::infinity()));
  }

  // Over the weight of the largest violation: the factor cancels, and nothing overflows.
  double weight(const Violation& worst, double violation) const {
    return std::exp(rate_ * (violation / worst.gap - 1.0));
  }

  // By rejection: a variable drawn evenly, kept with the probability of its weight. The one kept has the distribution
  // weigh_all() draws from, and giving up (-1) does not change it, for the guesses are independent.
  Index guess(const State& s, const Violation& worst, double tol) {
    const double needed = threshold(worst, tol);
    for (int k = 0; k < kGuesses; ++k) {
      const Index t = random_.below(s.active);
      const double violation = worst.top.value - s.v[t];
      const bool candidate = (s.side[t] & low_bit(worst.group)) && violation >= needed && !used_[s.original[t]];
      if (candidate && random_.uniform() < weight(worst, violation)) return t;
    }
    return -1;
  }

  // By the running sums of the weights of all candidates; -1 if there is none.
  Index weigh_all(const State& s, const Violation& worst, double tol) {
    candidates_.resize(s.active);
    candidates_.resize(simd().beyond(s.v.data(), s.side.data(), low_bit(worst.group), -1.0, worst.top.value,
                                     threshold(worst, tol), s.active, candidates_.data()));
    candidates_.erase(
        std::remove_if(candidates_.begin(), candidates_.end(), [&](Index t) { return used_[s.original[t]]; }),
        candidates_.end());
    if (candidates_.empty()) return -1;
    cumulative_.clear();
    double total = 0.0;
    for (Index t : candidates_) cumulative_.push_back(total += weight(worst, worst.top.value - s.v[t]));
    const auto at = std::upper_bound(cumulative_.begin(), cumulative_.end() - 1, random_.uniform() * total);
    return candidates_[at - cumulative_.begin()];
  }

  double sigma_, rate_;
  Random random_;
  std::int64_t draws_ = 0;
  std::vector<std::vector<Index>> partners_;  // [size] the j already taken with each i, by original position
  std::vector<char> used_;                    // [size] scratch: the partners of the current i
  std::vector<Index> candidates_;
  std::vector<double> cumulative_;
};

Registered dpwss([] {
  Rule rule{"dpwss", "worst i, j by the exponential mechanism, once", 2021, make<Dpwss>, {&kEpsilon, &kSigma}};
  rule.random = rule.once_only = true;
  rule.budget = &kEpsilon;
  rule.caveat =
      "sets how sharply each selection prefers the better pair and is no privacy budget. The pairs that can be drawn "
      "depend on the data, so that removing one record can make a possible selection impossible; every update then "
      "reads raw rows; and whatever one selection costs, the n_selections_ made all add to it. No epsilon is stated "
      "for the fit.";
  return rule;
}());

}  // namespace

}  // namespace dpsvm
