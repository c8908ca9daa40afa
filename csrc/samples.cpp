#include "samples.hpp"

#include <algorithm>
#include <new>
#include <utility>

#include "entries.hpp"
#include "simd.hpp"

namespace dpsvm {

namespace {

// A share of nonzero entries from which panels are used: they multiply several entries at once, but all of them.
constexpr double kDenseEnough = 0.25;

// Samples that take more are read anew for each query from the processor's last cache, or from memory: time enough to
// answer several, or many.
constexpr Index kCacheBytes = Index{1} << 20, kLastCacheBytes = Index{16} << 20;

struct AlignedFree {
  void operator()(void* p) const { ::operator delete (p, std::align_val_t{kPanelBytes}); }
};

template <class T>
std::unique_ptr<T[], AlignedFree> aligned_array(Index n) {
  const auto bytes = static_cast<std::size_t>((n * sizeof(T) + kPanelBytes - 1) / kPanelBytes + 1) * kPanelBytes;
  return std::unique_ptr<T[], AlignedFree>(static_cast<T*>(::operator new (bytes, std::align_val_t{kPanelBytes})));
}

template <class T>
void dots_of_panels(const T* panels, Index n_panels, Index depth, const T* const* queries, Index count, T* out,
                    Index ld) {
  if constexpr (std::is_same_v<T, float>)
    simd().dots_f32(panels, n_panels, depth, queries, count, out, ld);
  else
    simd().dots_f64(panels, n_panels, depth, queries, count, out, ld);
}

template <class T>
void dots_of_sparse(const SparseView<T>& rows, const Index* order, Index n, const T* queries, T* out, Index ld) {
  if constexpr (std::is_same_v<T, float>)
    simd().sparse_f32(rows, order, n, queries, out, ld);
  else
    simd().sparse_f64(rows, order, n, queries, out, ld);
}

template <class T>
void dots_of_sparse(const SparseView<T>& rows, const Index* order, Index n, const T* query, T* out) {
  if constexpr (std::is_same_v<T, float>)
    simd().sparse_one_f32(rows, order, n, query, out);
  else
    simd().sparse_one_f64(rows, order, n, query, out);
}

template <class T>
void shared_bits(const std::uint64_t* panels, Index n_panels, Index words, const std::uint64_t* query, T* out) {
  if constexpr (std::is_same_v<T, float>)
    simd().bits_f32(panels, n_panels, words, query, out);
  else
    simd().bits_f64(panels, n_panels, words, query, out);
}

// Panels of kPanel<T> rows, feature after feature (simd.hpp).
template <class T>
class PanelSamples final : public Samples<T> {
 public:
  template <class View>
  PanelSamples(const View& view, const std::vector<Index>& rows, ColumnMap columns, ThreadPool& pool)
      : Samples<T>(std::move(columns)), size_(static_cast<Index>(rows.size())), features_(this->features()),
        values_(aligned_array<T>((size_ + kPanel<T> - 1) / kPanel<T> * kPanel<T> * features_)) {
    const Index panels = (size_ + kPanel<T> - 1) / kPanel<T>;
    pool.run_ranges(panels, kWorthAThread / (kPanel<T> * features_) + 1, [&](Index first, Index last) {
      for (Index p = first; p < last; ++p) fill(view, rows.data(), p * kPanel<T>);
    });
  }

  Index row_bytes() const override { return features_ * static_cast<Index>(sizeof(T)); }

  Index together() const override {
    const Index bytes = size_ * row_bytes();
    return bytes > kLastCacheBytes ? 16 : bytes > kCacheBytes ? 8 : 1;
  }

  Index size() const override { return size_; }

  void expand(Index i, T* dense) const override {
    for (Index k = 0; k < features_; ++k) dense[k] = at(i, k);
  }

  void pack(const T* dense, Index count, Queries<T>& packed) const override {
    packed.values.assign(dense, dense + count * features_);
  }

  void dots(const Queries<T>& packed, Index count, Index begin, Index end, T* out, Index ld) const override {
    static_assert(Samples<T>::kAlign % kPanel<T> == 0, "a range of rows starts at a panel");
    const Index first = begin / kPanel<T>, last = (end + kPanel<T> - 1) / kPanel<T>;
    constexpr Index kAtOnce = 64;
    for (Index r = 0; r < count; r += kAtOnce) {
      const Index now = std::min(kAtOnce, count - r);
      const T* queries[kAtOnce];
      for (Index q = 0; q < now; ++q) queries[q] = packed.values.data() + (r + q) * features_;
      dots_of_panels(values_.get() + first * kPanel<T> * features_, last - first, features_, queries, now, out + r * ld,
                     ld);
    }
  }

