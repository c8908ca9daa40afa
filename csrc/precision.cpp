#include "precision.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "entries.hpp"
#include "norms.hpp"

namespace dpsvm {

namespace {

constexpr double kUnit = 1.0 / (1 << 24);  // u

// Shares of what parts a row from most others, in the mean and of every row, from near ones, and of the range of decision
// values.
constexpr double kOfMost = 1e-6, kOfMostEach = 3e-6, kOfNear = 3e-4, kOfRange = 5e-5;

// Beyond, gamma or the squares it is multiplied with leave the range of floats.
constexpr double kLeastGamma = 1e-30, kMostGamma = 1e30;

// Rows whose neighbours are looked for, among how many, and which of these is near.
constexpr Index kAnchors = 8, kSample = 96, kNear = 2;

// Fewer rows cannot tell how near they usually are.
constexpr Index kFewest = 16;

// Several sums at a time: each waits for its last addition.
template <class V>
double squared_distance(const DenseView<V>& view, Index i, Index j) {
  constexpr Index kSums = 8;
  const V *x = view.row(i), *z = view.row(j);
  double sums[kSums] = {};
  const auto add = [&](Index k, Index at) {
    const double difference = static_cast<double>(x[k]) - static_cast<double>(z[k]);
    sums[at] += difference * difference;
  };
  Index k = 0;
  for (; k + kSums <= view.cols; k += kSums)
    for (Index at = 0; at < kSums; ++at) add(k + at, at);
  for (; k < view.cols; ++k) add(k, 0);
  return std::accumulate(sums, sums + kSums, 0.0);
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

struct Distances {
  double near = 0, half = 0;  // squared, to near neighbours, and to the nearer half of all others
};

// From a row to a sample of `count`, equal rows left out; 0 if they are too few.
Distances distances(const Matrix& matrix, Index row, Index count) {
  const Index n = row_count(matrix);
  std::vector<double> squared;
  squared.reserve(count);
  std::visit(
      [&](const auto& view) {
        for (Index k = 0; k < count; ++k) squared.push_back(squared_distance(view, row, k * n / count));
      },
      matrix);
  squared.erase(std::remove(squared.begin(), squared.end(), 0.0), squared.end());
  const Index rank = std::max<Index>(kNear * count / kSample, 1) - 1, middle = static_cast<Index>(squared.size()) / 2;
  if (middle < rank || squared.empty()) return {};
  std::nth_element(squared.begin(), squared.begin() + middle, squared.end());
  const double half = squared[middle];
  std::nth_element(squared.begin(), squared.begin() + rank, squared.begin() + middle + 1);
  return {squared[rank], half};
}

}  // namespace

SinglePrecision::SinglePrecision(Machine machine, const KernelSpec& spec, const Matrix& matrix, ThreadPool& pool)
    : gamma_(spec.gamma) {
  const Index n = row_count(matrix);
  const bool rescaled = machine == Machine::nu_svc || machine == Machine::nu_svr;
  if (!is_single_precision(matrix) || spec.type != KernelType::rbf || rescaled || n < kFewest ||
      !(gamma_ >= kLeastGamma && gamma_ <= kMostGamma))
    return;
  const auto rows = consecutive(0, n);
  const auto squared = squared_norms<float>(matrix, rows, pool);
  const auto scale = [&](double terms) { return (1 + std::sqrt(terms) / 4) * gamma_; };
  scale_ = scale(static_cast<double>(column_count(matrix)));
  enough_ = judge(matrix, squared, scale_);
  if (enough_) return;
  const auto [entries, ones] = count_entries(matrix, rows, pool);
  scale_ = scale(static_cast<double>(entries) / static_cast<double>(n));
  enough_ = judge(matrix, squared, ones == entries ? 0.0 : scale_);
}

double SinglePrecision::error(double scale, double squared_norm) { return kUnit * (0.5 + scale * squared_norm); }

void SinglePrecision::limit(double norm, double range) {
  if (norm == 0) return;
  const double most = kOfRange * range / norm;  // NaN where the range is not known
  enough_ = enough_ && usual_ <= most;
  allowed_ = std::min(allowed_, most);
}

bool SinglePrecision::judge(const Matrix& matrix, const std::vector<float>& squared, double scale) {
  const auto n = static_cast<Index>(squared.size());
  std::vector<double> halves;
  double allowed = 1.0;
  for (Index k = 0; k < kAnchors; ++k) {
    const Index row = (2 * k + 1) * n / (2 * kAnchors);
    const auto [near, half] = distances(matrix, row, std::min(n, kSample));
    if (!(error(scale, squared[row]) <= kOfNear * gamma_ * near)) return false;
    allowed = std::min(allowed, kOfNear * gamma_ * near);
    halves.push_back(half);
  }
  std::nth_element(halves.begin(), halves.begin() + kAnchors / 2, halves.end());
  const double far = std::min(gamma_ * halves[kAnchors / 2], 1.0);
  const double largest = error(scale, *std::max_element(squared.begin(), squared.end()));
  usual_ = error(scale, std::accumulate(squared.begin(), squared.end(), 0.0) / static_cast<double>(n));
  allowed_ = std::min(allowed, kOfMostEach * far);
  return usual_ <= kOfMost * far && largest <= kOfMostEach * far;
}

}  // namespace dpsvm
