// The solver that keeps w finds the optimum of the solver over all variables, dense or not, from any number of threads.
#include <cmath>

#include "check.hpp"
#include "linear.hpp"
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

// Read where they are (many entries, or compressed by the caller) or copied (few, or columns far apart), in some order.
void products_do_not_depend_on_where_rows_lie() {
  constexpr Index kRows = 21, kColumns = 40, kFar = 1000;  // rows: not a multiple of those taken together
  ThreadPool pool(2);
  for (const double zeros : {0.2, 0.9}) {
    const Cloud cloud = make_cloud(kRows, kColumns, zeros, 5);
    const Csr csr = to_csr(cloud);
    Csr far = csr;  // renumbered: in as many columns as here, of more than there are entries
    for (auto& column : far.columns) column *= kFar;
    far.cols = kColumns * kFar + (1 << 16);
    const std::vector<float> floats(cloud.x.begin(), cloud.x.end());
    const std::vector<double> rounded(floats.begin(), floats.end());
    auto rows = all_rows(kRows);
    std::swap(rows[0], rows[13]);

    std::vector<double> w(kColumns);
    for (Index k = 0; k < kColumns; ++k) w[k] = 1.0 / static_cast<double>(k + 3);
    const auto products = [&](const Matrix& matrix) {
      const RowProducts samples(matrix, rows, pool);
      CHECK_EQUAL(samples.size(), kRows);
      std::vector<double> all(kRows), sum(samples.features(), 0.0);
      samples.dots(0, kRows, w, all.data());
      for (Index i = 0; i < kRows; ++i) CHECK_EQUAL(samples.dot(i, w), all[i]);
      for (Index i = 0; i < kRows; ++i) samples.add(i, 0.1 * static_cast<double>(i), sum);
      for (const double each : sum)
        if (each != 0) all.push_back(each);
      for (Index i = 1; i < kRows; ++i) all.push_back(samples.squared_distance(0, i));
      return all;
    };
    CHECK(products(cloud.view()) == products(csr.view()));
    CHECK(products(far.view()).size() >= static_cast<std::size_t>(kRows));
    CHECK(products(DenseView<float>{floats.data(), kRows, kColumns, kColumns}) ==
          products(DenseView<double>{rounded.data(), kRows, kColumns, kColumns}));
  }
}

}  // namespace

int main() {
  for (const Machine machine : {Machine::c_svc, Machine::one_class, Machine::epsilon_svr}) same_optimum(machine);
  rows_without_entries_are_samples_too();
  products_do_not_depend_on_where_rows_lie();
  return check::result();
}
