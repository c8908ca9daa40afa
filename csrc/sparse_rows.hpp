// The samples of one problem as compressed rows, to be multiplied with a dense vector and added to it.
#pragma once

#include <variant>
#include <vector>

#include "columns.hpp"
#include "matrix.hpp"
#include "norms.hpp"
#include "types.hpp"

namespace dpsvm {

// Copies the named rows of a matrix, dense or not; columns are numbered by a ColumnMap. Sums are in double precision.
class SparseRows {
 public:
  SparseRows(const Matrix& matrix, const std::vector<Index>& rows) {
    std::visit([&](const auto& view) { copy(view, rows); }, matrix);
  }

  Index size() const { return static_cast<Index>(offsets_.size()) - 1; }
  Index features() const { return features_; }
  Index entries() const { return offsets_.back(); }

  // <row i, dense>
  double dot(Index i, const std::vector<double>& dense) const {
    double sum = 0.0;
    for (Index e = offsets_[i]; e < offsets_[i + 1]; ++e) sum += values_[e] * dense[columns_[e]];
    return sum;
  }

  // |row i - row j|^2
  double squared_distance(Index i, Index j) const {
    return dpsvm::squared_distance(values_.data(), columns_.data(), offsets_[i], offsets_[i + 1], offsets_[j],
                                   offsets_[j + 1]);
  }

  // dense += factor * row i
  void add(Index i, double factor, std::vector<double>& dense) const {
    for (Index e = offsets_[i]; e < offsets_[i + 1]; ++e) dense[columns_[e]] += factor * values_[e];
  }

 private:
  template <class View>
  void copy(const View& view, const std::vector<Index>& rows) {
    const ColumnMap columns(view, rows);
    features_ = columns.size();
    offsets_.reserve(rows.size() + 1);
    offsets_.push_back(0);
    for (const Index row : rows) {
      for_each_entry(view, row, [&](Index k, auto value) {
        columns_.push_back(static_cast<std::int32_t>(columns[k]));
        values_.push_back(static_cast<double>(value));
      });
      offsets_.push_back(static_cast<Index>(values_.size()));
    }
  }

  Index features_ = 0;
  std::vector<double> values_;
  std::vector<std::int32_t> columns_;  // ascending within a row
  std::vector<Index> offsets_;         // [size + 1]
};

}  // namespace dpsvm
