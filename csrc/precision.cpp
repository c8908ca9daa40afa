#include "precision.hpp"

#include <algorithm>
#include <cmath>

#include "entries.hpp"
#include "norms.hpp"

namespace dpsvm {

namespace {

constexpr double kUnit = 1.0 / (1 << 24);  // u

constexpr double kMostError = 3e-6, kShare = 3e-4;

// Rows whose neighbours are looked for, among how many, and which of these is near: the third of 128.
constexpr Index kAnchors = 16, kSample = 128, kNear = 3;

// Fewer rows cannot tell how near they usually are.
constexpr Index kFewest = 16;

template <class V>
double squared_distance(const DenseView<V>& view, Index i, Index j) {
  const V *x = view.row(i), *z = view.row(j);
  double sum = 0.0;
  for (Index k = 0; k < view.cols; ++k) {
    const double difference = static_cast<double>(x[k]) - static_cast<double>(z[k]);
    sum += difference * difference;
  }
  return sum;
}

template <class V, class I>
double squared_distance(const CsrView<V, I>& view, Index i, Index j) {
  Index a = view.begin(i), b = view.begin(j);
  double sum = 0.0;
  while (a < view.end(i) || b < view.end(j)) {
    const bool of_i = b == view.end(j) || (a < view.end(i) && view.columns[a] <= view.columns[b]);
    const bool of_j = a == view.end(i) || (b < view.end(j) && view.columns[b] <= view.columns[a]);
    const double difference =
        (of_i ? static_cast<double>(view.values[a++]) : 0.0) - (of_j ? static_cast<double>(view.values[b++]) : 0.0);
    sum += difference * difference;
  }
  return sum;
}

// The squared distance from row `at` of `rows` to its near neighbours in the sample, equal rows left out; 0 if it has
// too few.
double near_distance(const Matrix& matrix, const std::vector<Index>& rows, Index at, Index count) {
  const auto n = static_cast<Index>(rows.size());
  std::vector<double> squared;
  for (Index k = 0; k < count; ++k) {
    const double d = std::visit(
        [&](const auto& view) { return squared_distance(view, rows[at], rows[k * n / count]); }, matrix);
    if (d > 0) squared.push_back(d);
  }
  const auto rank = static_cast<std::size_t>(std::max<Index>(kNear * count / kSample, 1)) - 1;
  if (squared.size() <= rank) return 0.0;
  std::nth_element(squared.begin(), squared.begin() + rank, squared.end());
  return squared[rank];
}

}  // namespace

SinglePrecision::SinglePrecision(const KernelSpec& spec, const Matrix& matrix, const std::vector<Index>& rows,
                                 ThreadPool& pool)
    : gamma_(spec.gamma) {
  const auto n = static_cast<Index>(rows.size());
  if (!is_single_precision(matrix) || spec.type != KernelType::rbf || n < kFewest) return;
  const auto squared = squared_norms<float>(matrix, rows, pool);
  const auto scale = [&](double terms) { return (1 + std::sqrt(terms) / 8) * gamma_; };
  scale_ = scale(static_cast<double>(column_count(matrix)));
  enough_ = judge(matrix, rows, squared, scale_);
  if (enough_) return;
  const auto [entries, ones] = count_entries(matrix, rows, pool);
  scale_ = scale(static_cast<double>(entries) / static_cast<double>(n));
  enough_ = judge(matrix, rows, squared, ones == entries ? 0.0 : scale_);
}

double SinglePrecision::error(double scale, double squared_norm) { return kUnit * (0.5 + scale * squared_norm); }

bool SinglePrecision::judge(const Matrix& matrix, const std::vector<Index>& rows, const std::vector<float>& squared,
                            double scale) {
  if (!(error(scale, *std::max_element(squared.begin(), squared.end())) <= kMostError)) return false;
  const auto n = static_cast<Index>(rows.size());
  allowed_ = kMostError;
  for (Index k = 0; k < kAnchors; ++k) {
    const Index at = (2 * k + 1) * n / (2 * kAnchors);
    const double allowed = kShare * gamma_ * near_distance(matrix, rows, at, std::min(n, kSample));
    if (error(scale, squared[at]) > allowed) return false;
    allowed_ = std::min(allowed_, allowed);
  }
  return true;
}

}  // namespace dpsvm
