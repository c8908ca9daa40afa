// How many entries rows have.
#pragma once

#include <atomic>
#include <variant>
#include <vector>

#include "columns.hpp"
#include "matrix.hpp"
#include "threads.hpp"
#include "types.hpp"

namespace dpsvm {

struct EntryCount {
  Index entries = 0, ones = 0;  // not zero, and among them those that are 1
};

template <class View>
EntryCount count_row(const View& view, Index row) {
  EntryCount count;
  for_each_entry(view, row, [&](Index, auto value) {
    ++count.entries;
    count.ones += value == 1;
  });
  return count;
}

// Without branches, several at once.
template <class V>
EntryCount count_row(const DenseView<V>& view, Index row) {
  const V* x = view.row(row);
  EntryCount count;
  for (Index k = 0; k < view.cols; ++k) {
    count.entries += x[k] != 0;
    count.ones += x[k] == 1;
  }
  return count;
}

template <class View>
EntryCount count_entries(const View& view, const std::vector<Index>& rows, ThreadPool& pool) {
  std::atomic<Index> entries{0}, ones{0};
  pool.run_ranges(static_cast<Index>(rows.size()), rows_worth_a_thread(view), [&](Index first, Index last) {
    EntryCount sum;
    for (Index i = first; i < last; ++i) {
      const EntryCount row = count_row(view, rows[i]);
      sum.entries += row.entries;
      sum.ones += row.ones;
    }
    entries += sum.entries;
    ones += sum.ones;
  });
  return {entries, ones};
}

inline EntryCount count_entries(const Matrix& matrix, const std::vector<Index>& rows, ThreadPool& pool) {
  return std::visit([&](const auto& view) { return count_entries(view, rows, pool); }, matrix);
}

}  // namespace dpsvm
