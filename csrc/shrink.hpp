// Setting aside variables that will probably stay at their bounds, and bringing them back.
#pragma once

#include "qmatrix.hpp"
#include "state.hpp"

namespace dpsvm {

// Makes every variable active again, its v rebuilt from the variables at their bounds (v_bound) and the free ones.
void unshrink(State& state, QMatrix& q);

class Shrinker {
 public:
  explicit Shrinker(double tol) : tol_(tol) {}

  // Moves behind `active` each variable that sits at a bound and whose v lies beyond the extremes m and M of its group,
  // so that no violating pair contains it (Fan, Chen, Lin 2005). Before it does so for the first time near the optimum
  // (gap within ten tolerances), it brings every variable back once. Extremes, exchanges and their order are LIBSVM's,
  // because ties are broken by position. Returns whether it brought them back.
  bool shrink(State& state, QMatrix& q);

 private:
  double tol_;
  bool brought_back_ = false;
};

}  // namespace dpsvm
