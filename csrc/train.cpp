#include "train.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <memory>
#include <utility>

#include "linear.hpp"
#include "precision.hpp"

namespace dpsvm {

namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

// One problem of the fit: its samples and what they should become.
struct Task {
  std::vector<Index> rows;     // [l] rows of x
  std::vector<double> target;  // [l] +1 / -1, or the regression target
  std::vector<double> weight;  // [l]
  std::vector<double> start;   // [l] or empty
};

struct Solved {
  std::vector<double> coefficient;  // [l] what multiplies K in the decision
  Report report;
};

double common_value(const std::vector<double>& values) {
  const bool same = std::all_of(values.begin(), values.end(), [&](double v) { return v == values[0]; });
  return same ? values[0] : kNaN;
}

// Back from the variables of the program to one signed coefficient per sample.
std::vector<double> coefficients(const Problem& problem, const std::vector<double>& alpha, Index n) {
  std::vector<double> c(n, 0.0);
  for (Index t = 0; t < problem.size(); ++t) c[t % n] += problem.y[t] * alpha[t];
  return c;
}

// Where all variables of one sign are at their bound, any offset beyond some value is as good as another.
void require_offset(const MachineSpec& spec, const SolverResult& result) {
  if (std::isinf(result.rho) || std::isinf(result.r))
    throw InvalidInput("nu = " + std::to_string(spec.nu) +
                       " is as large as it can be: all coefficients of one sign are at their bounds, which leaves the "
                       "offset undetermined; lower nu");
}

// The coefficients of nu-SVC are divided by the width of the margin.
void require_margin(const SolverResult& result) {
  if (result.r == 0 || std::isinf(result.objective))
    throw InvalidInput("the classes overlap so far that nu leaves no margin between them (r = " +
                       std::to_string(result.r) + "), and the coefficients, divided by it, are infinite: lower nu");
}

// Negative eigenvalues are the caller's, or rounding's.
bool is_semidefinite(const KernelSpec& kernel) {
  switch (kernel.type) {
    case KernelType::linear:
      return true;
    case KernelType::rbf:
      return kernel.gamma >= 0;
    case KernelType::poly:
      return kernel.gamma >= 0 && kernel.coef0 >= 0;
    default:
      return false;
  }
}

// What the problems of a fit have in common.
struct Fit {
  const TrainInput& input;
  const TrainOptions& options;
  Watch& watch;
  Index problems;
  std::size_t cache_bytes;  // of each problem
  Precision precision;
};

Fit make_fit(const TrainInput& input, const TrainOptions& options, Watch& watch, Index problems,
             std::size_t cache_bytes, ThreadPool& pool) {
  const bool single = SinglePrecision(options.machine.machine, options.kernel, input.x, input.rows, pool).enough();
  return {input, options, watch, problems, cache_bytes, single ? Precision::single : Precision::full};
}

// Works on one problem with kernel rows of floats, as LIBSVM does, and where these are proved too coarse with rows of
// doubles.
class Smo {
 public:
  Smo(const Fit& fit, const Task& task, Problem problem, SolverOptions solver, Progress progress, ThreadPool& pool)
      : fit_(fit), task_(task), problem_(std::move(problem)), solver_(std::move(solver)), progress_(progress),
        pool_(pool) {
    SelectorSpec spec = fit.options.selector;
    if (spec.seed) spec.seed = derived_seed(*spec.seed, progress.problem);
    selector_ = make_selector(spec, problem_.size());
  }

  SolverResult run() {
    const SolverResult result = solve_with<float>(fit_.precision);
    return result.stop_reason == StopReason::stalled ? with_doubles(result.iterations) : result;
  }

  const QStatistics& statistics() const { return statistics_; }

 private:
  // Begins anew: where the steps have led is no better than what they promised. Goes on from each end that is reached:
  // v, summed anew, tells whether it is one. Half of LIBSVM's cap of iterations is added, so that this ends.
  SolverResult with_doubles(std::int64_t done) {
    const std::int64_t cap = done + libsvm_cap(problem_.size()) / 2;
    const bool capped = solver_.max_iter < 0 || cap < solver_.max_iter;
    if (capped) solver_.max_iter = cap;
    for (;;) {
      progress_.iteration = done;
      SolverResult result = solve_with<double>(Precision::full);
      if (capped && result.stop_reason == StopReason::max_iter) result.stop_reason = StopReason::stalled;
      if (result.stop_reason != StopReason::stationary || result.iterations == done) return result;
      done = result.iterations;
      problem_.alpha = std::move(result.alpha);
    }
  }

