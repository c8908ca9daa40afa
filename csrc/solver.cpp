#include "solver.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "descent.hpp"
#include "forecast.hpp"
#include "shrink.hpp"
#include "state.hpp"
#include "step.hpp"

namespace dpsvm {

namespace {

// Iterations between two attempts to shrink.
constexpr Index kShrinkEvery = 1000;

class Solver {
 public:
  Solver(const Problem& problem, QMatrix& q, Selector& selector, const SolverOptions& options, Watch& watch,
         Progress progress)
      : q_(q), selector_(selector), options_(options), shrinker_(options.tol),
        descent_(options.semidefinite, libsvm_cap(problem.size())), pulse_(watch), progress_(progress),
        iterations_(progress.iteration) {
    start(problem);
  }

  SolverResult run() {
    Index until_shrink = std::min(s_.size, kShrinkEvery) + 1;
    while (!should_stop()) {
      if (--until_shrink == 0) {
        until_shrink = std::min(s_.size, kShrinkEvery);
        if (options_.shrinking) rearrange([&] { shrink(); });
        progress_.marks += '.';
      }
      Choice pair = selector_.select(s_, q_, options_.tol);
      if (pair.kind != Choice::Kind::pair) progress_.marks += '*';
      if (pair.kind != Choice::Kind::pair && s_.active < s_.size) {
        rearrange([&] { unshrink(s_, q_); });
        pair = selector_.select(s_, q_, options_.tol);
        until_shrink = 1;
      }
      if (pair.kind != Choice::Kind::pair) {
        stopped_ = pair.kind == Choice::Kind::stationary ? StopReason::stationary : StopReason::exhausted;
        break;
      }
      if (std::isinf(pair.gap)) throw_overflow();
      update(pair.i, pair.j);
      ++iterations_;
      progress_.gap = pair.gap;
      if (options_.trace_every > 0) record(pair.gap);
    }
    return finish();
  }

 private:
  // v at the starting point.
  void start(const Problem& problem) {
    s_ = start_of(problem);
    s_.scans = Scans(options_.pool);
    for (Index t = 0; t < s_.size; ++t) s_.diagonal[t] = q_.diagonal(t);
    stopped_ = pulse_.check(progress_);
    if (problem.v.empty()) add_start();
    s_.find_top();
    q_.set_forecast(Forecast(s_, selector_, q_));
    objective_ = s_.objective();
    descent_.begin(s_, objective_);
  }

  // The share of the alphas that are not zero.
  void add_start() {
    std::vector<Index> nonzero;
    for (Index t = 0; t < s_.size; ++t)
      if (!s_.at_lower(t)) nonzero.push_back(t);
    const auto n = static_cast<Index>(nonzero.size());
    for (Index k = 0, step; k < n; k += step) {
      if (stopped_ == StopReason::cancelled) {
        v_is_known_ = false;
        return;
      }
      step = std::min(q_.batch(s_.size), n - k);
      q_.prefetch(nonzero.data() + k, step, s_.size);
      for (Index t = k; t < k + step; ++t) add_at_start(nonzero[t]);
      if (pulse_.due(16 * step * s_.size)) stopped_ = pulse_.check(progress_);
    }
  }

  void add_at_start(Index i) {
    const Row row = q_.row(i, s_.size);
    s_.scans.accumulate(s_.v.data(), row, -(s_.y[i] * s_.alpha[i]), s_.size);
    if (s_.at_upper(i)) s_.scans.accumulate(s_.v_bound.data(), row, s_.y[i] * s_.bound[i], s_.size);
  }

  // Moves along the pair and brings v and its largest elements up to date.
  void update(Index i, Index j) {
    const Row row_i = q_.row(i, s_.active);
    const Row row_j = q_.row(j, s_.active);
    double curvature = (s_.diagonal[i] + s_.diagonal[j]) - 2.0 * row_i[j];
    if (!(curvature > 0)) curvature = kTau;

    const double old_i = s_.alpha[i], old_j = s_.alpha[j];
    const bool upper_i = s_.at_upper(i), upper_j = s_.at_upper(j);
    const TwoAlphas moved =
        step({old_i, s_.bound[i], s_.v[i], s_.y[i]}, {old_j, s_.bound[j], s_.v[j], s_.y[j]}, curvature);
    follow(s_.v[i] - s_.v[j], curvature, s_.y[i] * (moved.i - old_i));
    s_.set_alpha(i, moved.i);
    s_.set_alpha(j, moved.j);

    s_.top[0] = s_.scans.update(s_.v.data(), row_i, s_.y[i] * (moved.i - old_i), row_j, s_.y[j] * (moved.j - old_j),
                                s_.side.data(), up_bit(0), s_.active);
    if (s_.groups == 2) s_.top[1] = s_.scans.argmax(s_.v.data(), s_.side.data(), up_bit(1), s_.active);
    if (options_.shrinking) {
      if (upper_i != s_.at_upper(i)) move_bound(i);
      if (upper_j != s_.at_upper(j)) move_bound(j);
    }
  }

