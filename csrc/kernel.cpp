#include "kernel.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <sstream>
#include <string>
#include <utility>

#include "norms.hpp"
#include "samples.hpp"
#include "simd.hpp"

namespace dpsvm {

namespace {

// Multiplications below which waking another thread costs more than it saves.
constexpr Index kWorthThreads = 100'000;

// Bytes of a sample that are multiplied in about the time in which an entry is written to fresh memory.
constexpr Index kFreshBytes = 128;

// Rows computed together at the most, and the dot products that a thread makes of them at a time: its first-level cache
// holds these.
constexpr Index kMostRows = 32, kScratchBytes = 32 << 10;

void rbf(double gamma, double xx, const double* squared, const double* s, double* out, Index n) {
  simd().rbf_f64(gamma, xx, squared, s, out, n);
}
void rbf(double gamma, double xx, const double* squared, const double* s, float* out, Index n) {
  simd().rbf_rounded(gamma, xx, squared, s, out, n);
}
void rbf(float gamma, float xx, const float* squared, const float* s, float* out, Index n) {
  simd().rbf_f32(gamma, xx, squared, s, out, n);
}

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
      : spec_(spec), samples_(make_samples<T>(matrix, rows, true, pool)),
        squared_(squared_norms<T>(matrix, rows, pool)), pool_(pool) {}

  Index size() const override { return samples_->size(); }
  Index together() const override { return samples_->together(); }
  Index effort() const override { return 1 + samples_->row_bytes() / kFreshBytes; }

  void block(const Index* rows, Index count, Index begin, Index end, float* const* out) override {
    in_parts(rows, count, begin, end, out);
  }
  void block(const Index* rows, Index count, Index begin, Index end, double* const* out) override {
    in_parts(rows, count, begin, end, out);
  }

  double diagonal(Index i) const override {
    T value = squared_[i];
    apply_kernel(spec_, squared_[i], &squared_[i], &value, &value, 1);
    return static_cast<double>(value);
  }

  void swap(Index i, Index j) override {
    samples_->swap(i, j);
    std::swap(squared_[i], squared_[j]);
  }

 private:
  using Rows = Samples<T>;

  template <class Out>
  void in_parts(const Index* rows, Index count, Index begin, Index end, Out* const* out) {
    for (Index r = 0; r < count; r += kMostRows)
      some_rows(rows + r, std::min(kMostRows, count - r), begin, end, out + r);
  }

  template <class Out>
  void some_rows(const Index* rows, Index count, Index begin, Index end, Out* const* out) {
    const Index features = samples_->features();
    dense_.resize(count * features);
    for (Index r = 0; r < count; ++r) samples_->expand(rows[r], dense_.data() + r * features);
    samples_->pack(dense_.data(), count, packed_);
    const Index width = (kScratch / std::max(Rows::lines(count), kFewestLines) / Rows::kAlign - 1) * Rows::kAlign;
    const Index first = begin / width, last = (end + width - 1) / width;
    const auto piece = [&](Index p) {
      const Index start = (first + p) * width;
      columns(rows, count, std::max(begin, start), std::min(end, start + width), begin, out);
    };
    if (count * (end - begin) * features < kWorthThreads)
      for (Index p = 0; p < last - first; ++p) piece(p);
    else
      pool_.run(last - first, piece);
  }

  // The part of the block that lies in the columns [from, to).
  template <class Out>
  void columns(const Index* rows, Index count, Index from, Index to, Index begin, Out* const* out) const {
    const Index aligned = from / Rows::kAlign * Rows::kAlign;
    const Index ld = (to - aligned + 2 * Rows::kAlign - 1) / Rows::kAlign * Rows::kAlign;  // lines apart in the cache
    alignas(kPanelBytes) T dots[kScratch];
    samples_->dots(packed_, count, aligned, to, dots, ld);
    for (Index r = 0; r < count; ++r) {
      T* line = dots + r * ld + (from - aligned);
      if constexpr (sizeof(Out) > sizeof(T)) {
        apply_kernel(spec_, squared_[rows[r]], &squared_[from], line, line, to - from);
        std::copy_n(line, to - from, out[r] + (from - begin));
      } else {
        apply_kernel(spec_, squared_[rows[r]], &squared_[from], line, out[r] + (from - begin), to - from);
      }
    }
  }

  static constexpr Index kScratch = kScratchBytes / sizeof(T);
  static constexpr Index kFewestLines = 4;  // so that the columns of a row are enough pieces for all threads
  static_assert(kScratch / kMostRows >= 2 * Rows::kAlign, "a piece has columns");

  KernelSpec spec_;
  std::unique_ptr<Samples<T>> samples_;
  std::vector<T> squared_;  // [size] |x_i|^2
  std::vector<T> dense_;    // scratch: the queries of the current block
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
    copy(rows, count, begin, end, out);
  }
  void block(const Index* rows, Index count, Index begin, Index end, double* const* out) override {
    copy(rows, count, begin, end, out);
  }

