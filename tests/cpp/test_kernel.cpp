// Kernel blocks against the formulas, in every layout, after exchanges and with threads.
#include <algorithm>
#include <cmath>
#include <vector>

#include "check.hpp"
#include "kernel.hpp"
#include "norms.hpp"
#include "qmatrix.hpp"
#include "samples.hpp"

using namespace dpsvm;

namespace {

double formula(const KernelSpec& spec, const double* x, const double* z, Index d) {
  double dot = 0, xx = 0, zz = 0;
  for (Index k = 0; k < d; ++k) dot += x[k] * z[k], xx += x[k] * x[k], zz += z[k] * z[k];
  switch (spec.type) {
    case KernelType::poly:
      return std::pow(spec.gamma * dot + spec.coef0, spec.degree);
    case KernelType::rbf:
      return std::exp(-spec.gamma * (xx + zz - 2 * dot));
    case KernelType::sigmoid:
      return std::tanh(spec.gamma * dot + spec.coef0);
    default:
      return dot;
  }
}

std::vector<float> block(Kernel& kernel, const std::vector<Index>& rows, Index begin, Index end) {
  std::vector<float> values(rows.size() * (end - begin));
  std::vector<float*> out;
  for (std::size_t r = 0; r < rows.size(); ++r) out.push_back(values.data() + r * (end - begin));
  kernel.block(rows.data(), static_cast<Index>(rows.size()), begin, end, out.data());
  return values;
}

// One-hot rows go to sets of bits, the others to panels or compressed rows.
void layouts_agree_to_the_bit(const KernelSpec& spec, double zeros, bool one_hot) {
  const Index n = 1203, d = one_hot ? 70 : 13;
  Cloud cloud = make_cloud(n, d, zeros, 5);
  if (one_hot)
    for (double& x : cloud.x) x = x != 0;
  const Csr csr = to_csr(cloud);
  ThreadPool alone(1), three(3);
  const auto dense = make_kernel(cloud.view(), all_rows(n), spec, alone);
  const auto sparse = make_kernel(csr.view(), all_rows(n), spec, three);
  for (Kernel* kernel : {dense.get(), sparse.get()}) {
    kernel->swap(3, 700);
    kernel->swap(3, 11);
  }
  auto order = all_rows(n);
  std::swap(order[3], order[700]);
  std::swap(order[3], order[11]);

  const std::vector<Index> rows = {0, 3, 11, 700, 1202};
  for (auto [begin, end] : {std::pair<Index, Index>{0, n}, {5, 6}, {17, 1001}}) {
    const auto a = block(*dense, rows, begin, end), b = block(*sparse, rows, begin, end);
    CHECK(a == b);
    for (std::size_t r = 0; r < rows.size(); ++r)
      for (Index j = begin; j < end; ++j) {
        const double expected = formula(spec, &cloud.x[order[rows[r]] * d], &cloud.x[order[j] * d], d);
        CHECK(std::fabs(a[r * (end - begin) + (j - begin)] - expected) <= 1e-6 * (1 + std::fabs(expected)));
      }
  }
  CHECK(std::fabs(dense->diagonal(3) - formula(spec, &cloud.x[11 * d], &cloud.x[11 * d], d)) < 1e-12);
  CHECK_EQUAL(dense->diagonal(3), sparse->diagonal(3));
}

// Enough rows that threads share the copying of them, the last panel not full.
template <class T>
void copies_do_not_depend_on_threads(double zeros) {
  const Index n = 1203, d = 70;
  const Cloud cloud = make_cloud(n, d, zeros, 8);
  std::vector<T> x(cloud.x.begin(), cloud.x.end());
  for (std::size_t e = 0; e < x.size(); e += 9) x[e] = T{-0.0};
  const DenseView<T> view{x.data(), n, d, d};
  auto rows = all_rows(n);
  std::reverse(rows.begin() + 5, rows.end());
  ThreadPool alone(1), three(3);
  const KernelSpec spec;
  const Precision precision = std::is_same_v<T, float> ? Precision::single : Precision::full;
  const auto a = make_kernel(view, rows, spec, alone, precision), b = make_kernel(view, rows, spec, three, precision);
  const std::vector<Index> some = {0, 6, 1199, 1202};
  const auto values = block(*a, some, 0, n);
  CHECK(values == block(*b, some, 0, n));
  for (std::size_t r = 0; r < some.size(); ++r) CHECK(std::fabs(values[r * n + some[r]] - 1) < 1e-5);

  const auto squared = squared_norms<T>(view, rows, three);
  ThreadPool one(1);
  CHECK(squared == squared_norms<T>(view, rows, one));
  for (Index i = 0; i < n; ++i) {
    T expected{};
    for (Index k = 0; k < d; ++k) expected += view.row(rows[i])[k] * view.row(rows[i])[k];
    CHECK_EQUAL(squared[i], expected);
  }
}

void far_columns_cost_nothing() {
  const std::vector<double> values = {0.5, 1.0, 2.0, 3.0};
  const std::vector<std::int64_t> columns = {0, 2147483646, 1, 2147483646}, offsets = {0, 1, 2, 4};
  const CsrView<double, std::int64_t> view{values.data(), columns.data(), offsets.data(), 3, 2147483647};
  ThreadPool alone(1);
  KernelSpec linear;
  linear.type = KernelType::linear;
  const auto kernel = make_kernel(view, all_rows(3), linear, alone);
  CHECK(block(*kernel, {1}, 0, 3) == (std::vector<float>{0.0f, 1.0f, 3.0f}));
  CHECK_EQUAL(kernel->diagonal(2), 13.0);
}

void cached_rows_survive_any_order_of_requests(bool doubled) {
  const Index n = 60, d = 3;
  const Cloud cloud = make_cloud(n, d, 0.0, 9);
  const KernelSpec spec;
  ThreadPool alone(1);
  auto q = make_qmatrix(make_kernel(cloud.view(), all_rows(n), spec, alone), 5 * n * sizeof(float), doubled);
  const Index size = doubled ? 2 * n : n;
  auto order = all_rows(size);
  Random random(1);
  for (int round = 0; round < 300; ++round) {
    if (round % 20 == 19) {
      Index i = random.below(size - 1), j = i + 1 + random.below(size - i - 1);
      q->swap({{i, j}});
      std::swap(order[i], order[j]);
    }
    const Index i = random.below(size), length = 1 + random.below(size);
    if (round % 7 == 0) q->prefetch(&i, 1, length);
    const Row row = q->row(i, length);
    for (Index t = 0; t < length; ++t) {
      const double expected = formula(spec, &cloud.x[order[i] % n * d], &cloud.x[order[t] % n * d], d);
      CHECK(std::fabs(row[t] - expected) < 1e-6);
    }
  }
  CHECK(q->statistics().misses > 0);
  CHECK(q->statistics().evaluations >= q->statistics().misses);
  CHECK(q->statistics().seconds > 0);
}

// Rows begun to different lengths are extended together; what each had stays, nothing is computed twice.
void rows_begun_short_are_extended_in_blocks() {
  const Index n = 90, d = 3, count = 70;
  const Cloud cloud = make_cloud(n, d, 0.0, 4);
  const KernelSpec spec;
  ThreadPool alone(1);
  auto q = make_qmatrix(make_kernel(cloud.view(), all_rows(n), spec, alone), 8 * n * n * sizeof(float), false);
  const auto rows = all_rows(count);
  const Index step = q->batch(n);
  CHECK(step > 3);
  std::int64_t values = 0;
  for (Index i = 0; i < count; ++i) {
    const Index length = 10 * (i % 3);
    if (length > 0) q->row(i, length);
    values += n - length;
  }
  const std::int64_t before = q->statistics().evaluations;
  for (Index i = 0; i < count; i += step) q->prefetch(rows.data() + i, std::min(step, count - i), n);
  CHECK_EQUAL(q->statistics().evaluations - before, values);
  for (Index i = 0; i < count; ++i) {
    const Row row = q->row(i, n);
    for (Index t = 0; t < n; ++t) CHECK(std::fabs(row[t] - formula(spec, &cloud.x[i * d], &cloud.x[t * d], d)) < 1e-6);
  }
  CHECK_EQUAL(q->statistics().evaluations - before, values);
}

void values_beyond_singleprecision_are_refused() {
  const std::vector<double> x = {1e30, 1.0};
  const DenseView<double> view{x.data(), 2, 1, 1};
  ThreadPool alone(1);
  KernelSpec linear;
  linear.type = KernelType::linear;
  CHECK_THROWS(make_kernel(view, all_rows(2), linear, alone), InvalidInput);
}

}  // namespace

int main() {
  for (KernelType type : {KernelType::linear, KernelType::poly, KernelType::rbf, KernelType::sigmoid}) {
    KernelSpec spec;
    spec.type = type;
    spec.gamma = 0.3;
    spec.coef0 = 0.5;
    layouts_agree_to_the_bit(spec, 0.1, false);
    layouts_agree_to_the_bit(spec, 0.9, false);
    layouts_agree_to_the_bit(spec, 0.8, true);
  }
  for (double zeros : {0.1, 0.9}) {
    copies_do_not_depend_on_threads<float>(zeros);
    copies_do_not_depend_on_threads<double>(zeros);
  }
  cached_rows_survive_any_order_of_requests(false);
  cached_rows_survive_any_order_of_requests(true);
  rows_begun_short_are_extended_in_blocks();
  far_columns_cost_nothing();
  values_beyond_singleprecision_are_refused();
  return check::result();
}