  void swap(Index i, Index j) override {
    for (Index k = 0; k < features_; ++k) std::swap(at(i, k), at(j, k));
  }

 private:
  T& at(Index i, Index k) { return values_[(i / kPanel<T> * features_ + k) * kPanel<T> + i % kPanel<T>]; }
  T at(Index i, Index k) const { return const_cast<PanelSamples&>(*this).at(i, k); }

  // Writes the panel of the rows from `first` on; a last one that is not full is filled up with zeros.
  template <class View>
  void fill(const View& view, const Index* rows, Index first) {
    scatter(view, rows, first);
  }

  template <class V>
  void fill(const DenseView<V>& view, const Index* rows, Index first) {
    if (this->columns_.renumbered() || size_ - first < kPanel<T>) return scatter(view, rows, first);
    const V* x[kPanel<T>];
    for (Index r = 0; r < kPanel<T>; ++r) x[r] = view.row(rows[first + r]);
    T* panel = &at(first, 0);
    for (Index k = 0; k < features_; ++k)
      for (Index r = 0; r < kPanel<T>; ++r) panel[k * kPanel<T> + r] = static_cast<T>(x[r][k]);
  }

  template <class View>
  void scatter(const View& view, const Index* rows, Index first) {
    std::fill_n(&at(first, 0), kPanel<T> * features_, T{});
    for (Index i = first; i < std::min(size_, first + kPanel<T>); ++i)
      for_each_entry(view, rows[i], [&](Index k, auto value) { at(i, this->columns_[k]) = static_cast<T>(value); });
  }

  Index size_, features_;
  std::unique_ptr<T[], AlignedFree> values_;
};

// Compressed rows read through a permutation, so that a swap costs nothing.
template <class T>
class SparseSamples final : public Samples<T> {
 public:
  explicit SparseSamples(ColumnMap columns) : Samples<T>(std::move(columns)), features_(this->features()) {
    offsets_.push_back(0);
  }

  void reserve(Index rows, Index entries) {
    values_.reserve(entries);
    columns_.reserve(entries);
    offsets_.reserve(rows + 1);
    order_.reserve(rows);
  }

  void push(std::int32_t column, T value) {
    values_.push_back(value);
    columns_.push_back(column);
  }

  void end_row() {
    order_.push_back(static_cast<Index>(order_.size()));
    offsets_.push_back(static_cast<Index>(values_.size()));
  }

  Index size() const override { return static_cast<Index>(order_.size()); }
  Index together() const override { return kTogether; }

  Index row_bytes() const override {
    const auto bytes = static_cast<Index>(values_.size() * (sizeof(T) + sizeof(std::int32_t)));
    return bytes / std::max<Index>(size(), 1);
  }

  void expand(Index i, T* dense) const override {
    std::fill_n(dense, features_, T{});
    const Index row = order_[i];
    for (Index e = offsets_[row]; e < offsets_[row + 1]; ++e) dense[columns_[e]] = values_[e];
  }

  // Groups of kTogether queries interleaved, the last one filled up with zeros; fewer than kWorthGroup stay as they are.
  void pack(const T* dense, Index count, Queries<T>& packed) const override {
    std::vector<T>& values = packed.values;
    values.clear();
    Index r = 0;
    for (; count - r >= kWorthGroup; r += std::min(kTogether, count - r)) {
      values.resize(values.size() + kTogether * features_);
      T* group = values.data() + values.size() - kTogether * features_;
      const Index filled = std::min(kTogether, count - r);
      for (Index k = 0; k < features_; ++k)
        for (Index q = 0; q < kTogether; ++q)
          group[k * kTogether + q] = q < filled ? dense[(r + q) * features_ + k] : T{};
    }
    values.insert(values.end(), dense + r * features_, dense + count * features_);
    values.resize(values.size() + kPanel<T>);  // a vector may be wider than a group
  }

  void dots(const Queries<T>& packed, Index count, Index begin, Index end, T* out, Index ld) const override {
    const SparseView<T> rows{values_.data(), columns_.data(), offsets_.data()};
    const T* queries = packed.values.data();
    Index r = 0;
    for (; count - r >= kWorthGroup; r += std::min(kTogether, count - r), queries += kTogether * features_)
      dots_of_sparse(rows, order_.data() + begin, end - begin, queries, out + r * ld, ld);
    for (; r < count; ++r, queries += features_)
      dots_of_sparse(rows, order_.data() + begin, end - begin, queries, out + r * ld);
  }

  void swap(Index i, Index j) override { std::swap(order_[i], order_[j]); }

 private:
  using Samples<T>::kWorthGroup;