  double diagonal(Index i) const override { return static_cast<double>(view_.row(ids_[i])[ids_[i]]); }

  void swap(Index i, Index j) override { std::swap(ids_[i], ids_[j]); }

 private:
  template <class Out>
  void copy(const Index* rows, Index count, Index begin, Index end, Out* const* out) const {
    for (Index r = 0; r < count; ++r) {
      const auto* line = view_.row(ids_[rows[r]]);
      for (Index j = begin; j < end; ++j) out[r][j - begin] = static_cast<Out>(line[ids_[j]]);
    }
  }

  View view_;
  std::vector<Index> ids_;  // position -> row and column of the Gram matrix
};

bool fits(double value) { return std::fabs(value) <= std::numeric_limits<float>::max(); }

std::string in_digits(double value) {
  std::ostringstream text;
  text << value;
  return text.str();
}

template <class V>
void require_to_fit(const DenseView<V>& gram, const std::vector<Index>& rows) {
  for (const Index i : rows)
    for (const Index j : rows)
      if (!fits(static_cast<double>(gram.row(i)[j])))
        throw InvalidInput("the kernel value of samples " + std::to_string(i) + " and " + std::to_string(j) + " is " +
                           in_digits(static_cast<double>(gram.row(i)[j])) +
                           ", which does not fit single precision: scale the kernel");
}

// The kernel is poly: where coef0 is negative, gamma <x, z> + coef0 may be larger between two samples than between either
// and itself.
void require_to_fit(const KernelSpec& spec, const std::vector<double>& squared) {
  const double most = *std::max_element(squared.begin(), squared.end());
  const double largest = power(std::fabs(spec.gamma) * most + std::fabs(spec.coef0), spec.degree);
  if (!fits(largest))
    throw InvalidInput("kernel values can be as large as (gamma |x|^2 + |coef0|)^degree = " + in_digits(largest) +
                       ", which does not fit single precision: scale the features, or lower degree or |coef0|");
}

std::unique_ptr<Kernel> make_gram(const Matrix& matrix, const std::vector<Index>& rows) {
  if (row_count(matrix) != column_count(matrix))
    throw InvalidInput("a precomputed kernel must be square, not " + std::to_string(row_count(matrix)) + " x " +
                       std::to_string(column_count(matrix)));
  if (const auto* view = std::get_if<DenseView<double>>(&matrix)) {
    require_to_fit(*view, rows);
    return std::make_unique<GramKernel<DenseView<double>>>(*view, rows);
  }
  if (const auto* view = std::get_if<DenseView<float>>(&matrix))
    return std::make_unique<GramKernel<DenseView<float>>>(*view, rows);
  throw InvalidInput("a precomputed kernel must be dense");
}

}  // namespace

template <class T, class Out>
void apply_kernel(const KernelSpec& spec, T squared_x, const T* squared, const T* s, Out* out, Index n) {
  const T gamma = static_cast<T>(spec.gamma), coef0 = static_cast<T>(spec.coef0);
  const auto each = [&](auto kernel) {
    for (Index j = 0; j < n; ++j) out[j] = static_cast<Out>(kernel(s[j]));
  };
  switch (spec.type) {
    case KernelType::linear:
    case KernelType::precomputed:
      return each([](T dot) { return dot; });
    case KernelType::poly:
      return each([&](T dot) { return power(gamma * dot + coef0, spec.degree); });
    case KernelType::rbf:
      return rbf(gamma, squared_x, squared, s, out, n);
    case KernelType::sigmoid:
      return each([&](T dot) { return std::tanh(gamma * dot + coef0); });
  }
}

template void apply_kernel(const KernelSpec&, float, const float*, const float*, float*, Index);
template void apply_kernel(const KernelSpec&, double, const double*, const double*, double*, Index);
template void apply_kernel(const KernelSpec&, double, const double*, const double*, float*, Index);

std::unique_ptr<Kernel> make_kernel(const Matrix& matrix, const std::vector<Index>& rows, const KernelSpec& spec,
                                    ThreadPool& pool, Precision precision) {
  std::unique_ptr<Kernel> kernel;
  if (spec.type == KernelType::precomputed)
    kernel = make_gram(matrix, rows);
  else if (precision == Precision::single)
    kernel = std::make_unique<DotKernel<float>>(matrix, rows, spec, pool);
  else
    kernel = std::make_unique<DotKernel<double>>(matrix, rows, spec, pool);
  if (spec.type == KernelType::poly && spec.coef0 < 0) require_to_fit(spec, squared_norms<double>(matrix, rows, pool));
  for (Index i = 0; i < kernel->size(); ++i)
    if (!fits(kernel->diagonal(i)))
      throw InvalidInput("the kernel value of sample " + std::to_string(rows[i]) + " with itself is " +
                         in_digits(kernel->diagonal(i)) + ", which does not fit single precision: scale the features");
  return kernel;
}

}  // namespace dpsvm
