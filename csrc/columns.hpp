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

// Entries, and rows, that take long enough to read that another thread may be woken for them.
constexpr Index kWorthAThread = Index{1} << 15;  // entries

template <class V>
Index rows_worth_a_thread(const DenseView<V>& view) {
  return kWorthAThread / std::max<Index>(view.cols, 1) + 1;
}

template <class V, class I>
Index rows_worth_a_thread(const CsrView<V, I>& view) {
  return kWorthAThread * view.rows / std::max<Index>(static_cast<Index>(view.offsets[view.rows]), 1) + 1;
}

class ColumnMap {
 public:
  // Numbers the columns as they are, or, where the rows have far fewer entries than there are columns, only those that
  // occur, in their order.
  template <class View>
  ColumnMap(const View& view, const std::vector<Index>& rows) : size_(view.cols) {
    if (view.cols <= kNarrow) return;
    std::vector<Index> occurring;
    Index entries = 0, room = kNarrow;
    for (Index row : rows) {
      for_each_entry(view, row, [&](Index k, auto) {
        occurring.push_back(k);
        ++entries;
      });
      if (entries >= view.cols) return;
      if (static_cast<Index>(occurring.size()) < room) continue;
      keep_distinct(occurring);
      room = std::max(room, 2 * static_cast<Index>(occurring.size()));
    }
    keep_distinct(occurring);
    size_ = static_cast<Index>(occurring.size());
    kept_ = std::move(occurring);
    renumbered_ = true;
  }

  Index size() const { return size_; }
  bool renumbered() const { return renumbered_; }

  // The number of a column, or -1 if it occurs in none of the rows.
  Index operator[](Index column) const {
    if (!renumbered_) return column;
    const auto found = std::lower_bound(kept_.begin(), kept_.end(), column);
    return found != kept_.end() && *found == column ? found - kept_.begin() : -1;
  }

 private:
  static constexpr Index kNarrow = 1 << 16;

  static void keep_distinct(std::vector<Index>& columns) {
    std::sort(columns.begin(), columns.end());
    columns.erase(std::unique(columns.begin(), columns.end()), columns.end());
  }

  Index size_;
  bool renumbered_ = false;
  std::vector<Index> kept_;  // [size_] if renumbered
};

// A row written out to dense[columns.size()]; its entries in columns that are not kept are left out.
template <class T, class View>
void scatter_row(const View& view, const ColumnMap& columns, Index row, T* dense) {
  std::fill_n(dense, columns.size(), T{});
  for_each_entry(view, row, [&](Index k, auto value) {
    const Index at = columns[k];
    if (at >= 0) dense[at] = static_cast<T>(value);
  });
}

template <class T, class View>
void write_row(const View& view, const ColumnMap& columns, Index row, T* dense) {
  scatter_row(view, columns, row, dense);
}

// A zero keeps its sign here, which no sum that starts at 0 shows.
template <class T, class V>
void write_row(const DenseView<V>& view, const ColumnMap& columns, Index row, T* dense) {
  if (columns.renumbered()) return scatter_row(view, columns, row, dense);
  std::copy_n(view.row(row), view.cols, dense);
}

}  // namespace dpsvm
