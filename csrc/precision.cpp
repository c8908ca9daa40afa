#include "precision.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "entries.hpp"
#include "norms.hpp"

namespace dpsvm {

namespace {

constexpr double kUnit = 1.0 / (1 << 24);  // u

// Shares of what parts a row from most others, in the mean and of every row; from near ones; of the decision values' range.
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

}  // namespace

struct SinglePrecision::Anchor {
  Index at;                   // among the rows
  double near = 0, half = 0;  // squared distances to near neighbours, and to the nearer half of all others
};

// The distances are to a sample of the rows, equal ones left out; 0 if these are too few.
SinglePrecision::Anchor SinglePrecision::make_anchor(const Matrix& matrix, const std::vector<Index>& rows, Index at) {
  const Index n = static_cast<Index>(rows.size()), count = std::min(n, kSample);
  std::vector<double> squared;
  squared.reserve(count);
  std::visit(
      [&](const auto& view) {
        for (Index k = 0; k < count; ++k) squared.push_back(squared_distance(view, rows[at], rows[k * n / count]));
      },
      matrix);
  squared.erase(std::remove(squared.begin(), squared.end(), 0.0), squared.end());
  const Index rank = std::max<Index>(kNear * count / kSample, 1) - 1, middle = static_cast<Index>(squared.size()) / 2;
  if (middle < rank || squared.empty()) return {at};
  std::nth_element(squared.begin(), squared.begin() + middle, squared.end());
  const double half = squared[middle];
  std::nth_element(squared.begin(), squared.begin() + rank, squared.begin() + middle + 1);
  return {at, squared[rank], half};
}

SinglePrecision::SinglePrecision(Machine machine, const KernelSpec& spec, const Matrix& matrix,
                                 const std::vector<Index>& rows, ThreadPool& pool)
    : gamma_(spec.gamma) {
  const auto n = static_cast<Index>(rows.size());
  const bool rescaled = machine == Machine::nu_svc || machine == Machine::nu_svr;
  if (!is_single_precision(matrix) || spec.type != KernelType::rbf || rescaled || n < kFewest ||
      !(gamma_ >= kLeastGamma && gamma_ <= kMostGamma))
    return;
  const auto squared = squared_norms<float>(matrix, rows, pool);
  std::vector<Anchor> anchors;
  for (Index k = 0; k < kAnchors; ++k) anchors.push_back(make_anchor(matrix, rows, (2 * k + 1) * n / (2 * kAnchors)));
  const auto scale = [&](double terms) { return (1 + std::sqrt(terms) / 4) * gamma_; };
  scale_ = scale(static_cast<double>(column_count(matrix)));
  enough_ = judge(anchors, squared, scale_);
  if (enough_) return;
  const auto [entries, ones] = count_entries(matrix, rows, pool);
  scale_ = scale(static_cast<double>(entries) / static_cast<double>(n));
  enough_ = judge(anchors, squared, ones == entries ? 0.0 : scale_);
}

double SinglePrecision::error(double scale, double squared_norm) { return kUnit * (0.5 + scale * squared_norm); }

void SinglePrecision::limit(double norm, double range) {
  if (norm == 0) return;
  const double most = kOfRange * range / norm;  // NaN where the range is not known
  enough_ = enough_ && usual_ <= most;
  allowed_ = std::min(allowed_, most);
}

bool SinglePrecision::judge(const std::vector<Anchor>& anchors, const std::vector<float>& squared, double scale) {
  std::vector<double> halves;
  double allowed = 1.0;
  for (const auto& [at, near, half] : anchors) {
    if (!(error(scale, squared[at]) <= kOfNear * gamma_ * near)) return false;
    allowed = std::min(allowed, kOfNear * gamma_ * near);
    halves.push_back(half);
  }
  std::nth_element(halves.begin(), halves.begin() + kAnchors / 2, halves.end());
  const double far = std::min(gamma_ * halves[kAnchors / 2], 1.0);
  const double largest = error(scale, *std::max_element(squared.begin(), squared.end()));
  usual_ = error(scale, std::accumulate(squared.begin(), squared.end(), 0.0) / static_cast<double>(squared.size()));
  allowed_ = std::min(allowed, kOfMostEach * far);
  return usual_ <= kOfMost * far && largest <= kOfMostEach * far;
}

}  // namespace dpsvm
