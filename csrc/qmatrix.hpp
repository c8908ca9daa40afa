// Kernel rows in the order of the solver's variables, through the cache.
//
// The solver works with v = -y G in place of the gradient G, and then needs the kernel K alone: Q_ij = y_i y_j K_ij and
// all signs cancel. Regression has two variables per sample, both reading the sample's one kernel row.
#pragma once

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "cache.hpp"
#include "kernel.hpp"
#include "row.hpp"
#include "types.hpp"

namespace dpsvm {

struct QStatistics {
  std::int64_t hits = 0;         // rows served without computing
  std::int64_t misses = 0;       // rows computed, wholly or in part
  std::int64_t evaluations = 0;  // kernel values computed
  double seconds = 0;            // of the wall clock, spent computing them

  QStatistics& operator+=(const QStatistics& other) {
    hits += other.hits;
    misses += other.misses;
    evaluations += other.evaluations;
    seconds += other.seconds;
    return *this;
  }
};

class QMatrix {
 public:
  virtual ~QMatrix() = default;

  // K(i, t) for t < length. Good until the next two calls.
  virtual Row row(Index i, Index length) = 0;

  // Whether some of row i is there without computing.
  virtual bool kept(Index i) const = 0;

  // K(i, t) for t < length if all of it is there without computing, else no row. Good until the next row.
  virtual Row peek(Index /*i*/, Index /*length*/) { return {}; }

  // Who is asked, when a row must be computed, for the rows to compute along with it: appends to `rows`, whose first is
  // the one that is needed, until they are `count`. Rows computed ahead change no result.
  using Forecast = std::function<void(std::vector<Index>& rows, Index count)>;
  void set_forecast(Forecast forecast) { forecast_ = std::move(forecast); }

  // Computes together those of the rows that are missing; count <= batch(length). row() then finds them.
  virtual void prefetch(const Index* rows, Index count, Index length) = 0;
  virtual Index batch(Index length) const = 0;

  // About how many times as long it takes to compute a row as to write it to fresh memory, or to scan the variables.
  virtual Index effort() const { return 1; }

  virtual double diagonal(Index i) const = 0;
  virtual void swap(const std::vector<Swap>& swaps) = 0;

  const QStatistics& statistics() const { return statistics_; }

 protected:
  // Computes row i, which is new, along with those the forecast adds.
  void compute_ahead(Index i, Index length, Index count) {
    if (!forecast_ || count < 2) return;
    std::vector<Index> rows{i};
    Forecast forecast = std::move(forecast_);  // not asked again for what it asks for itself
    forecast(rows, count);
    forecast_ = std::move(forecast);
    prefetch(rows.data(), static_cast<Index>(rows.size()), length);
    --statistics_.hits;  // row i, about to be found, was not there when it was asked for
  }

  Forecast forecast_;
  QStatistics statistics_;
};

// T is what kernel values are kept as. One variable per sample, or two (sample t is then variable t and variable t + n).
template <class T = float>
std::unique_ptr<QMatrix> make_qmatrix(std::unique_ptr<Kernel> kernel, std::size_t cache_bytes, bool doubled);

}  // namespace dpsvm