  // A step that rounding has swallowed, because the alphas are too large for it, promised all the same.
  void follow(double violation, double curvature, double moved) {
    const double decrease = (violation - curvature * moved / 2) * moved;
    objective_ -= decrease;
    descent_.promise(moved == 0 ? violation * violation / (2 * curvature) : decrease);
  }

  // LIBSVM's solver of the nu machines does not tell of variables that are brought back here.
  void shrink() {
    if (shrinker_.shrink(s_, q_) && s_.groups == 1) progress_.marks += '*';
  }

  // Changes which variables are active, or their order.
  template <class Change>
  void rearrange(const Change& change) {
    descent_.measure(s_);
    change();
    descent_.begin(s_);
  }

  // Variable i has reached its upper bound or left it.
  void move_bound(Index i) {
    const double share = s_.y[i] * s_.bound[i];
    s_.scans.accumulate(s_.v_bound.data(), q_.row(i, s_.size), s_.at_upper(i) ? share : -share, s_.size);
  }

  void record(double gap) {
    if (iterations_ != 1 && iterations_ % options_.trace_every != 0) return;
    options_.trace({iterations_, gap, objective_, s_.active});
  }

  // The limits, looked at every time; the watch, when enough work has been done.
  bool should_stop() {
    if (options_.max_iter >= 0 && iterations_ >= options_.max_iter && !stopped_) stopped_ = StopReason::max_iter;
    if (!stopped_ && descent_.window_is_over() && descent_.stalled(s_)) stopped_ = StopReason::stalled;
    const std::int64_t evaluated = q_.statistics().evaluations;
    if (!stopped_ && pulse_.due(4 * s_.active + 16 * (evaluated - evaluated_))) {
      progress_.iteration = iterations_;
      progress_.active = s_.active;
      stopped_ = pulse_.check(progress_);
    }
    evaluated_ = evaluated;
    return stopped_.has_value();
  }

  SolverResult finish() {
    if (s_.active < s_.size) progress_.marks += '*';
    unshrink(s_, q_);
    SolverResult result = v_is_known_ ? result_at(s_) : SolverResult{};
    result.alpha.resize(s_.size);
    for (Index t = 0; t < s_.size; ++t) result.alpha[s_.original[t]] = s_.alpha[t];
    result.iterations = iterations_;
    result.marks = std::move(progress_.marks);
    result.draws = selector_.draws();
    result.stop_reason = *stopped_;
    const bool told_to = *stopped_ == StopReason::cancelled || *stopped_ == StopReason::exhausted;
    if (!told_to && result.gap < options_.tol) result.stop_reason = StopReason::stationary;
    return result;
  }

  State s_;
  QMatrix& q_;
  Selector& selector_;
  const SolverOptions& options_;
  Shrinker shrinker_;
  Descent descent_;
  Pulse pulse_;
  Progress progress_;
  std::int64_t iterations_, evaluated_ = 0;
  double objective_ = 0.0;  // followed through the steps
  std::optional<StopReason> stopped_;
  bool v_is_known_ = true;  // false only if cancelled while v was computed at the start
};

}  // namespace

void throw_overflow() {
  throw InvalidInput("sums of coefficients times kernel values overflow: scale the features, or lower C");
}

SolverResult result_at(const State& s) {
  SolverResult result;
  const double first = s.offset(0);
  if (s.groups == 1) {
    result.rho = first;
  } else {
    const double second = s.offset(1);
    result.rho = (first - second) / 2;
    result.r = (first + second) / 2;
  }
  result.objective = s.objective();
  result.gap = s.gap();
  result.range = s.range();
  return result;
}

SolverResult solve(const Problem& problem, QMatrix& q, Selector& selector, const SolverOptions& options, Watch& watch,
                   Progress progress) {
  return Solver(problem, q, selector, options, watch, progress).run();
}

}  // namespace dpsvm
