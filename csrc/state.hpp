// Where the solver is: data, and what follows from it at once. Arrays are in the solver's order; the first `active`
// variables are the ones not shrunk.
#pragma once

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>
#include <vector>

#include "problem.hpp"
#include "scans.hpp"
#include "types.hpp"

namespace dpsvm {

// Bits of State::side, for group 0; those of group 1 lie two higher.
inline constexpr std::uint8_t kUp = 1;   // in I_up: y a can grow
inline constexpr std::uint8_t kLow = 2;  // in I_low: y a can fall

inline std::uint8_t up_bit(int group) { return static_cast<std::uint8_t>(kUp << (2 * group)); }
inline std::uint8_t low_bit(int group) { return static_cast<std::uint8_t>(kLow << (2 * group)); }

struct State {
  Index size = 0;    // variables
  Index active = 0;  // variables not shrunk
  int groups = 1;

  std::vector<std::int8_t> y;      // [size]
  std::vector<double> alpha;       // [size]
  std::vector<double> bound;       // [size] C_t
  std::vector<double> v;           // [size] -y_t G_t, G the gradient
  std::vector<double> v_zero;      // [size] v at alpha = 0, that is -y_t p_t
  std::vector<double> v_bound;     // [size] what the variables at their bound take from v: sum of y_s C_s K_st
  std::vector<double> diagonal;    // [size] K_tt
  std::vector<std::uint8_t> side;  // [size] kUp and kLow bits
  std::vector<Index> original;     // [size] position in the problem

  Scans scans;

  std::array<Extreme, 2> top;  // per group: the largest v over the active part of I_up

  int group(Index t) const { return groups == 2 && y[t] < 0 ? 1 : 0; }
  bool at_upper(Index t) const { return alpha[t] >= bound[t]; }
  bool at_lower(Index t) const { return alpha[t] <= 0.0; }
  bool is_free(Index t) const { return !at_upper(t) && !at_lower(t); }

  void set_alpha(Index t, double a) {
    alpha[t] = a;
    const bool grows = y[t] > 0 ? !at_upper(t) : !at_lower(t);
    const bool falls = y[t] > 0 ? !at_lower(t) : !at_upper(t);
    side[t] = static_cast<std::uint8_t>((grows ? up_bit(group(t)) : 0) | (falls ? low_bit(group(t)) : 0));
  }

  void find_top() {
    for (int g = 0; g < groups; ++g) top[g] = scans.argmax(v.data(), side.data(), up_bit(g), active);
  }

  Extreme bottom(int g) const { return scans.argmin(v.data(), side.data(), low_bit(g), active); }

  // The largest m - M over the groups, m and M the extremes of v over I_up and I_low. Optimal when below the tolerance.
  double gap() const {
    double widest = -std::numeric_limits<double>::infinity();
    for (int g = 0; g < groups; ++g) {
      const Extreme low = bottom(g);
      if (top[g].index >= 0 && low.index >= 0) widest = std::max(widest, top[g].value - low.value);
    }
    return widest;
  }

  // f = 1/2 a'Qa + p'a = 1/2 a'(G + p); exact once nothing is shrunk.
  double objective() const {
    double sum = 0.0;
    for (Index t = 0; t < size; ++t) sum += alpha[t] * (-y[t] * v[t] + -y[t] * v_zero[t]);
    return sum / 2;
  }

  // Of sum of y_s a_s K_st, which v takes from v_zero.
  double range() const {
    double least = std::numeric_limits<double>::infinity(), most = -least;
    for (Index t = 0; t < size; ++t) {
      least = std::min(least, v_zero[t] - v[t]);
      most = std::max(most, v_zero[t] - v[t]);
    }
    return most - least;
  }

  // The multiplier of a group's equality constraint: the mean of y G (nu machines: of G) over the free variables, or
  // the middle of the interval the others allow.
  double offset(int g) const {
    double upper = std::numeric_limits<double>::infinity(), lower = -upper, sum = 0.0;
    Index n_free = 0;
    for (Index t = 0; t < size; ++t) {
      if (group(t) != g) continue;
      const double gradient = 0.0 - v[t];  // y G; a zero without a sign, as LIBSVM's
      if (is_free(t)) {
        ++n_free;
        sum += gradient;
      } else if (side[t] & up_bit(g)) {
        upper = std::min(upper, gradient);
      } else {
        lower = std::max(lower, gradient);
      }
    }
    const double multiplier = n_free > 0 ? sum / static_cast<double>(n_free) : (upper + lower) / 2;
    return g == 0 ? multiplier : -multiplier;
  }
};

// The start of a problem, in its order. v is the problem's, or v_zero where it has none; diagonal and top are not set.
inline State start_of(const Problem& problem) {
  State s;
  s.size = s.active = problem.size();
  s.groups = problem.groups;
  s.y = problem.y;
  s.bound = problem.bound;
  s.original.resize(s.size);
  std::iota(s.original.begin(), s.original.end(), Index{0});
  s.alpha.resize(s.size);
  s.side.resize(s.size);
  s.v_zero.resize(s.size);
  s.v_bound.assign(s.size, 0.0);
  s.diagonal.resize(s.size);
  for (Index t = 0; t < s.size; ++t) {
    s.set_alpha(t, problem.alpha[t]);
    s.v_zero[t] = -problem.y[t] * problem.p[t];
  }
  s.v = problem.v.empty() ? s.v_zero : problem.v;
  return s;
}

}  // namespace dpsvm
