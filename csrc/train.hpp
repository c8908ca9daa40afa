// From samples and targets to a model: one problem, or one for each pair of classes.
#pragma once

#include <vector>

#include "kernel.hpp"
#include "matrix.hpp"
#include "problem.hpp"
#include "selector.hpp"
#include "solver.hpp"

namespace dpsvm {

struct TrainInput {
  Matrix x;
  std::vector<Index> rows;               // [n] the samples, each a row of x; for a precomputed kernel, a column too
  const double* y = nullptr;             // [n] class codes 0 .. classes-1, or regression targets; unused by one-class
  Index classes = 0;                     // classification only
  const double* weight = nullptr;        // [n] sample weights, positive; null: all 1
  const double* class_weight = nullptr;  // [classes]; null: all 1
  const double* start = nullptr;         // [max(classes - 1, 1)][n] coefficients to continue from, in the layout of
                                         // Model::dual_coef; null: none
};

enum class Algorithm {
  smo,            // over all variables, as LIBSVM does; any kernel and selector
  decomposition,  // `solve_linear`; the linear kernel and rules that say so
};

struct TrainOptions {
  MachineSpec machine;
  KernelSpec kernel;
  Algorithm algorithm = Algorithm::smo;
  SelectorSpec selector;
  SolverOptions solver;
  std::size_t cache_bytes = std::size_t{200} << 20;
  int threads = 1;
};

// What happened in one problem.
struct Report {
  SolverResult result;  // without alpha
  Index n_sv = 0;       // samples with a nonzero coefficient
  Index n_bsv = 0;      // of them at their bound
  double nu = 0.0;      // C-SVC, epsilon-SVR: sum of alpha / (C l); NaN where the bounds differ or it has no meaning
  double seconds = 0.0;
  QStatistics kernel;
  std::vector<TracePoint> trace;  // as SolverOptions::trace_every asks
};

struct Model {
  std::vector<std::int32_t> support;    // [n_sv] rows of x, by class, within a class in the samples' order
  std::vector<std::int32_t> n_support;  // [classes], or [1]
  std::vector<double> dual_coef;        // [max(classes - 1, 1)][n_sv], LIBSVM's layout and signs
  std::vector<double> rho;              // [pairs] in the order (0,1) (0,2) ... (1,2) ...
  std::vector<Report> reports;          // [pairs]
};

// The result does not depend on the number of threads. Throws InvalidInput where the options do not go together.
Model train(const TrainInput& input, const TrainOptions& options, Watch& watch);

}  // namespace dpsvm
