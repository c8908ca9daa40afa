// The quadratic programs of the five machines.
//
//   minimise 1/2 a'Qa + p'a   subject to   y'a = delta,  0 <= a_t <= C_t,      Q_st = y_s y_t K(x_s, x_t)
//
// The nu machines hold e'a fixed as well, which ties each variable to those of its own sign: two groups of variables
// between which nothing moves. A pair is always taken within a group, so the start fixes delta and e'a for good.
#pragma once

#include <vector>

#include "types.hpp"

namespace dpsvm {

enum class Machine { c_svc, nu_svc, one_class, epsilon_svr, nu_svr };

inline bool is_classifier(Machine m) { return m == Machine::c_svc || m == Machine::nu_svc; }
inline bool is_regression(Machine m) { return m == Machine::epsilon_svr || m == Machine::nu_svr; }

struct MachineSpec {
  Machine machine = Machine::c_svc;
  double C = 1.0;
  double nu = 0.5;
  double epsilon = 0.1;  // half width of the regression tube
};

struct Problem {
  std::vector<std::int8_t> y;  // [size] +1 or -1
  std::vector<double> p;       // [size] linear term
  std::vector<double> bound;   // [size] C_t
  std::vector<double> alpha;   // [size] feasible start
  std::vector<double> v;       // [size] -y G at alpha, or empty: to be computed. Where given, nothing may be shrunk
  int groups = 1;              // 2: pairs are of one sign only

  Index size() const { return static_cast<Index>(y.size()); }
};

// The program over n samples. `target` is the sign (classification) or the value (regression) of each; `weight` scales
// each sample's bound. `start`, if not null, holds signed coefficients [n] to continue from: y a, a or a - a* for
// classification, one-class and regression; the start is the feasible point that they are moved to. Throws InvalidInput
// where no feasible point exists.
Problem make_problem(const MachineSpec& spec, const std::vector<double>& target, const std::vector<double>& weight,
                     const double* start);

}  // namespace dpsvm
