// Where single precision is enough for the kernel values of rbf.
//
// In single precision, u = 2^-24, the distance of two rows is computed from dot products whose sums of k terms are off by
// about u (1 + sqrt(k) / 4) |x|^2: the kernel value is off by
//
//   e(x) = u (1/2 + s gamma |x|^2),   s = 1 + sqrt(entries of a row) / 4,
//
// however near the rows are to each other. Against this stands what a machine tells rows apart by: gamma times the squared
// distance from x to its near neighbours, q(x), and to most others, Q (1 at the most). Far from the origin e grows;
// between distant clusters q vanishes. So single precision is used where
//
//   e(x) <= 1e-6 Q in the mean, <= 3e-6 Q for every row, and <= 3e-4 q(x) for a sample of them,
//
// and for decision values, sums of coefficients c times kernel values, where also e(x) |c| <= 5e-5 of their range over
// the training rows. Elsewhere all is computed in double precision: the results are those of the same numbers given in
// double precision, to the bit. So it is for the nu machines, which are rescaled by what may be a small difference of
// large sums. Counts of bits are exact: for samples of zeros and ones s is 0.
#pragma once

#include <vector>

#include "kernel.hpp"
#include "matrix.hpp"
#include "problem.hpp"
#include "threads.hpp"

namespace dpsvm {

class SinglePrecision {
 public:
  // For the kernel values between the named rows of a matrix, or between them and others, in a machine of this kind.
  SinglePrecision(Machine machine, const KernelSpec& spec, const Matrix& matrix, const std::vector<Index>& rows,
                  ThreadPool& pool);

  // Among the rows themselves.
  bool enough() const { return enough_; }

  // Between a row with this squared norm and all of them.
  bool enough_for(float squared_norm) const { return enough_ && error(scale_, squared_norm) <= allowed_; }

  // Kernel values are summed with coefficients of this Euclidean norm to values of this range.
  void limit(double norm, double range);

 private:
  static double error(double scale, double squared_norm);
  struct Anchor;  // a sampled row
  static Anchor make_anchor(const Matrix& matrix, const std::vector<Index>& rows, Index at);
  bool judge(const std::vector<Anchor>& anchors, const std::vector<float>& squared, double scale);

  double gamma_ = 0;
  double scale_ = 0;    // s gamma, of rows that are not all zeros and ones
  double usual_ = 0;    // the error of a row of average squared norm
  double allowed_ = 0;  // the error that another row may have
  bool enough_ = false;
};

}  // namespace dpsvm
