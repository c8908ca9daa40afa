#include "problem.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace dpsvm {

namespace {

using Vector = std::vector<double>;

// Fills the variables of one sign, first to last, up to their bounds until `total` is spent.
void fill(Problem& problem, int sign, double total) {
  for (Index t = 0; t < problem.size(); ++t) {
    if (problem.y[t] != sign) continue;
    problem.alpha[t] = std::min(problem.bound[t], total);
    total -= problem.alpha[t];
  }
}

Problem one_per_sample(const Vector& target, Vector bound, double p) {
  const auto n = static_cast<Index>(target.size());
  Problem problem;
  for (double t : target) problem.y.push_back(t > 0 ? 1 : -1);
  problem.p.assign(n, p);
  problem.bound = std::move(bound);
  problem.alpha.assign(n, 0.0);
  return problem;
}

// Variables t and t + n pull the fit of sample t up and down.
Problem two_per_sample(const Vector& target, const Vector& bound, double epsilon) {
  const auto n = static_cast<Index>(target.size());
  Problem problem;
  problem.y.assign(n, 1);
  problem.y.resize(2 * n, -1);
  for (double t : target) problem.p.push_back(epsilon - t);
  for (double t : target) problem.p.push_back(epsilon + t);
  problem.bound = bound;
  problem.bound.insert(problem.bound.end(), bound.begin(), bound.end());
  problem.alpha.assign(2 * n, 0.0);
  return problem;
}

Vector scaled(const Vector& weight, double factor) {
  Vector bound;
  for (double w : weight) bound.push_back(w * factor);
  return bound;
}

double sum(const Vector& v) { return std::accumulate(v.begin(), v.end(), 0.0); }

Problem cold_start(const MachineSpec& spec, const Vector& target, const Vector& weight) {
  switch (spec.machine) {
    case Machine::c_svc:
      return one_per_sample(target, scaled(weight, spec.C), -1.0);
    case Machine::nu_svc: {
      Problem problem = one_per_sample(target, weight, 0.0);
      problem.groups = 2;
      const double half = spec.nu * sum(weight) / 2;
      for (int sign : {1, -1}) {
        double room = 0.0;
        for (Index t = 0; t < problem.size(); ++t)
          if (problem.y[t] == sign) room += weight[t];
        if (half > room) throw InvalidInput("specified nu is infeasible: nu = " + std::to_string(spec.nu));
        fill(problem, sign, half);
      }
      return problem;
    }
    case Machine::one_class: {
      Problem problem = one_per_sample(Vector(weight.size(), 1.0), weight, 0.0);
      fill(problem, 1, spec.nu * sum(weight));
      return problem;
    }
    case Machine::epsilon_svr:
      return two_per_sample(target, scaled(weight, spec.C), spec.epsilon);
    case Machine::nu_svr: {
      Problem problem = two_per_sample(target, scaled(weight, spec.C), 0.0);
      problem.groups = 2;
      for (int sign : {1, -1}) fill(problem, sign, spec.C * spec.nu * sum(weight) / 2);
      return problem;
    }
  }
  throw InvalidInput("unknown machine");
}

}  // namespace

Problem make_problem(const MachineSpec& spec, const Vector& target, const Vector& weight, const double* start) {
  Problem problem = cold_start(spec, target, weight);
  for (const double bound : problem.bound)
    if (!(bound > 0 && std::isfinite(bound)))
      throw InvalidInput("the bound of a coefficient, C times the weights of its sample, is " +
                         std::string(bound > 0 ? "infinite" : "zero") + ": take others");
  if (!start) return problem;
  if (problem.groups == 2) throw InvalidInput("a start is not offered for the nu machines");


  // A start is kept only if it satisfies the constraints the cold start satisfies.
  const auto n = static_cast<Index>(target.size());
  double wanted = 0.0, given = 0.0, scale = 1.0;
  for (Index t = 0; t < problem.size(); ++t) {
    const double coefficient = start[t % n], alpha = std::max(coefficient * problem.y[t], 0.0);
    const bool wrong_sign = problem.size() == n && coefficient * problem.y[t] < 0;
    if (!std::isfinite(coefficient) || wrong_sign || alpha > problem.bound[t])
      throw InvalidInput("alpha[" + std::to_string(t % n) + "] = " + std::to_string(coefficient) +
                         " is outside its bounds");
    wanted += problem.y[t] * problem.alpha[t];
    given += problem.y[t] * alpha;
    scale += alpha;
    problem.alpha[t] = alpha;
  }
  if (std::fabs(wanted - given) > 1e-9 * scale)
    throw InvalidInput("alpha does not satisfy the equality constraint: its sum is " + std::to_string(given) +
                       ", not " + std::to_string(wanted));
  return problem;
}

}  // namespace dpsvm
