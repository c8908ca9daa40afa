// Read-only views of a caller's matrix of samples, as the caller holds it. Nothing is owned or copied here.
#pragma once

#include <numeric>
#include <type_traits>
#include <variant>
#include <vector>

#include "types.hpp"

namespace dpsvm {

// Row-major dense rows; `stride` elements lie between the starts of two rows.
template <class T>
struct DenseView {
  using Value = T;
  const T* values;
  Index rows, cols, stride;

  const T* row(Index i) const { return values + i * stride; }
};

// Compressed sparse rows; columns ascend strictly within a row.
template <class T, class I>
struct CsrView {
  using Value = T;
  const T* values;   // [offsets[rows]]
  const I* columns;  // [offsets[rows]]
  const I* offsets;  // [rows + 1]
  Index rows, cols;

  Index begin(Index i) const { return static_cast<Index>(offsets[i]); }
  Index end(Index i) const { return static_cast<Index>(offsets[i + 1]); }
};

using Matrix = std::variant<DenseView<float>, DenseView<double>, CsrView<float, std::int32_t>,
                            CsrView<float, std::int64_t>, CsrView<double, std::int32_t>, CsrView<double, std::int64_t>>;

inline Index row_count(const Matrix& matrix) {
  return std::visit([](const auto& view) { return view.rows; }, matrix);
}

inline Index column_count(const Matrix& matrix) {
  return std::visit([](const auto& view) { return view.cols; }, matrix);
}

// The numbers first .. last - 1.
inline std::vector<Index> consecutive(Index first, Index last) {
  std::vector<Index> rows(last - first);
  std::iota(rows.begin(), rows.end(), first);
  return rows;
}

inline bool is_single_precision(const Matrix& matrix) {
  return std::visit(
      [](const auto& view) { return std::is_same_v<typename std::decay_t<decltype(view)>::Value, float>; }, matrix);
}

}  // namespace dpsvm
