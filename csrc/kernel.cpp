#include "kernel.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "norms.hpp"
#include "samples.hpp"
#include "simd.hpp"

namespace dpsvm {

namespace {

// Multiplications below which waking another thread costs more than it saves.
constexpr Index kWorthThreads = 100'000;

// Columns computed at a time: their dot products stay in the first-level cache.
constexpr Index kColumns = 512;

void rbf(double gamma, double xx, const double* squared, double* s, Index n) { simd().rbf_f64(gamma, xx, squared, s, n); }
void rbf(float gamma, float xx, const float* squared, float* s, Index n) { simd().rbf_f32(gamma, xx, squared, s, n); }

void round_to(float* out, const double* x, Index n) { simd().narrow(x, out, n); }
void round_to(float* out, const float* x, Index n) { std::copy_n(x, n, out); }

// Values between -1 and 1 may be computed in single precision. Those of the others grow with the features: K_ii + K_jj -
// 2 K_ij would lose all its digits to rounding on features that are not scaled.
bool is_bounded(KernelType type) { return type == KernelType::rbf || type == KernelType::sigmoid; }

// By repeated squaring, lowest bit first.
template <class T>
T power(T base, int exponent) {
  T result = 1;
  for (; exponent > 0; exponent /= 2) {
    if (exponent % 2 == 1) result *= base;
    base *= base;
  }
  return result;
}

template <class T>
class DotKernel final : public Kernel {
 public:
  DotKernel(const Matrix& matrix, const std::vector<Index>& rows, const KernelSpec& spec, ThreadPool& pool)
      : spec_(spec),
        samples_(make_samples<T>(matrix, rows, true, pool)),
        squared_(squared_norms<T>(matrix, rows, pool)),
        pool_(pool) {}

  Index size() const override { return samples_->size(); }
  Index together() const override { return samples_->together(); }

  void block(const Index* rows, Index count, Index begin, Index end, float* const* out) override {
    const Index features = samples_->features();
    dense_.resize(count * features);
    for (Index r = 0; r < count; ++r) samples_->expand(rows[r], dense_.data() + r * features);
    samples_->pack(dense_.data(), count, packed_);
    const Index first = begin / kColumns, last = (end + kColumns - 1) / kColumns;
    const auto piece = [&](Index p) { columns(rows, count, (first + p) * kColumns, begin, end, out); };
    if (count * (end - begin) * features < kWorthThreads)
      for (Index p = 0; p < last - first; ++p) piece(p);
    else
      pool_.run(last - first, piece);
  }

  double diagonal(Index i) const override {
    T value = squared_[i];
    apply_kernel(spec_, squared_[i], &squared_[i], &value, 1);
    return static_cast<double>(value);
  }

  void swap(Index i, Index j) override {
    samples_->swap(i, j);
    std::swap(squared_[i], squared_[j]);
  }

 private:
  // The part of the block that lies in the columns [start, start + kColumns).
  void columns(const Index* rows, Index count, Index start, Index begin, Index end, float* const* out) const {
    const Index from = std::max(begin, start), to = std::min(end, start + kColumns);
    const Index aligned = from / Samples<T>::kAlign * Samples<T>::kAlign;
    const Index ld = to - aligned + Samples<T>::kAlign;
    const std::unique_ptr<T[]> dots(new T[Samples<T>::lines(count) * ld]);
    samples_->dots(packed_, count, aligned, to, dots.get(), ld);
    for (Index r = 0; r < count; ++r) {
      T* line = dots.get() + r * ld + (from - aligned);
      apply_kernel(spec_, squared_[rows[r]], &squared_[from], line, to - from);
      round_to(out[r] + (from - begin), line, to - from);
    }
  }

  KernelSpec spec_;
  std::unique_ptr<Samples<T>> samples_;
  std::vector<T> squared_;  // [size] |x_i|^2
  std::vector<T> dense_;  // scratch: the queries of the current block
  Queries<T> packed_;
  ThreadPool& pool_;
};

// A Gram matrix the caller computed.
template <class View>
class GramKernel final : public Kernel {
 public:
  GramKernel(const View& view, const std::vector<Index>& rows) : view_(view), ids_(rows) {}

  Index size() const override { return static_cast<Index>(ids_.size()); }

  void block(const Index* rows, Index count, Index begin, Index end, float* const* out) override {
    for (Index r = 0; r < count; ++r) {
      const auto* line = view_.row(ids_[rows[r]]);
      for (Index j = begin; j < end; ++j) out[r][j - begin] = static_cast<float>(line[ids_[j]]);
    }
  }

  double diagonal(Index i) const override { return static_cast<double>(view_.row(ids_[i])[ids_[i]]); }

  void swap(Index i, Index j) override { std::swap(ids_[i], ids_[j]); }

 private:
  View view_;
  std::vector<Index> ids_;  // position -> row and column of the Gram matrix
};

std::unique_ptr<Kernel> make_gram(const Matrix& matrix, const std::vector<Index>& rows) {
  if (row_count(matrix) != column_count(matrix))
    throw InvalidInput("a precomputed kernel must be square, not " + std::to_string(row_count(matrix)) + " x " +
                       std::to_string(column_count(matrix)));
  if (const auto* view = std::get_if<DenseView<double>>(&matrix))
    return std::make_unique<GramKernel<DenseView<double>>>(*view, rows);
  if (const auto* view = std::get_if<DenseView<float>>(&matrix))
    return std::make_unique<GramKernel<DenseView<float>>>(*view, rows);
  throw InvalidInput("a precomputed kernel must be dense");
}

}  // namespace

template <class T>
void apply_kernel(const KernelSpec& spec, T squared_x, const T* squared, T* s, Index n) {
  const T gamma = static_cast<T>(spec.gamma), coef0 = static_cast<T>(spec.coef0);
  switch (spec.type) {
    case KernelType::linear:
    case KernelType::precomputed:
      return;
    case KernelType::poly:
      for (Index j = 0; j < n; ++j) s[j] = power(gamma * s[j] + coef0, spec.degree);
      return;
    case KernelType::rbf:
      rbf(gamma, squared_x, squared, s, n);
      return;
    case KernelType::sigmoid:
      for (Index j = 0; j < n; ++j) s[j] = std::tanh(gamma * s[j] + coef0);
      return;
  }
}

template void apply_kernel<float>(const KernelSpec&, float, const float*, float*, Index);
template void apply_kernel<double>(const KernelSpec&, double, const double*, double*, Index);

std::unique_ptr<Kernel> make_kernel(const Matrix& matrix, const std::vector<Index>& rows,
                                    const KernelSpec& spec, ThreadPool& pool) {
  std::unique_ptr<Kernel> kernel;
  if (spec.type == KernelType::precomputed)
    kernel = make_gram(matrix, rows);
  else if (is_single_precision(matrix) && is_bounded(spec.type))
    kernel = std::make_unique<DotKernel<float>>(matrix, rows, spec, pool);
  else
    kernel = std::make_unique<DotKernel<double>>(matrix, rows, spec, pool);
  for (Index i = 0; i < kernel->size(); ++i)
    if (!(std::fabs(kernel->diagonal(i)) <= std::numeric_limits<float>::max()))
      throw InvalidInput("the kernel value of sample " + std::to_string(rows[i]) +
                         " with itself does not fit single precision: scale the features");
  return kernel;
}

}  // namespace dpsvm
