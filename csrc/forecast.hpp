// Which kernel rows the next iterations will ask for.
#pragma once

#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

#include "qmatrix.hpp"
#include "selector.hpp"
#include "state.hpp"

namespace dpsvm {

// When the row of the worst violator is missing, those of the next worst: nearly all of them become support vectors,
// whose rows are needed anyway. When the row of its partner is, and rows take long to compute, those of the partners the
// rule would give to the next worst now.
class Forecast {
 public:
  Forecast(const State& state, const Selector& selector, QMatrix& q) : s_(state), selector_(selector), q_(q) {}

  // Appends variables whose rows are not kept until there are `count` rows; rows[0] is being computed.
  void operator()(std::vector<Index>& rows, Index count) {
    for (int g = 0; g < s_.groups; ++g) {
      const Extreme top = s_.top[g], bottom = s_.bottom(g);
      if (top.index < 0 || !(top.value > bottom.value)) continue;
      if (rows[0] == top.index)
        add_violators(rows, count, g, top.value, bottom.value);
      else if (rows[0] != s_.top[1 - g].index && q_.effort() >= kWorthAScan)
        add_partners(rows, count, g, top.value, bottom.value);
    }
  }

 private:
  // A partner is found by a scan of all variables.
  static constexpr Index kWorthAScan = 8;

  void add_violators(std::vector<Index>& rows, Index count, int g, double m, double M) {
    candidates_.clear();
    gather(up_bit(g), 1.0, M, m - M, false);
    gather(low_bit(g), -1.0, m, m - M, false);
    keep_worst(count);
    for (const auto& [violation, t] : candidates_) add(rows, count, t);
  }

  void add_partners(std::vector<Index>& rows, Index count, int g, double m, double M) {
    candidates_.clear();
    gather(up_bit(g), 1.0, M, m - M, true);
    keep_worst(count);
    for (const auto& [violation, i] : candidates_)
      if (const Row row = q_.peek(i, s_.active)) add(rows, count, selector_.partner(s_, g, i, row));
  }

  void add(std::vector<Index>& rows, Index count, Index t) const {
    const bool known = t < 0 || q_.kept(t) || std::find(rows.begin(), rows.end(), t) != rows.end();
    if (!known && static_cast<Index>(rows.size()) < count) rows.push_back(t);
  }

  // The variables with `bit` and a violation sign (v - origin) of nearly `gap`, whose rows are kept, or are not.
  void gather(std::uint8_t bit, double sign, double origin, double gap, bool kept) {
    found_.resize(s_.active);
    found_.resize(simd().beyond(s_.v.data(), s_.side.data(), bit, sign, origin, near_ * gap, s_.active, found_.data()));
    for (Index t : found_)
      if (q_.kept(t) == kept) candidates_.emplace_back(sign * (s_.v[t] - origin), t);
  }

  // Leaves the `count` worst, and looks at fewer variables next time if there were many, at more if there were few.
  void keep_worst(Index count) {
    const auto found = static_cast<Index>(candidates_.size());
    if (found > 16 * count) near_ = (1 + near_) / 2;
    if (found < 2 * count) near_ = std::max(0.5, 2 * near_ - 1);
    if (found <= count) return;
    std::nth_element(candidates_.begin(), candidates_.begin() + count, candidates_.end(), std::greater<>());
    candidates_.resize(count);
  }

  const State& s_;
  const Selector& selector_;
  QMatrix& q_;
  double near_ = 0.9;         // share of the largest violation from which a variable is looked at
  std::vector<Index> found_;  // [active]
  std::vector<std::pair<double, Index>> candidates_;  // violation, variable
};

}  // namespace dpsvm
