// The solver that keeps w finds the optimum of the solver over all variables, dense or not, from any number of threads.
#include "linear.hpp"

#include <cmath>

#include "check.hpp"
#include "row_products.hpp"
#include "samples.hpp"
#include "train.hpp"

using namespace dpsvm;

namespace {

Model fit(const Matrix& x, const std::vector<double>& y, Machine machine, Algorithm algorithm, int threads) {
  TrainInput input;
  input.x = x;
  input.rows = all_rows(row_count(x));
  input.y = y.data();
  input.classes = 2;
  TrainOptions options;
  options.machine.machine = machine;
  options.kernel.type = KernelType::linear;
  options.algorithm = algorithm;
  options.threads = threads;
  options.solver.tol = 1e-4;
  Watch watch(nullptr, nullptr, 1e300);
  return train(input, options, watch);
}

void same_optimum(Machine machine) {
  const Cloud cloud = make_cloud(1500, 8, 0.3, 21);
  const SolverResult exact = fit(cloud.view(), cloud.y, machine, Algorithm::smo, 1).reports[0].result;
  const Model dense = fit(cloud.view(), cloud.y, machine, Algorithm::decomposition, 1);
  const Csr csr = to_csr(cloud);
  const Model sparse = fit(csr.view(), cloud.y, machine, Algorithm::decomposition, 3);
  const SolverResult& result = dense.reports[0].result;
  CHECK(result.stop_reason == StopReason::stationary);
  CHECK(result.gap < 1e-4);
  CHECK(std::fabs(result.objective - exact.objective) <= 1e-5 * (1 + std::fabs(exact.objective)));
  CHECK(dense.support == sparse.support);
  CHECK(dense.dual_coef == sparse.dual_coef);
}

void rows_without_entries_are_samples_too() {
  const Csr csr{{2.0, 3.0}, {1, 4}, {0, 0, 1, 2}, 3, 5};
  ThreadPool pool(1);
  const RowProducts rows(csr.view(), {0, 1, 2}, pool);
  const std::vector<double> w{1.0, 10.0, 100.0, 1000.0, 10000.0};
  CHECK_EQUAL(rows.dot(0, w), 0.0);
  CHECK_EQUAL(rows.dot(1, w), 20.0);
  CHECK_EQUAL(rows.dot(2, w), 30000.0);
  CHECK_EQUAL(rows.squared_distance(0, 1), 4.0);
  CHECK_EQUAL(rows.squared_distance(1, 2), 13.0);
  CHECK_EQUAL(rows.squared_distance(2, 2), 0.0);
}

}  // namespace

int main() {
  for (const Machine machine : {Machine::c_svc, Machine::one_class, Machine::epsilon_svr}) same_optimum(machine);
  rows_without_entries_are_samples_too();
  return check::result();
}
