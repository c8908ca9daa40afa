// Kernel functions, and blocks of kernel rows over the samples of one problem.
#pragma once

#include <memory>
#include <vector>

#include "matrix.hpp"
#include "threads.hpp"
#include "types.hpp"

namespace dpsvm {

enum class KernelType { linear, poly, rbf, sigmoid, precomputed };

struct KernelSpec {
  KernelType type = KernelType::rbf;
  double gamma = 1.0;
  double coef0 = 0.0;
  int degree = 3;
};

// Dot products s = <x, z> to kernel values, rounded to the type of `out`, which may be `s` or `squared`:
//   linear s, poly (gamma s + coef0)^degree, rbf exp(-gamma (|x|^2 + |z|^2 - 2 s)), sigmoid tanh(gamma s + coef0).
// `squared_x` is |x|^2 and squared[j] is |z_j|^2; only rbf reads them.
template <class T, class Out>
void apply_kernel(const KernelSpec& spec, T squared_x, const T* squared, const T* s, Out* out, Index n);

// Symmetric matrix of kernel values over the samples of one problem, in the solver's current order.
class Kernel {
 public:
  virtual ~Kernel() = default;

  virtual Index size() const = 0;

  // How many rows are computed in little more time than one.
  virtual Index together() const { return 1; }

  // About how many times as long it takes to compute a row as to write it to fresh memory.
  virtual Index effort() const { return 1; }

  // out[r][j - begin] = K(rows[r], j) for begin <= j < end.
  virtual void block(const Index* rows, Index count, Index begin, Index end, float* const* out) = 0;
  virtual void block(const Index* rows, Index count, Index begin, Index end, double* const* out) = 0;

  virtual double diagonal(Index i) const = 0;

  // Exchanges samples i and j, as row and as column.
  virtual void swap(Index i, Index j) = 0;
};

// How kernel values are computed from rows: in single precision, or in double precision (precision.hpp chooses).
enum class Precision { single, full };

// `rows` names the samples in the order of the problem. For KernelType::precomputed, `matrix` is the whole Gram matrix.
// Throws InvalidInput where a kernel value does not fit a float.
std::unique_ptr<Kernel> make_kernel(const Matrix& matrix, const std::vector<Index>& rows, const KernelSpec& spec,
                                    ThreadPool& pool, Precision precision = Precision::full);

}  // namespace dpsvm
