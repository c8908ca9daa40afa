#include "linear.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>
#include <utility>

#include "kernel.hpp"
#include "row_products.hpp"
#include "state.hpp"
#include "step.hpp"

namespace dpsvm {

namespace {

// Variables of a round, or more where many are free.
constexpr Index kRound = 512;

// A round ends when its own gap is this share of the gap over all variables at its start, or of the tolerance.
constexpr double kShareOfGap = 0.1, kShareOfTol = 0.1;

// Steps of a round at the most, or more where it has many variables.
constexpr Index kRoundSteps = 100'000;

// Rounds without a lower objective after which no more is to be hoped for.
constexpr int kRoundsInVain = 30;

// Rows multiplied by one thread at a time, and entries of all rows below which other threads are left asleep.
constexpr Index kRowsTogether = 1024, kWorthThreads = 100'000;

class LinearSolver {
 public:
  LinearSolver(const Problem& problem, const Matrix& matrix, const std::vector<Index>& rows,
               const SelectorSpec& selector, std::size_t cache_bytes, const SolverOptions& options, ThreadPool& pool,
               Watch& watch, Progress progress, QStatistics& statistics)
      : problem_(problem), matrix_(matrix), rows_(rows), selector_(selector), cache_bytes_(cache_bytes),
        options_(options), pool_(pool), watch_(watch), progress_(progress), statistics_(statistics),
        samples_(matrix, rows, pool), s_(start_of(problem)), w_(samples_.features(), 0.0) {
    for (Index t = 0; t < s_.size; ++t)
      if (!s_.at_lower(t)) samples_.add(sample(t), s_.y[t] * s_.alpha[t], w_);
  }

  SolverResult run() {
    std::optional<StopReason> stopped;
    for (;;) {
      compute_v();
      progress_.gap = s_.gap();
      if (stopped != StopReason::cancelled && progress_.gap < options_.tol) stopped = StopReason::stationary;
      if (!stopped && in_vain()) stopped = StopReason::stalled;
      if (stopped) break;
      choose_round();
      stopped = rounds_in_vain_ > 0 ? solve_round<double>() : solve_round<float>();
    }
    SolverResult result = result_at(s_);
    result.alpha = s_.alpha;
    result.iterations = progress_.iteration;
    result.stop_reason = *stopped;
    return result;
  }

 private:
  // Whether the objective, which is exact here but for the last digits, has not come down for many rounds.
  bool in_vain() {
    const double objective = s_.objective();
    if (objective < lowest_ - 1e-15 * std::fabs(lowest_)) {
      lowest_ = objective;
      rounds_in_vain_ = 0;
      return false;
    }
    return ++rounds_in_vain_ > kRoundsInVain;
  }

  Index sample(Index t) const { return t % samples_.size(); }

  void compute_v() {
    const Index n = samples_.size(), pieces = (n + kRowsTogether - 1) / kRowsTogether;
    const auto piece = [&](Index k) {
      const Index first = k * kRowsTogether, last = std::min(n, first + kRowsTogether);
      double products[kRowsTogether];
      samples_.dots(first, last, w_, products);
      for (Index i = first; i < last; ++i)
        for (Index t = i; t < s_.size; t += n) s_.v[t] = s_.v_zero[t] - products[i - first];
    };
    if (samples_.entries() < kWorthThreads)
      for (Index k = 0; k < pieces; ++k) piece(k);
    else
      pool_.run(pieces, piece);
    s_.find_top();
  }

  // The free variables of the last round, because they answer to every change of w, and at least as many others: those
  // of I_up with the largest v and of I_low with the smallest. Or all variables, where that would be half of them.
  void choose_round() {
    std::vector<Index> chosen;
    for (const Index t : round_)
      if (s_.is_free(t)) chosen.push_back(t);
    const Index room = std::max(kRound, 2 * static_cast<Index>(chosen.size()));
    if (2 * room >= s_.size) {
      round_.resize(s_.size);
      std::iota(round_.begin(), round_.end(), Index{0});
      return;
    }
    std::vector<bool> taken(s_.size, false);
    for (const Index t : chosen) taken[t] = true;

    for (int g = 0; g < s_.groups; ++g) {
      const double m = s_.top[g].value, M = s_.bottom(g).value;
      const Index share = (room - static_cast<Index>(chosen.size())) / (2 * (s_.groups - g));
      const auto take = [&](std::uint8_t bit, auto violates, auto before) {
        std::vector<Index> found;
        for (Index t = 0; t < s_.size; ++t)
          if ((s_.side[t] & bit) && !taken[t] && violates(s_.v[t])) found.push_back(t);
        const Index count = std::min(share, static_cast<Index>(found.size()));
        std::nth_element(found.begin(), found.begin() + count, found.end(),
                         [&](Index a, Index b) { return before(s_.v[a], s_.v[b]); });
        for (Index k = 0; k < count; ++k) {
          taken[found[k]] = true;
          chosen.push_back(found[k]);
        }
      };
      take(
          up_bit(g), [M](double v) { return v > M; }, [](double a, double b) { return a > b; });
      take(
          low_bit(g), [m](double v) { return v < m; }, [](double a, double b) { return a < b; });
    }
    round_ = std::move(chosen);
  }

