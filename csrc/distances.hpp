// Squared distances between the rows of two matrices, without what dot products lose far from the origin.
//
// |x|^2 + |z|^2 - 2 <x, z> is off by u |x|^2 and more, u = 2^-53, however near x and z are to each other; a sum of squared
// differences by u |x - z|^2. The terms are added in ascending feature order, as LIBSVM adds them when it predicts.
#pragma once

#include "matrix.hpp"
#include "simd.hpp"
#include "types.hpp"

namespace dpsvm {

// Lines of distances to so many rows lie so many entries apart: some follow the last row's.
inline Index distances_width(Index rows) { return (rows + kPanel<double> - 1) / kPanel<double> * kPanel<double>; }

// out[q * distances_width(rows) + j] = |row queries[q] of x - row j of rows|^2 for q < count. Rows are laid out anew for
// each call: many queries are faster than one.
void squared_distances(const Matrix& rows, const Matrix& x, const Index* queries, Index count, double* out);

}  // namespace dpsvm
