// Kernel rows in the order of the solver's variables, through the cache.
//
// The solver works with v = -y G in place of the gradient G, and then needs the kernel K alone: Q_ij = y_i y_j K_ij and
// all signs cancel. Regression has two variables per sample, both reading the sample's one kernel row.
#pragma once

#include <memory>
#include <vector>

#include "cache.hpp"
#include "kernel.hpp"
#include "types.hpp"

namespace dpsvm {

struct QStatistics {
  std::int64_t hits = 0;         // rows served without computing
  std::int64_t misses = 0;       // rows computed, wholly or in part
  std::int64_t evaluations = 0;  // kernel values computed
  double seconds = 0;            // of the wall clock, spent computing them
};

class QMatrix {
 public:
  virtual ~QMatrix() = default;

  // K(i, t) for t < length. Good until the next two calls.
  virtual const float* row(Index i, Index length) = 0;

  // Computes together those of the rows that are missing; count <= batch(length). row() then finds them.
  virtual void prefetch(const Index* rows, Index count, Index length) = 0;
  virtual Index batch(Index length) const = 0;

  virtual double diagonal(Index i) const = 0;
  virtual void swap(const std::vector<Swap>& swaps) = 0;

  const QStatistics& statistics() const { return statistics_; }

 protected:
  QStatistics statistics_;
};

// One variable per sample, or two (sample t is then variable t and variable t + n).
std::unique_ptr<QMatrix> make_qmatrix(std::unique_ptr<Kernel> kernel, std::size_t cache_bytes, bool doubled);

}  // namespace dpsvm
