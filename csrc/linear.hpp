// Machines with the linear kernel, solved by keeping w.
//
// With w = sum of y_t a_t x_t, the v of all variables takes one pass over the samples: v_t = -y_t p_t - <w, x_t>. Each
// round takes the variables that violate optimality most, solves the program over them with the others held still
// (Joachims 1999; `solve` does it), and adds what changed to w. Kernel values are needed only between variables of one
// round, never between all.
#pragma once

#include <vector>

#include "matrix.hpp"
#include "problem.hpp"
#include "solver.hpp"
#include "threads.hpp"

namespace dpsvm {

// `rows` names the samples in the order of the problem; where it has twice as many variables, sample t is variable t
// and variable t + n. Ensures what `solve` ensures, by the same rule of stopping, v being computed in double precision
// from w; `iterations` counts pairs, which a selector of its own picks in each round. The kernel rows of a round take at
// most `cache_bytes`. `statistics` is added to.
SolverResult solve_linear(const Problem& problem, const Matrix& matrix, const std::vector<Index>& rows,
                          const SelectorSpec& selector, std::size_t cache_bytes, const SolverOptions& options,
                          ThreadPool& pool, Watch& watch, Progress progress, QStatistics& statistics);

}  // namespace dpsvm
