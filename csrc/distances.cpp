#include "distances.hpp"

#include <algorithm>
#include <vector>

#include "columns.hpp"
#include "norms.hpp"

namespace dpsvm {

namespace {

constexpr Index kLanes = kPanel<double>;

// Compressed rows with a smaller share of entries are compared entry by entry, others written out.
constexpr double kDenseEnough = 1.0 / 32;

// The rows [first, first + kLanes), feature after feature; what a last panel lacks is zero.
template <class View>
void fill_panel(const View& rows, Index first, std::vector<double>& panel) {
  std::fill(panel.begin(), panel.end(), 0.0);
  for (Index r = 0; r < std::min(kLanes, rows.rows - first); ++r)
    for_each_entry(rows, first + r, [&](Index k, auto value) { panel[k * kLanes + r] = static_cast<double>(value); });
}

template <class V>
void fill_panel(const DenseView<V>& rows, Index first, std::vector<double>& panel) {
  const V* x[kLanes];
  for (Index r = 0; r < kLanes; ++r) x[r] = rows.row(std::min(first + r, rows.rows - 1));
  for (Index k = 0; k < rows.cols; ++k)
    for (Index r = 0; r < kLanes; ++r) panel[k * kLanes + r] = static_cast<double>(x[r][k]);
}

template <class Rows, class View>
void by_panels(const Rows& rows, const View& x, const Index* queries, Index count, double* out) {
  std::vector<double> dense(count * x.cols, 0.0), panel(kLanes * x.cols);
  std::vector<const double*> lines;
  for (Index q = 0; q < count; ++q) {
    double* line = dense.data() + q * x.cols;
    for_each_entry(x, queries[q], [&](Index k, auto value) { line[k] = static_cast<double>(value); });
    lines.push_back(line);
  }
  for (Index first = 0; first < rows.rows; first += kLanes) {
    fill_panel(rows, first, panel);
    simd().distances_f64(panel.data(), 1, x.cols, lines.data(), count, out + first, distances_width(rows.rows));
  }
}

template <class V, class View>
void distances_to(const DenseView<V>& rows, const View& x, const Index* queries, Index count, double* out) {
  by_panels(rows, x, queries, count, out);
}

template <class V, class I, class View>
void distances_to(const CsrView<V, I>& rows, const View& x, const Index* queries, Index count, double* out) {
  const double all = static_cast<double>(rows.rows) * static_cast<double>(rows.cols);
  if (static_cast<double>(rows.offsets[rows.rows]) >= kDenseEnough * all)
    return by_panels(rows, x, queries, count, out);
  std::vector<double> values;
  std::vector<I> columns;
  for (Index q = 0; q < count; ++q, out += distances_width(rows.rows)) {
    values.clear();
    columns.clear();
    for_each_entry(x, queries[q], [&](Index k, auto value) {
      values.push_back(static_cast<double>(value));
      columns.push_back(static_cast<I>(k));
    });
    for (Index j = 0; j < rows.rows; ++j) {
      const Index from = rows.begin(j);
      out[j] = squared_distance(values.data(), columns.data(), static_cast<Index>(values.size()), rows.values + from,
                                rows.columns + from, rows.end(j) - from);
    }
  }
}

}  // namespace

void squared_distances(const Matrix& rows, const Matrix& x, const Index* queries, Index count, double* out) {
  std::visit([&](const auto& to, const auto& from) { distances_to(to, from, queries, count, out); }, rows, x);
}

}  // namespace dpsvm
