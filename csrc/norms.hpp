// Squared norms of rows, and squared distances between them.
#pragma once

#include <algorithm>
#include <variant>
#include <vector>

#include "columns.hpp"
#include "matrix.hpp"
#include "threads.hpp"
#include "types.hpp"

namespace dpsvm {

// |x|^2 of a row, its entries added in order.
template <class T, class View>
T squared_norm(const View& view, Index row) {
  T sum{};
  for_each_entry(view, row, [&](Index, auto value) { sum += static_cast<T>(value) * static_cast<T>(value); });
  return sum;
}

template <class T, class View>
void norms_of_rows(const View& view, const Index* rows, Index n, T* out) {
  for (Index i = 0; i < n; ++i) out[i] = squared_norm<T>(view, rows[i]);
}

// out[i] = the sum of term(x_k, k) over the row rows[i], in order, for several rows at a time: each sum waits for its last
// addition. The number of rows that were done; fewer than eight are left.
template <class T, class V, class Term>
Index sums_of_rows(const DenseView<V>& view, const Index* rows, Index n, const Term& term, T* out) {
  constexpr Index kRows = 8;
  Index i = 0;
  for (; i + kRows <= n; i += kRows) {
    const V* x[kRows];
    for (Index r = 0; r < kRows; ++r) x[r] = view.row(rows[i + r]);
    T sum[kRows] = {};
    for (Index k = 0; k < view.cols; ++k)
      for (Index r = 0; r < kRows; ++r) sum[r] += term(x[r][k], k);
    std::copy_n(sum, kRows, out + i);
  }
  return i;
}

// The zeros squared_norm leaves out change no sum.
template <class T, class V>
void norms_of_rows(const DenseView<V>& view, const Index* rows, Index n, T* out) {
  const auto square = [](V value, Index) { return static_cast<T>(value) * static_cast<T>(value); };
  for (Index i = sums_of_rows(view, rows, n, square, out); i < n; ++i) out[i] = squared_norm<T>(view, rows[i]);
}

// out[i] = |x|^2 of the row rows[i]; the threads of `pool` share them.
template <class T>
std::vector<T> squared_norms(const Matrix& matrix, const std::vector<Index>& rows, ThreadPool& pool) {
  std::vector<T> out(rows.size());
  std::visit(
      [&](const auto& view) {
        pool.run_ranges(static_cast<Index>(rows.size()), rows_worth_a_thread(view), [&](Index first, Index last) {
          norms_of_rows(view, rows.data() + first, last - first, out.data() + first);
        });
      },
      matrix);
  return out;
}

// Between two compressed rows of n and m entries; the terms are added in ascending order of the columns.
template <class V, class W, class I>
double squared_distance(const V* x, const I* columns, Index n, const W* z, const I* others, Index m) {
  double sum = 0.0;
  Index e = 0, f = 0;
  while (e < n || f < m) {
    const bool left = e < n && (f == m || columns[e] <= others[f]);
    const bool right = f < m && (e == n || others[f] <= columns[e]);
    const double difference = (left ? static_cast<double>(x[e++]) : 0.0) - (right ? static_cast<double>(z[f++]) : 0.0);
    sum += difference * difference;
  }
  return sum;
}

template <class V, class I>
double squared_distance(const CsrView<V, I>& view, Index i, Index j) {
  const Index a = view.begin(i), b = view.begin(j);
  return squared_distance(view.values + a, view.columns + a, view.end(i) - a, view.values + b, view.columns + b,
                          view.end(j) - b);
}

}  // namespace dpsvm
