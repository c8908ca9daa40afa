// For test_selector_plugin.py: the worst i with the first j whose violation reaches a share of the largest.
#include "selector.hpp"

namespace dpsvm {

namespace {

constexpr Number kReach{"reach", "r", "share of the largest violation from which a pair will do", 0.9, 0.0, 1.0};

class WssNear final : public Selector {
 public:
  explicit WssNear(const Setup& setup) : reach_(setup[kReach]) {}

  Choice select(const State& s, QMatrix&, double tol) override {
    const Violation worst = widest_violation(s);
    if (worst.gap < tol) return {Choice::Kind::stationary, -1, -1, worst.gap};
    Index j = 0;
    while (!(s.side[j] & low_bit(worst.group)) || worst.top.value - s.v[j] < reach_ * worst.gap) ++j;
    return {Choice::Kind::pair, worst.top.index, j, worst.gap};
  }

 private:
  double reach_;
};

Registered wss_near({"wss-near", "first good enough", 2026, make<WssNear>, {&kReach}});

}  // namespace

}  // namespace dpsvm