  Index features_;
  std::vector<T> values_;              // [entries]
  std::vector<std::int32_t> columns_;  // [entries]
  std::vector<Index> offsets_;         // [rows + 1]
  std::vector<Index> order_;           // position -> stored row
};

// Samples whose entries are all 0 or 1, a bit each: a dot product counts the bits two sets share, and is exact. Queries
// must be such sets too. Panels of kBitRows rows, word after word (simd.hpp).
template <class T>
class BitSamples final : public Samples<T> {
 public:
  static constexpr Index kBits = 64;

  BitSamples(Index size, ColumnMap columns)
      : Samples<T>(std::move(columns)), size_(size), features_(this->features()), words_(words_for(features_)),
        bits_((size + kBitRows - 1) / kBitRows * kBitRows * words_) {}

  static Index words_for(Index features) { return (features + kBits - 1) / kBits; }

  void set(Index i, Index k) { word(i, k / kBits) |= bit(k); }

  Index size() const override { return size_; }
  Index row_bytes() const override { return words_ * static_cast<Index>(sizeof(std::uint64_t)); }

  void expand(Index i, T* dense) const override {
    for (Index k = 0; k < features_; ++k) dense[k] = static_cast<T>((word(i, k / kBits) & bit(k)) != 0);
  }

  void pack(const T* dense, Index count, Queries<T>& packed) const override {
    packed.bits.assign(count * words_, 0);
    for (Index q = 0; q < count; ++q)
      for (Index k = 0; k < features_; ++k)
        packed.bits[q * words_ + k / kBits] |= dense[q * features_ + k] != 0 ? bit(k) : 0;
  }

  void dots(const Queries<T>& packed, Index count, Index begin, Index end, T* out, Index ld) const override {
    static_assert(Samples<T>::kAlign % kBitRows == 0, "a range of rows starts at a panel");
    const Index panels = (end - begin + kBitRows - 1) / kBitRows;
    for (Index q = 0; q < count; ++q)
      shared_bits(bits_.data() + begin * words_, panels, words_, packed.bits.data() + q * words_, out + q * ld);
  }

  void swap(Index i, Index j) override {
    for (Index w = 0; w < words_; ++w) std::swap(word(i, w), word(j, w));
  }

 private:
  static std::uint64_t bit(Index k) { return std::uint64_t{1} << (k % kBits); }
  std::uint64_t& word(Index i, Index w) { return bits_[(i / kBitRows * words_ + w) * kBitRows + i % kBitRows]; }
  std::uint64_t word(Index i, Index w) const { return const_cast<BitSamples&>(*this).word(i, w); }

  Index size_, features_, words_;
  std::vector<std::uint64_t> bits_;  // [panel][word][row]
};

template <class T, class View>
std::unique_ptr<Samples<T>> copy(const View& view, const std::vector<Index>& rows, bool for_sets, ThreadPool& pool) {
  const auto n = static_cast<Index>(rows.size());
  const auto [entries, ones] = count_entries(view, rows, pool);

  const ColumnMap columns(view, rows);
  const double all = static_cast<double>(n) * static_cast<double>(columns.size());
  if (for_sets && ones == entries && BitSamples<T>::words_for(columns.size()) * n <= entries) {
    auto bits = std::make_unique<BitSamples<T>>(n, columns);
    for (Index i = 0; i < n; ++i) for_each_entry(view, rows[i], [&](Index k, auto) { bits->set(i, columns[k]); });
    return bits;
  }
  if (static_cast<double>(entries) > kDenseEnough * all)
    return std::make_unique<PanelSamples<T>>(view, rows, columns, pool);
  auto sparse = std::make_unique<SparseSamples<T>>(columns);
  sparse->reserve(n, entries);
  for (Index row : rows) {
    for_each_entry(view, row, [&](Index k, auto value) {
      sparse->push(static_cast<std::int32_t>(columns[k]), static_cast<T>(value));
    });
    sparse->end_row();
  }
  return sparse;
}

}  // namespace

template <class T>
std::unique_ptr<Samples<T>> make_samples(const Matrix& matrix, const std::vector<Index>& rows, bool for_sets,
                                         ThreadPool& pool) {
  return std::visit([&](const auto& view) { return copy<T>(view, rows, for_sets, pool); }, matrix);
}

template std::unique_ptr<Samples<float>> make_samples<float>(const Matrix&, const std::vector<Index>&, bool,
                                                             ThreadPool&);
template std::unique_ptr<Samples<double>> make_samples<double>(const Matrix&, const std::vector<Index>&, bool,
                                                               ThreadPool&);

}  // namespace dpsvm
