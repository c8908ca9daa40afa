// The two-variable problem in closed form.
#pragma once

#include "types.hpp"

namespace dpsvm {

struct TwoVariables {
  double alpha, bound, v;
  int y;
};

struct TwoAlphas {
  double i, j;
};

// Minimises the objective over the segment on which y_i a_i + y_j a_j is constant and both lie in their boxes.
// `curvature` is K_ii + K_jj - 2 K_ij, or a small positive number in its place. The move is clipped by one variable at a
// time, in LIBSVM's order, so that the results agree to the bit.
inline TwoAlphas step(const TwoVariables& i, const TwoVariables& j, double curvature) {
  const double move = (i.v - j.v) / curvature;
  double a = i.alpha + i.y * move;
  double b = j.alpha - j.y * move;
  if (i.y != j.y) {
    const double difference = i.alpha - j.alpha;  // constant along the segment
    if (difference > 0) {
      if (b < 0) b = 0, a = difference;
    } else {
      if (a < 0) a = 0, b = -difference;
    }
    if (difference > i.bound - j.bound) {
      if (a > i.bound) a = i.bound, b = i.bound - difference;
    } else {
      if (b > j.bound) b = j.bound, a = j.bound + difference;
    }
  } else {
    const double sum = i.alpha + j.alpha;  // constant along the segment
    if (sum > i.bound) {
      if (a > i.bound) a = i.bound, b = sum - i.bound;
    } else {
      if (b < 0) b = 0, a = sum;
    }
    if (sum > j.bound) {
      if (b > j.bound) b = j.bound, a = sum - j.bound;
    } else {
      if (a < 0) a = 0, b = sum;
    }
  }
  return {a, b};
}

}  // namespace dpsvm