  // T is what kernel values are kept as. Returns why the work is to stop, if it is.
  template <class T>
  std::optional<StopReason> solve_round() {
    Problem part;
    part.groups = s_.groups;
    std::vector<Index> rows;
    for (const Index t : round_) {
      part.y.push_back(s_.y[t]);
      part.p.push_back(problem_.p[t]);
      part.bound.push_back(s_.bound[t]);
      part.alpha.push_back(s_.alpha[t]);
      part.v.push_back(s_.v[t]);
      rows.push_back(rows_[sample(t)]);
    }
    KernelSpec kernel;
    kernel.type = KernelType::linear;
    const auto q = make_qmatrix<T>(make_kernel(matrix_, rows, kernel, pool_), cache_bytes_, false);
    const auto selector = make_selector(selector_, part.size());
    const SolverResult result = solve(part, *q, *selector, round_options(part), watch_, progress_);
    progress_.iteration = result.iterations;
    statistics_ += q->statistics();
    move(part, result.alpha);
    // A round that did not get where it should, its kernel values being rounded, is over all the same: move() saw what
    // it was worth.
    const bool last = options_.max_iter >= 0 && progress_.iteration >= options_.max_iter;
    switch (result.stop_reason) {
      case StopReason::stationary:
        return std::nullopt;
      case StopReason::max_iter:
        return last ? std::optional(StopReason::max_iter) : std::nullopt;
      default:
        return result.stop_reason;
    }
  }

  SolverOptions round_options(const Problem& part) const {
    SolverOptions options = options_;
    options.shrinking = false;
    options.semidefinite = false;  // what is said of the whole program does not hold for a part of it
    options.tol = kShareOfTol * options_.tol;
    const std::int64_t last = progress_.iteration + std::max(kRoundSteps, 100 * part.size());
    if (options.max_iter < 0 || last < options.max_iter) options.max_iter = last;
    if (part.size() < s_.size) options.tol = std::max(options.tol, kShareOfGap * progress_.gap);
    if (options.trace_every > 0) {
      const double others = s_.objective() - start_of(part).objective();
      options.trace = [others, &trace = options_.trace](const TracePoint& point) {
        trace({point.iteration, point.gap, point.objective + others, point.active});
      };
    }
    return options;
  }

  // From the start of a round to its solution. Its kernel values are rounded to floats, which on badly scaled samples
  // can leave the objective no lower in truth: then only part of the way, or one pair.
  void move(const Problem& part, const std::vector<double>& solution) {
    for (Index k = 0; k < part.size(); ++k) set_alpha(round_[k], solution[k]);
    double descent = 0.0, bend = 0.0;  // after a share h of the way the objective is lower by h descent - h^2 bend / 2
    for (Index k = 0; k < part.size(); ++k) {
      const Index t = round_[k];
      const double change = s_.y[t] * (solution[k] - part.alpha[k]);
      if (change == 0) continue;
      descent += change * part.v[k];
      bend += change * (part.v[k] - (s_.v_zero[t] - samples_.dot(sample(t), w_)));
    }
    if (descent >= bend / 2) return;
    const double share = descent > 0 ? descent / bend : 0.0;
    for (Index k = 0; k < part.size(); ++k) set_alpha(round_[k], part.alpha[k] + share * (solution[k] - part.alpha[k]));
    if (share == 0) move_widest_pair();
  }

  void move_widest_pair() {
    const Violation widest = widest_violation(s_);
    const Index i = widest.top.index, j = widest.bottom.index;
    const double distance = samples_.squared_distance(sample(i), sample(j));
    const TwoAlphas moved = step({s_.alpha[i], s_.bound[i], s_.v[i], s_.y[i]},
                                 {s_.alpha[j], s_.bound[j], s_.v[j], s_.y[j]}, distance > 0 ? distance : kTau);
    set_alpha(i, moved.i);
    set_alpha(j, moved.j);
    ++progress_.iteration;
  }

  void set_alpha(Index t, double alpha) {
    const double change = alpha - s_.alpha[t];
    if (change == 0) return;
    samples_.add(sample(t), s_.y[t] * change, w_);
    s_.set_alpha(t, alpha);
  }

  const Problem& problem_;
  const Matrix& matrix_;
  const std::vector<Index>& rows_;
  const SelectorSpec& selector_;
  const std::size_t cache_bytes_;
  const SolverOptions& options_;
  ThreadPool& pool_;
  Watch& watch_;
  Progress progress_;
  QStatistics& statistics_;
  const RowProducts samples_;
  State s_;                   // nothing is ever shrunk; v and top are those of the start of the round
  std::vector<double> w_;     // [features] sum of y_t a_t x_t
  std::vector<Index> round_;  // variables of the current round
  double lowest_ = std::numeric_limits<double>::max();  // objective so far
  int rounds_in_vain_ = 0;
};

}  // namespace

SolverResult solve_linear(const Problem& problem, const Matrix& matrix, const std::vector<Index>& rows,
                          const SelectorSpec& selector, std::size_t cache_bytes, const SolverOptions& options,
                          ThreadPool& pool, Watch& watch, Progress progress, QStatistics& statistics) {
  return LinearSolver(problem, matrix, rows, selector, cache_bytes, options, pool, watch, progress, statistics).run();
}

}  // namespace dpsvm
