// Decision values of a model.
#pragma once

#include "kernel.hpp"
#include "matrix.hpp"
#include "problem.hpp"
#include "watch.hpp"

namespace dpsvm {

struct PredictInput {
  Matrix x;                               // queries; precomputed kernel: their kernel values with every training sample
  Matrix support_vectors;                 // unused with a precomputed kernel
  const std::int32_t* support = nullptr;  // [n_sv] precomputed kernel: the columns of x that count
  Index n_sv = 0;
  const double* dual_coef = nullptr;        // [max(classes - 1, 1)][n_sv], as in Model
  const double* rho = nullptr;              // [pairs]
  const double* range = nullptr;            // [pairs] of the decision values over the training rows; null: not known
  const std::int32_t* n_support = nullptr;  // [classes]
  Machine machine = Machine::c_svc;
  Index classes = 0;  // classification only; otherwise there is one value a query
  KernelSpec kernel;
  int threads = 1;
};

// out[query][pair] = sum of coefficient K(support vector, query) - rho. Returns false if the watch cancelled the work.
bool decision_values(const PredictInput& input, double* out, Watch& watch);

}  // namespace dpsvm
