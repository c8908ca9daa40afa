// The five machines end optimal and feasible with every selector; shrinking, threads and cache size change nothing that
// matters; limits stop.
#include <cmath>
#include <numeric>

#include "check.hpp"
#include "samples.hpp"
#include "threads.hpp"
#include "train.hpp"

using namespace dpsvm;

namespace {

constexpr double kUnlimited = 1e300;

Model fit(const Cloud& cloud, const TrainOptions& options, Index classes = 2) {
  TrainInput input;
  input.x = cloud.view();
  input.rows = all_rows(cloud.n);
  input.y = cloud.y.data();
  input.classes = classes;
  Watch watch(nullptr, nullptr, kUnlimited);
  return train(input, options, watch);
}

TrainOptions options_for(Machine machine, const char* selector) {
  TrainOptions options;
  options.machine.machine = machine;
  options.machine.nu = 0.4;
  options.kernel.gamma = 0.5;
  options.solver.tol = 1e-5;
  options.selector.name = selector;
  options.selector.seed = 1;
  return options;
}

// The objective the solver minimised: nu-SVC reports it divided by r^2, which magnifies the tolerance where r is small.
double minimised(const SolverResult& result, Machine machine) {
  return machine == Machine::nu_svc ? result.objective * result.r * result.r : result.objective;
}

void every_selector_finds_the_same_optimum() {
  const Cloud cloud = make_cloud(80, 3, 0.2, 11);
  for (Machine machine : {Machine::c_svc, Machine::nu_svc, Machine::one_class, Machine::epsilon_svr, Machine::nu_svr}) {
    const double expected = minimised(fit(cloud, options_for(machine, "wss2")).reports[0].result, machine);
    for (const Rule* rule : rules()) {
      const SolverResult result = fit(cloud, options_for(machine, rule->name)).reports[0].result;
      const bool stationary = result.stop_reason == StopReason::stationary;
      CHECK(stationary || (rule->once_only && result.stop_reason == StopReason::exhausted));
      CHECK(stationary == (result.gap < 1e-5));
      const double excess = minimised(result, machine) - expected, rounding = 1e-5 * (1 + std::fabs(expected));
      CHECK(excess >= -rounding && (rule->once_only || excess <= rounding));
    }
  }
}

void solutions_are_feasible() {
  const Cloud cloud = make_cloud(120, 4, 0.0, 12);
  const Model svc = fit(cloud, options_for(Machine::c_svc, "wss2"));
  double sum = 0;
  for (double c : svc.dual_coef) {
    sum += c;
    CHECK(std::fabs(c) <= 1.0);
  }
  CHECK(std::fabs(sum) < 1e-12);
  const Model one = fit(cloud, options_for(Machine::one_class, "wss2"));
  CHECK(std::fabs(std::accumulate(one.dual_coef.begin(), one.dual_coef.end(), 0.0) - 0.4 * 120) < 1e-12);
}

void threads_and_cache_change_nothing() {
  Cloud cloud = make_cloud(400, 6, 0.3, 13);
  Random random(2);
  for (double& y : cloud.y) y = static_cast<double>(random.below(4));
  TrainOptions options = options_for(Machine::c_svc, "dpwss");
  const Model serial = fit(cloud, options, 4);
  options.threads = 3;
  options.cache_bytes = 1;
  const Model parallel = fit(cloud, options, 4);
  CHECK(serial.dual_coef == parallel.dual_coef);
  CHECK(serial.rho == parallel.rho);
  CHECK(serial.support == parallel.support);
}

void shrinking_reaches_the_same_optimum() {
  const Cloud cloud = make_cloud(1500, 2, 0.0, 14);
  TrainOptions options = options_for(Machine::c_svc, "wss2");
  options.machine.C = 100;
  const SolverResult with = fit(cloud, options).reports[0].result;
  options.solver.shrinking = false;
  const SolverResult without = fit(cloud, options).reports[0].result;
  CHECK(with.iterations > 1500);  // long enough to shrink
  CHECK(std::fabs(with.objective - without.objective) <= 1e-6 * std::fabs(without.objective));
  CHECK(with.gap < 1e-5);
}

void a_start_at_the_optimum_needs_no_iteration() {
  const Cloud cloud = make_cloud(60, 3, 0.0, 15);
  const TrainOptions options = options_for(Machine::c_svc, "wss2");
  const Model first = fit(cloud, options);
  std::vector<double> start(cloud.n, 0.0);
  for (std::size_t s = 0; s < first.support.size(); ++s) start[first.support[s]] = first.dual_coef[s];
  TrainInput input;
  input.x = cloud.view();
  input.rows = all_rows(cloud.n);
  input.y = cloud.y.data();
  input.classes = 2;
  input.start = start.data();
  Watch watch(nullptr, nullptr, kUnlimited);
  CHECK(train(input, options, watch).reports[0].result.iterations <= 2);
  start[first.support[0]] += 10;  // out of bounds: moved to a feasible point near it
  const SolverResult moved = train(input, options, watch).reports[0].result;
  CHECK(std::fabs(moved.objective - first.reports[0].result.objective) < 1e-6 * std::fabs(moved.objective));
  start[first.support[0]] = std::nan("");
  CHECK_THROWS(train(input, options, watch), InvalidInput);
}

void limits_stop_the_work() {
  const Cloud cloud = make_cloud(200, 3, 0.0, 16);
  TrainOptions options = options_for(Machine::c_svc, "wss2");
  for (std::int64_t limit : {0, 1, 7}) {
    options.solver.max_iter = limit;
    const SolverResult result = fit(cloud, options).reports[0].result;
    CHECK(result.stop_reason == StopReason::max_iter);
    CHECK_EQUAL(result.iterations, limit);
  }
  options.solver.max_iter = -1;
  TrainInput input;
  input.x = cloud.view();
  input.rows = all_rows(cloud.n);
  input.y = cloud.y.data();
  input.classes = 2;
  Watch late(nullptr, nullptr, 0.0);
  CHECK(train(input, options, late).reports[0].result.stop_reason == StopReason::time_limit);
}

void bad_input_is_refused() {
  const Cloud cloud = make_cloud(20, 2, 0.0, 17);
  TrainOptions options = options_for(Machine::c_svc, "wss9");
  CHECK_THROWS(fit(cloud, options), InvalidInput);
  options = options_for(Machine::c_svc, "dpwss");
  options.selector.numbers["sigma"] = 1.0;
  CHECK_THROWS(fit(cloud, options), InvalidInput);
  options = options_for(Machine::nu_svc, "wss2");
  options.machine.nu = 0.999;
  CHECK_THROWS(fit(cloud, options), InvalidInput);
  CHECK_THROWS(fit(cloud, options_for(Machine::c_svc, "wss2"), 3), InvalidInput);
}

void pool_runs_every_task_once_and_passes_errors_on() {
  ThreadPool pool(4);
  for (int round = 0; round < 200; ++round) {
    std::vector<int> seen(37, 0);
    pool.run(37, [&](Index k) { ++seen[k]; });
    for (int count : seen) CHECK_EQUAL(count, 1);
  }
  CHECK_THROWS(pool.run(8,
                        [](Index k) {
                          if (k == 5) throw InvalidInput("five");
                        }),
               InvalidInput);
}

}  // namespace

int main() {
  every_selector_finds_the_same_optimum();
  solutions_are_feasible();
  threads_and_cache_change_nothing();
  shrinking_reaches_the_same_optimum();
  a_start_at_the_optimum_needs_no_iteration();
  limits_stop_the_work();
  bad_input_is_refused();
  pool_runs_every_task_once_and_passes_errors_on();
  return check::result();
}
