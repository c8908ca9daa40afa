// DPWSS: the partner is drawn by the exponential mechanism among the pairs of constant-factor violation, each ordered
// pair once only.
//
// With m the largest v over I_up and M the smallest over I_low, the score of a partner t is q_t = (m - v_t) / (m - M),
// and j is drawn with probability proportional to exp(epsilon q_t / (2 (1 - sigma))) among the t in I_low with
// q_t >= sigma, m - v_t > tol and the ordered pair (i, t) not used before. When none is left the rule is exhausted.
//
// No privacy guarantee follows: the candidates and i depend on the data, and every update reads raw rows.
#include <cmath>

#include "selector.hpp"

namespace dpsvm {

namespace {

class Dpwss final : public Selector {
 public:
  Dpwss(double epsilon, double sigma, std::optional<std::uint64_t> seed, Index size)
      : sigma_(sigma), rate_(epsilon / (2 * (1 - sigma))), random_(seed), partners_(size), used_(size, 0) {}

  Choice select(const State& s, QMatrix&, double tol) override {
    const Violation worst = widest_violation(s);
    if (worst.gap < tol) return {Choice::Kind::stationary, -1, -1, worst.gap};
    const Index i = worst.top.index;

    std::vector<Index>& partners = partners_[s.original[i]];
    for (Index t : partners) used_[t] = 1;
    weigh(s, worst, tol);
    for (Index t : partners) used_[t] = 0;

    if (candidates_.empty()) return {Choice::Kind::exhausted, -1, -1, worst.gap};
    const Index j = draw();
    partners.push_back(s.original[j]);
    return {Choice::Kind::pair, i, j, worst.gap};
  }

  std::int64_t draws() const override { return draws_; }

 private:
  // Fills candidates_ and the running sums of their weights.
  void weigh(const State& s, const Violation& worst, double tol) {
    const std::uint8_t low = low_bit(worst.group);
    candidates_.clear();
    cumulative_.clear();
    double total = 0.0;
    for (Index t = 0; t < s.active; ++t) {
      if (!(s.side[t] & low)) continue;
      const double violation = worst.top.value - s.v[t];
      const double score = violation / worst.gap;
      if (!(score >= sigma_ && violation > tol) || used_[s.original[t]]) continue;
      total += std::exp(rate_ * (score - 1.0));  // the factor exp(-rate) cancels, and nothing overflows
      candidates_.push_back(t);
      cumulative_.push_back(total);
    }
  }

  Index draw() {
    ++draws_;
    const double u = random_.uniform() * cumulative_.back();
    const auto at = std::upper_bound(cumulative_.begin(), cumulative_.end() - 1, u);
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

}  // namespace

std::unique_ptr<Selector> make_dpwss(double selection_epsilon, double sigma, std::optional<std::uint64_t> seed,
                                     Index size) {
  return std::make_unique<Dpwss>(selection_epsilon, sigma, seed, size);
}

}  // namespace dpsvm
