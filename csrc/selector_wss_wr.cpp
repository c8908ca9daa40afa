// Second order selection without repetition (Zhao et al. 2007, WSS-WR): as WSS 2, but a variable is selected once only.
#include "selector.hpp"

namespace dpsvm {

namespace {

class WssWr final : public Selector {
 public:
  explicit WssWr(const Setup& setup) : used_(setup.size, 0) {}

  Choice select(const State& s, QMatrix& q, double tol) override {
    const double gap = widest_violation(s).gap;
    if (gap < tol) return {Choice::Kind::stationary, -1, -1, gap};

    fresh_.resize(s.active);
    for (Index t = 0; t < s.active; ++t) fresh_[t] = used_[s.original[t]] ? 0 : s.side[t];

    Choice best{Choice::Kind::exhausted, -1, -1, gap};
    double gain = -std::numeric_limits<double>::infinity();
    for (int g = 0; g < s.groups; ++g) {
      const auto [m, i] = simd().argmax(s.v.data(), fresh_.data(), up_bit(g), s.active);
      if (i < 0) continue;
      const SecondOrder found = s.scans.second_order(s.v.data(), q.row(i, s.active), s.diagonal.data(), fresh_.data(),
                                                     low_bit(g), m, s.diagonal[i], s.active);
      if (found.index >= 0 && m - s.v[found.index] >= tol && found.gain > gain) {
        gain = found.gain;
        best = {Choice::Kind::pair, i, found.index, gap};
      }
    }
    if (best.kind == Choice::Kind::pair) used_[s.original[best.i]] = used_[s.original[best.j]] = 1;
    return best;
  }

 private:
  std::vector<char> used_;           // [size] by original position
  std::vector<std::uint8_t> fresh_;  // [active] State::side of the variables not yet used, 0 for the others
};

Registered wss_wr([] {
  Rule rule{"wss-wr", "second order, each variable once", 2007, make<WssWr>};
  rule.once_only = true;
  return rule;
}());

}  // namespace

}  // namespace dpsvm
