// Small random problems for the test programs.
#pragma once

#include <vector>

#include "matrix.hpp"
#include "random.hpp"
#include "simd.hpp"

namespace dpsvm {

struct Cloud {
  Index n, d;
  std::vector<double> x, y;  // [n * d], [n] class codes 0 and 1

  DenseView<double> view() const { return {x.data(), n, d, d}; }
};

// Two overlapping classes; a share of the entries is zero.
inline Cloud make_cloud(Index n, Index d, double zeros, std::uint64_t seed) {
  Random random(seed);
  Cloud cloud{n, d, {}, {}};
  for (Index i = 0; i < n; ++i) {
    const double code = random.uniform() < 0.5 ? 0.0 : 1.0;
    cloud.y.push_back(code);
    for (Index k = 0; k < d; ++k)
      cloud.x.push_back(random.uniform() < zeros ? 0.0 : 2 * random.uniform() - 1 + 0.4 * code);
  }
  return cloud;
}

struct Csr {
  std::vector<double> values;
  std::vector<std::int64_t> columns, offsets;
  Index rows, cols;

  CsrView<double, std::int64_t> view() const { return {values.data(), columns.data(), offsets.data(), rows, cols}; }
};

inline Csr to_csr(const Cloud& cloud) {
  Csr csr{{}, {}, {0}, cloud.n, cloud.d};
  for (Index i = 0; i < cloud.n; ++i) {
    for (Index k = 0; k < cloud.d; ++k) {
      if (cloud.x[i * cloud.d + k] == 0) continue;
      csr.values.push_back(cloud.x[i * cloud.d + k]);
      csr.columns.push_back(k);
    }
    csr.offsets.push_back(static_cast<std::int64_t>(csr.values.size()));
  }
  return csr;
}

// Rows of a few entries each, and an order to take them in.
template <class T>
struct SparseSample {
  std::vector<T> values;
  std::vector<std::int32_t> columns;
  std::vector<Index> offsets{0}, order;

  SparseView<T> view() const { return {values.data(), columns.data(), offsets.data()}; }
};

template <class T>
SparseSample<T> make_sparse_sample(Index n, Index features, Random& random) {
  SparseSample<T> rows;
  for (Index j = 0; j < n; ++j) {
    for (std::int32_t k = 0; k < features; ++k) {
      if (random.uniform() < 0.8) continue;
      rows.columns.push_back(k);
      rows.values.push_back(static_cast<T>(random.uniform() - 0.5));
    }
    rows.offsets.push_back(static_cast<Index>(rows.values.size()));
    rows.order.push_back((7 * j) % n);
  }
  return rows;
}

inline std::vector<Index> all_rows(Index n) {
  std::vector<Index> rows;
  for (Index i = 0; i < n; ++i) rows.push_back(i);
  return rows;
}

}  // namespace dpsvm
