// Promises that are kept are no stall, however small; promises that are not are one, but only after much patience.
#include "check.hpp"
#include "descent.hpp"

using namespace dpsvm;

namespace {

// Two variables of opposite sign; along (1, 1) the objective is curvature a^2 / 2 - 2 a.
Problem two_variables(double bound) {
  Problem problem;
  problem.y = {1, -1};
  problem.p = {-1.0, -1.0};
  problem.bound = {bound, bound};
  problem.alpha = {0.0, 0.0};
  return problem;
}

struct Walk {
  explicit Walk(double bound) : problem(two_variables(bound)), s(start_of(problem)) { s.find_top(); }

  // Moves both alphas by `step` with v following the curvature.
  void move(double step, double curvature) {
    for (Index t = 0; t < 2; ++t) {
      s.set_alpha(t, s.alpha[t] + step);
      s.v[t] -= s.y[t] * curvature * step / 2;
    }
    s.find_top();
  }

  Problem problem;
  State s;
};

constexpr std::int64_t kPatience = 1'000'000;

// Every step takes a millionth of the way; says when the stall is found, or 0.
std::int64_t steps_until_stalled(bool semidefinite, double curvature) {
  Walk walk(100.0);
  Descent descent(semidefinite, kPatience);
  descent.begin(walk.s, walk.s.objective());
  const double step = 1e-6;
  for (std::int64_t k = 1; k <= 3 * kPatience; ++k) {
    const double violation = walk.s.v[0] - walk.s.v[1];
    walk.move(step, curvature);
    descent.promise((violation - curvature * step / 2) * step);
    if (k % 1000 == 0) {  // as shrinking would
      descent.measure(walk.s);
      descent.begin(walk.s);
    }
    if (descent.window_is_over() && descent.stalled(walk.s)) return k;
  }
  return 0;
}

void kept_promises_are_no_stall() { CHECK_EQUAL(steps_until_stalled(true, 0.1), 0); }

// The objective comes down twice as fast as promised: v does not feel the curvature.
void broken_promises_are_one_after_much_patience() {
  Walk walk(100.0);
  Descent descent(false, kPatience);
  descent.begin(walk.s, 0.0);
  std::int64_t k = 0;
  for (bool stalled = false; !stalled && k < 2 * kPatience;) {
    ++k;
    walk.move(1e-9, 0.0);
    descent.promise(1e-9);  // half of violation times step
    if (descent.window_is_over()) stalled = descent.stalled(walk.s);
  }
  CHECK_EQUAL(k, kPatience);
}

// Steps that promise and change nothing.
void swallowed_steps_are_one() {
  Walk walk(1.0);
  Descent descent(false, kPatience);
  descent.begin(walk.s, 0.0);
  bool stalled = false;
  for (std::int64_t k = 0; k < kPatience; ++k) {
    descent.promise(1e-30);
    if (descent.window_is_over()) stalled = descent.stalled(walk.s);
  }
  CHECK(stalled);
}

// Negative curvature leads below p'a, with promises kept.
void an_objective_that_cannot_be_is_one() {
  CHECK_EQUAL(steps_until_stalled(true, -1.0), kPatience);
  CHECK_EQUAL(steps_until_stalled(false, -1.0), 0);
}

}  // namespace

int main() {
  kept_promises_are_no_stall();
  broken_promises_are_one_after_much_patience();
  swallowed_steps_are_one();
  an_objective_that_cannot_be_is_one();
  return check::result();
}
