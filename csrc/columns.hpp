// Which columns of a sparse matrix occur, so that no array is as long as the largest column number says.
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "matrix.hpp"
#include "types.hpp"

namespace dpsvm {

// Calls visit(column, value) for the entries of a row that are not zero, in ascending order.
template <class V, class Visit>
void for_each_entry(const DenseView<V>& view, Index row, const Visit& visit) {
  const V* x = view.row(row);
  for (Index k = 0; k < view.cols; ++k)
    if (x[k] != 0) visit(k, x[k]);
}

template <class V, class I, class Visit>
void for_each_entry(const CsrView<V, I>& view, Index row, const Visit& visit) {
  for (Index e = view.begin(row); e < view.end(row); ++e)
    if (view.values[e] != 0) visit(static_cast<Index>(view.columns[e]), view.values[e]);
}

// |x|^2 of a row, its entries added in order.
template <class T>
T squared_norm(const Matrix& matrix, Index row) {
  T sum{};
  std::visit(
      [&](const auto& view) {
        for_each_entry(view, row, [&](Index, auto value) { sum += static_cast<T>(value) * static_cast<T>(value); });
      },
      matrix);
  return sum;
}

class ColumnMap {
 public:
  // Numbers the columns as they are, or, where the rows have far fewer entries than there are columns, only those that
  // occur, in their order.
  template <class View>
  ColumnMap(const View& view, const std::vector<Index>& rows) : size_(view.cols) {
    if (view.cols <= kNarrow) return;
    std::vector<Index> occurring;
    for (Index row : rows) for_each_entry(view, row, [&](Index k, auto) { occurring.push_back(k); });
    if (static_cast<Index>(occurring.size()) >= view.cols) return;
    std::sort(occurring.begin(), occurring.end());
    occurring.erase(std::unique(occurring.begin(), occurring.end()), occurring.end());
    size_ = static_cast<Index>(occurring.size());
    kept_ = std::move(occurring);
    renumbered_ = true;
  }

  Index size() const { return size_; }

  // The number of a column, or -1 if it occurs in none of the rows.
  Index operator[](Index column) const {
    if (!renumbered_) return column;
    const auto found = std::lower_bound(kept_.begin(), kept_.end(), column);
    return found != kept_.end() && *found == column ? found - kept_.begin() : -1;
  }

 private:
  static constexpr Index kNarrow = 1 << 16;

  Index size_;
  bool renumbered_ = false;
  std::vector<Index> kept_;  // [size_] if renumbered
};

}  // namespace dpsvm
