// Whether a solver still gets anywhere.
//
// Each step promises a decrease of the objective f, by its own two-variable problem. What f did is told by v, which sums
// the kernel rows of all steps: between two moments with the same active variables
//
//   f(a) - f(a') = 1/2 sum of (a_t - a'_t) (G_t + G'_t),   G_t = -y_t v_t,
//
// exactly, f being quadratic. Kernel values that are too coarse for the differences between samples, or steps too short
// for the alphas to change, leave promises unkept for ever: a slow fit keeps them. A stall is proved where
//
//   (a) the promises of a window and what became of them differ by more than half of the promised, or
//   (b) the kernel is positive semidefinite, and f is below p'a: then a'Qa, which is |w|^2, would be negative.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "problem.hpp"
#include "state.hpp"

namespace dpsvm {

class Descent {
 public:
  // Nothing is judged before `patience` iterations.
  Descent(bool semidefinite, std::int64_t patience) : semidefinite_(semidefinite), patience_(patience) {}

  // Where the solver starts, or goes on after the active variables have changed.
  void begin(const State& s) {
    alpha_.assign(s.alpha.begin(), s.alpha.begin() + s.active);
    v_.assign(s.v.begin(), s.v.begin() + s.active);
  }
  void begin(const State& s, double objective) {
    objective_ = objective;
    begin(s);
  }

  // A step was taken that should lower f by so much.
  void promise(double decrease) {
    promised_ += decrease;
    ++steps_;
  }

  // What became of the promises since begin(); to be called before the active variables change.
  void measure(const State& s) {
    double decrease = 0.0;
    for (Index t = 0; t < s.active; ++t) {
      const double moved = s.alpha[t] - alpha_[t];
      if (moved == 0) continue;
      const double origin = s.top[s.group(t)].value;  // cancels: within a group the moves add up to nothing
      decrease += s.y[t] * moved * ((s.v[t] - origin) + (v_[t] - origin));
    }
    kept_ += decrease / 2;
    objective_ -= decrease / 2;
  }

  bool window_is_over() const { return steps_ >= kWindow; }

  // Judges the window and starts another.
  bool stalled(const State& s) {
    measure(s);
    begin(s);
    all_steps_ += steps_;
    const bool broken = !(std::fabs(kept_ - promised_) <= promised_ / 2);
    promised_ = kept_ = 0.0;
    steps_ = 0;
    return all_steps_ >= patience_ && (broken || (semidefinite_ && bends_down(s)));
  }

 private:
  // Whether a'Qa is negative by more than rounding explains.
  bool bends_down(const State& s) const {
    double linear = 0.0;  // p'a
    for (Index t = 0; t < s.size; ++t) linear -= s.y[t] * s.v_zero[t] * s.alpha[t];
    return !(objective_ - linear >= -kRounding * std::max(std::fabs(objective_), std::fabs(linear)));
  }

  static constexpr double kRounding = 1e-3;
  static constexpr std::int64_t kWindow = 100'000;  // iterations

  bool semidefinite_;
  std::int64_t patience_;
  double objective_ = 0.0;              // f
  double promised_ = 0.0, kept_ = 0.0;  // decreases in this window
  std::int64_t steps_ = 0, all_steps_ = 0;
  std::vector<double> alpha_, v_;  // [active] at begin()
};

}  // namespace dpsvm
