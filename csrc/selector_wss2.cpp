// Second order selection (Fan, Chen, Lin 2005, WSS 2): i has the largest v in I_up, j the largest decrease of the
// objective with i, to second order.
#include "selector.hpp"

namespace dpsvm {

namespace {

class Wss2 final : public Selector {
 public:
  explicit Wss2(const Setup&) {}

  Choice select(const State& s, QMatrix& q, double tol) override {
    Choice best{Choice::Kind::stationary};
    best.gap = -std::numeric_limits<double>::infinity();
    double gain = best.gap;
    for (int g = 0; g < s.groups; ++g) {
      const auto [m, i] = s.top[g];
      if (i < 0) continue;
      const SecondOrder found = look_for_partner(s, g, i, q.row(i, s.active));
      best.gap = std::max(best.gap, m - found.lowest);
      if (found.index >= 0 && (found.gain > gain || (found.gain == gain && found.index > best.j))) {
        gain = found.gain;
        best.i = i;
        best.j = found.index;
      }
    }
    if (!(best.gap < tol) && best.j >= 0) best.kind = Choice::Kind::pair;
    return best;
  }

  Index partner(const State& s, int g, Index i, Row row) const override { return look_for_partner(s, g, i, row).index; }

 private:
  static SecondOrder look_for_partner(const State& s, int g, Index i, Row row) {
    return s.scans.second_order(s.v.data(), row, s.diagonal.data(), s.side.data(), low_bit(g), s.v[i], s.diagonal[i],
                                s.active);
  }
};

Registered wss2([] {
  Rule rule{"wss2", "second order", 2005, make<Wss2>};
  rule.as_libsvm = rule.decomposition = true;
  return rule;
}());

}  // namespace

}  // namespace dpsvm
