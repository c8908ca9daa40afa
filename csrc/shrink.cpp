#include "shrink.hpp"

#include <algorithm>
#include <utility>

namespace dpsvm {

namespace {

struct Extremes {
  double m, M;
};

std::array<Extremes, 2> extremes(const State& s) {
  std::array<Extremes, 2> found{};
  for (int g = 0; g < s.groups; ++g) found[g] = {s.top[g].value, s.bottom(g).value};
  return found;
}

double widest_gap(const State& s, const std::array<Extremes, 2>& found) {
  double widest = found[0].m - found[0].M;
  if (s.groups == 2) widest = std::max(widest, found[1].m - found[1].M);
  return widest;
}

bool can_be_shrunk(const State& s, Index t, const std::array<Extremes, 2>& found) {
  const auto [m, M] = found[s.group(t)];
  const bool up = s.side[t] & up_bit(s.group(t)), low = s.side[t] & low_bit(s.group(t));
  return (!up && s.v[t] > m) || (!low && s.v[t] < M);
}

void exchange(State& s, Index i, Index j) {
  std::swap(s.y[i], s.y[j]);
  std::swap(s.alpha[i], s.alpha[j]);
  std::swap(s.bound[i], s.bound[j]);
  std::swap(s.v[i], s.v[j]);
  std::swap(s.v_zero[i], s.v_zero[j]);
  std::swap(s.v_bound[i], s.v_bound[j]);
  std::swap(s.diagonal[i], s.diagonal[j]);
  std::swap(s.side[i], s.side[j]);
  std::swap(s.original[i], s.original[j]);
}

// Subtracts the free active variables' share from v of the shrunk ones, whichever way needs fewer kernel values.
void subtract_free(State& s, QMatrix& q) {
  std::vector<Index> free;
  for (Index t = 0; t < s.active; ++t)
    if (s.is_free(t)) free.push_back(t);
  const auto n_free = static_cast<Index>(free.size());

  if (n_free * s.size > 2 * s.active * (s.size - s.active)) {
    for (Index i = s.active, step; i < s.size; i += step) {
      step = std::min(q.batch(s.active), s.size - i);
      std::vector<Index> rows;
      for (Index k = 0; k < step; ++k) rows.push_back(i + k);
      q.prefetch(rows.data(), step, s.active);
      for (Index k = i; k < i + step; ++k) {
        const Row row = q.row(k, s.active);
        for (Index t : free) s.v[k] -= s.y[t] * s.alpha[t] * row[t];
      }
    }
  } else {
    for (Index f = 0, step; f < n_free; f += step) {
      step = std::min(q.batch(s.size), n_free - f);
      q.prefetch(free.data() + f, step, s.size);
      for (Index k = f; k < f + step; ++k) {
        const Index t = free[k];
        s.scans.accumulate(s.v.data() + s.active, q.row(t, s.size).from(s.active), -(s.y[t] * s.alpha[t]),
                           s.size - s.active);
      }
    }
  }
}

}  // namespace

void unshrink(State& s, QMatrix& q) {
  if (s.active == s.size) return;
  for (Index t = s.active; t < s.size; ++t) s.v[t] = s.v_zero[t] - s.v_bound[t];
  subtract_free(s, q);
  s.active = s.size;
  s.find_top();
}

bool Shrinker::shrink(State& s, QMatrix& q) {
  const auto found = extremes(s);
  const bool bring_back = !brought_back_ && widest_gap(s, found) <= 10 * tol_;
  if (bring_back) {
    brought_back_ = true;
    unshrink(s, q);
  }
  std::vector<Swap> swaps;
  for (Index t = 0; t < s.active; ++t) {
    if (!can_be_shrunk(s, t, found)) continue;
    --s.active;
    while (s.active > t && can_be_shrunk(s, s.active, found)) --s.active;
    if (s.active > t) {
      exchange(s, t, s.active);
      swaps.emplace_back(t, s.active);
    }
  }
  q.swap(swaps);
  s.find_top();
  return bring_back;
}

}  // namespace dpsvm