  template <class T>
  SolverResult solve_with(Precision precision) {
    auto kernel = make_kernel(fit_.input.x, task_.rows, fit_.options.kernel, pool_, precision);
    const bool doubled = is_regression(fit_.options.machine.machine);
    const auto q = make_qmatrix<T>(std::move(kernel), fit_.cache_bytes, doubled);
    SolverResult result = solve(problem_, *q, *selector_, solver_, fit_.watch, progress_);
    statistics_ += q->statistics();
    progress_.marks = result.marks;
    return result;
  }

  const Fit& fit_;
  const Task& task_;
  Problem problem_;
  SolverOptions solver_;
  Progress progress_;
  ThreadPool& pool_;
  std::unique_ptr<Selector> selector_;
  QStatistics statistics_;
};

// Counts, and back from the program's variables to the machine's.
Solved finished(const MachineSpec& spec, const Problem& problem, Index n, Report report) {
  SolverResult& result = report.result;
  Solved solved;
  solved.coefficient = coefficients(problem, result.alpha, n);
  double sum = 0.0;
  for (Index t = 0; t < n; ++t) {
    const double size = std::fabs(solved.coefficient[t]);
    sum += size;
    report.n_sv += size > 0;
    report.n_bsv += size > 0 && size >= problem.bound[t];
  }
  const bool has_nu = spec.machine == Machine::c_svc || spec.machine == Machine::epsilon_svr;
  report.nu = has_nu ? sum / (common_value(problem.bound) * static_cast<double>(n)) : kNaN;

  if (result.stop_reason != StopReason::cancelled && !std::isfinite(result.objective)) throw_overflow();
  require_offset(spec, result);
  if (spec.machine == Machine::nu_svc) {
    const double r = result.r;
    for (double& c : solved.coefficient) c /= r;
    result.rho /= r;
    result.range /= std::fabs(r);
    result.objective = result.objective / r / r;
    require_margin(result);
  }
  result.alpha.clear();
  solved.report = std::move(report);
  return solved;
}

Solved solve_task(const Fit& fit, const Task& task, Index number, ThreadPool& pool) {
  const auto begin = std::chrono::steady_clock::now();
  const TrainOptions& options = fit.options;
  const Problem problem =
      make_problem(options.machine, task.target, task.weight, task.start.empty() ? nullptr : task.start.data());

  Progress progress;
  progress.problem = number;
  progress.problems = fit.problems;
  Report report;
  SolverOptions solver = options.solver;
  solver.pool = &pool;
  solver.semidefinite = is_semidefinite(options.kernel);
  solver.trace = [&report](const TracePoint& point) { report.trace.push_back(point); };
  if (options.algorithm == Algorithm::decomposition) {
    report.result = solve_linear(problem, fit.input.x, task.rows, options.selector, fit.cache_bytes, solver, pool,
                                 fit.watch, progress, report.kernel);
  } else {
    Smo smo(fit, task, problem, solver, progress, pool);
    report.result = smo.run();
    report.kernel = smo.statistics();
  }
  Solved solved = finished(options.machine, problem, static_cast<Index>(task.rows.size()), std::move(report));
  solved.report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return solved;
}

double weight_of(const TrainInput& input, Index i) { return input.weight ? input.weight[i] : 1.0; }

Task whole_task(const TrainInput& input) {
  Task task;
  const auto n = static_cast<Index>(input.rows.size());
  task.rows = input.rows;
  for (Index i = 0; i < n; ++i) {
    task.target.push_back(input.y ? input.y[i] : 1.0);
    task.weight.push_back(weight_of(input, i));
  }
  if (input.start) task.start.assign(input.start, input.start + n);
  return task;
}

// The samples of two classes, first those of class a (+1), then those of class b (-1).
Task pair_task(const TrainInput& input, const std::vector<std::vector<Index>>& members, Index a, Index b) {
  Task task;
  const auto n = static_cast<Index>(input.rows.size());
  for (const Index c : {a, b}) {
    for (Index i : members[c]) {
      task.rows.push_back(input.rows[i]);
      task.target.push_back(c == a ? 1.0 : -1.0);
      task.weight.push_back(weight_of(input, i) * (input.class_weight ? input.class_weight[c] : 1.0));
      if (input.start) task.start.push_back(input.start[(c == a ? b - 1 : a) * n + i]);
    }
  }
  return task;
}

Model one_problem(const TrainInput& input, const TrainOptions& options, Watch& watch) {
  ThreadPool pool(options.threads);
  const Task task = whole_task(input);
  const Fit fit = make_fit(input, options, watch, 1, options.cache_bytes, pool);
  Solved solved = solve_task(fit, task, 0, pool);
  Model model;
  for (std::size_t i = 0; i < task.rows.size(); ++i) {
    if (solved.coefficient[i] == 0) continue;
    model.support.push_back(static_cast<std::int32_t>(task.rows[i]));
    model.dual_coef.push_back(solved.coefficient[i]);
  }
  model.n_support = {static_cast<std::int32_t>(model.support.size())};
  model.rho = {solved.report.result.rho};
  model.reports.push_back(std::move(solved.report));
  return model;
}

// LIBSVM's layout: support vectors by class; line r of dual_coef holds, for a support vector of class c, its coefficient
// in the problem of c against the r-th other class.
Model assemble(const TrainInput& input, const std::vector<std::vector<Index>>& members, std::vector<Solved> solved) {
  const auto classes = static_cast<Index>(members.size());
  const auto pair_number = [&](Index a, Index b) { return a * (2 * classes - a - 1) / 2 + (b - a - 1); };
  const auto coefficient = [&](Index c, Index k, Index other) {
    return c < other ? solved[pair_number(c, other)].coefficient[k]
                     : solved[pair_number(other, c)].coefficient[members[other].size() + k];
  };
  Model model;
  std::vector<std::vector<double>> lines(classes - 1);
  for (Index c = 0; c < classes; ++c) {
    const std::size_t before = model.support.size();
    for (Index k = 0; k < static_cast<Index>(members[c].size()); ++k) {
      std::vector<double> all;
      for (Index other = 0; other < classes; ++other)
        if (other != c) all.push_back(coefficient(c, k, other));
      if (std::all_of(all.begin(), all.end(), [](double value) { return value == 0; })) continue;
      model.support.push_back(static_cast<std::int32_t>(input.rows[members[c][k]]));
      for (Index r = 0; r < classes - 1; ++r) lines[r].push_back(all[r]);
    }
    model.n_support.push_back(static_cast<std::int32_t>(model.support.size() - before));
  }
  for (const auto& line : lines) model.dual_coef.insert(model.dual_coef.end(), line.begin(), line.end());
  for (Solved& one : solved) {
    model.rho.push_back(one.report.result.rho);
    model.reports.push_back(std::move(one.report));
  }
  return model;
}

Model one_against_one(const TrainInput& input, const TrainOptions& options, Watch& watch) {
  std::vector<std::vector<Index>> members(input.classes);
  for (Index i = 0; i < static_cast<Index>(input.rows.size()); ++i) {
    const double code = input.y[i];
    if (!(code >= 0 && code < static_cast<double>(input.classes)))
      throw InvalidInput("class code " + std::to_string(code) + " is not in 0 .. " + std::to_string(input.classes - 1));
    members[static_cast<Index>(code)].push_back(i);
  }
  for (const auto& samples : members)
    if (samples.empty() || input.classes < 2) throw InvalidInput("every one of at least two classes needs a sample");

  std::vector<std::pair<Index, Index>> pairs;
  for (Index a = 0; a < input.classes; ++a)
    for (Index b = a + 1; b < input.classes; ++b) pairs.emplace_back(a, b);
  const auto n_pairs = static_cast<Index>(pairs.size());

  // Threads share the kernel rows of a lone pair, and otherwise take a pair each.
  const bool spread = n_pairs > 1;
  ThreadPool pool(options.threads), no_pool(1);
  const std::size_t bytes = spread ? options.cache_bytes / pool.size() : options.cache_bytes;
  const Fit fit = make_fit(input, options, watch, n_pairs, bytes, pool);
  std::vector<Solved> solved(n_pairs);
  const auto one = [&](Index k) {
    const Task task = pair_task(input, members, pairs[k].first, pairs[k].second);
    solved[k] = solve_task(fit, task, k, spread ? no_pool : pool);
  };
  if (spread)
    pool.run(n_pairs, one, [&] { watch.check({n_pairs - 1, n_pairs, 0, 0.0, 0}); });
  else
    one(0);
  return assemble(input, members, std::move(solved));
}

}  // namespace

Model train(const TrainInput& input, const TrainOptions& options, Watch& watch) {
  if (input.rows.empty()) throw InvalidInput("there are no samples");
  for (const Index row : input.rows)
    if (row < 0 || row >= row_count(input.x))
      throw InvalidInput("row " + std::to_string(row) + " is not one of the " + std::to_string(row_count(input.x)) +
                         " rows of x");
  if (options.kernel.type == KernelType::precomputed && row_count(input.x) != column_count(input.x))
    throw InvalidInput("a precomputed kernel must be square");
  if (options.algorithm == Algorithm::decomposition) {
    if (options.kernel.type != KernelType::linear) throw InvalidInput("decomposition needs the linear kernel");
    if (!rule_named(options.selector.name).decomposition)
      throw InvalidInput("decomposition does not work with the selector '" + options.selector.name + "'");
  }
  return is_classifier(options.machine.machine) ? one_against_one(input, options, watch)
                                                : one_problem(input, options, watch);
}

}  // namespace dpsvm
