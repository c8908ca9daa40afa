// The samples of one problem, to be multiplied with a dense vector and added to it.
#pragma once

#include <algorithm>
#include <limits>
#include <memory>
#include <numeric>
#include <variant>
#include <vector>

#include "columns.hpp"
#include "entries.hpp"
#include "matrix.hpp"
#include "norms.hpp"
#include "threads.hpp"
#include "types.hpp"

namespace dpsvm {

// The named rows of a matrix, read where the caller holds them. Copied, to compressed rows, are only those of a dense
// matrix with few entries and those whose columns a ColumnMap renumbers. Sums are in double precision and ascend.
class RowProducts {
 public:
  RowProducts(const Matrix& matrix, const std::vector<Index>& rows, ThreadPool& pool) : matrix_(matrix), rows_(rows) {
    std::visit([&](const auto& view) { look_at(view, pool); }, matrix);
  }

  Index size() const { return static_cast<Index>(rows_.size()); }
  Index features() const { return features_; }
  Index entries() const { return entries_; }

  // out[i - first] = <row i, dense> for first <= i < last
  void dots(Index first, Index last, const std::vector<double>& dense, double* out) const {
    std::visit([&](const auto& view) { dots(view, rows_.data() + first, last - first, dense.data(), out); }, matrix_);
  }

  // <row i, dense>
  double dot(Index i, const std::vector<double>& dense) const {
    return std::visit([&](const auto& view) { return dot(view, rows_[i], dense.data()); }, matrix_);
  }

  // |row i - row j|^2
  double squared_distance(Index i, Index j) const {
    return std::visit([&](const auto& view) { return distance(view, rows_[i], rows_[j]); }, matrix_);
  }

  // dense += factor * row i
  void add(Index i, double factor, std::vector<double>& dense) const {
    std::visit(
        [&](const auto& view) {
          for_each_entry(view, rows_[i], [&](Index k, auto value) { dense[k] += factor * static_cast<double>(value); });
        },
        matrix_);
  }

 private:
  // A share of nonzero entries below which compressed rows are faster to read than dense ones.
  static constexpr double kDenseEnough = 0.25;

  template <class I>
  struct Compressed {
    std::vector<double> values;  // [entries]
    std::vector<I> columns;      // [entries]
    std::vector<I> offsets{0};   // [rows + 1]
  };

  template <class View>
  void look_at(const View& view, ThreadPool& pool) {
    const ColumnMap columns(view, rows_);
    features_ = columns.size();
    entries_ = count_entries(view, rows_, pool).entries;
    if (!columns.renumbered() && !wasteful(view)) return;
    if (entries_ <= std::numeric_limits<std::int32_t>::max())
      compress<std::int32_t>(view, columns);
    else
      compress<std::int64_t>(view, columns);
  }

  template <class V>
  bool wasteful(const DenseView<V>& view) const {
    return static_cast<double>(entries_) < kDenseEnough * static_cast<double>(size()) * static_cast<double>(view.cols);
  }

  template <class V, class I>
  bool wasteful(const CsrView<V, I>&) const {
    return false;
  }

  template <class I, class View>
  void compress(const View& view, const ColumnMap& columns) {
    auto copy = std::make_shared<Compressed<I>>();
    copy->values.reserve(entries_);
    copy->columns.reserve(entries_);
    copy->offsets.reserve(rows_.size() + 1);
    for (const Index row : rows_) {
      for_each_entry(view, row, [&](Index k, auto value) {
        copy->columns.push_back(static_cast<I>(columns[k]));
        copy->values.push_back(static_cast<double>(value));
      });
      copy->offsets.push_back(static_cast<I>(copy->values.size()));
    }
    matrix_ = CsrView<double, I>{copy->values.data(), copy->columns.data(), copy->offsets.data(), size(), features_};
    std::iota(rows_.begin(), rows_.end(), Index{0});
    copy_ = std::move(copy);
  }

  // A zero times what is finite changes no sum.
  template <class V>
  static double dot(const DenseView<V>& view, Index row, const double* dense) {
    const V* x = view.row(row);
    double sum = 0.0;
    for (Index k = 0; k < view.cols; ++k) sum += static_cast<double>(x[k]) * dense[k];
    return sum;
  }

  template <class V, class I>
  static double dot(const CsrView<V, I>& view, Index row, const double* dense) {
    double sum = 0.0;
    for (Index e = view.begin(row); e < view.end(row); ++e)
      sum += static_cast<double>(view.values[e]) * dense[view.columns[e]];
    return sum;
  }

  template <class View>
  static void dots(const View& view, const Index* rows, Index n, const double* dense, double* out) {
    for (Index i = 0; i < n; ++i) out[i] = dot(view, rows[i], dense);
  }

  template <class V>
  static void dots(const DenseView<V>& view, const Index* rows, Index n, const double* dense, double* out) {
    const auto product = [dense](V value, Index k) { return static_cast<double>(value) * dense[k]; };
    for (Index i = sums_of_rows(view, rows, n, product, out); i < n; ++i) out[i] = dot(view, rows[i], dense);
  }

  template <class V>
  static double distance(const DenseView<V>& view, Index i, Index j) {
    const V *x = view.row(i), *z = view.row(j);
    double sum = 0.0;
    for (Index k = 0; k < view.cols; ++k) {
      const double difference = static_cast<double>(x[k]) - static_cast<double>(z[k]);
      sum += difference * difference;
    }
    return sum;
  }

  template <class V, class I>
  static double distance(const CsrView<V, I>& view, Index i, Index j) {
    return dpsvm::squared_distance(view, i, j);
  }

  Matrix matrix_;            // the caller's, or the copy's
  std::vector<Index> rows_;  // of matrix_
  Index features_ = 0;
  Index entries_ = 0;
  std::shared_ptr<const void> copy_;
};

}  // namespace dpsvm
