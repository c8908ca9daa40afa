#include "problem.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
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

// C times the weights; an infinite C is a bound that no coefficient meets.
Vector bounds(const Vector& weight, double C) {
  return std::isinf(C) ? Vector(weight.size(), std::numeric_limits<double>::max()) : scaled(weight, C);
}

double sum(const Vector& v) { return std::accumulate(v.begin(), v.end(), 0.0); }

Problem cold_start(const MachineSpec& spec, const Vector& target, const Vector& weight) {
  switch (spec.machine) {
    case Machine::c_svc:
      return one_per_sample(target, bounds(weight, spec.C), -1.0);
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
      return two_per_sample(target, bounds(weight, spec.C), spec.epsilon);
    case Machine::nu_svr: {
      Problem problem = two_per_sample(target, scaled(weight, spec.C), 0.0);
      problem.groups = 2;
      for (int sign : {1, -1}) fill(problem, sign, spec.C * spec.nu * sum(weight) / 2);
      return problem;
    }
  }
  throw InvalidInput("unknown machine");
}

double sum_of(const Problem& problem, int sign) {
  double total = 0.0;
  for (Index t = 0; t < problem.size(); ++t)
    if (problem.y[t] == sign) total += problem.alpha[t];
  return total;
}

bool near(double sum, double total) { return std::fabs(sum - total) <= 1e-9 * total; }

// Multiplies the variables of one sign, each up to its bound, so that their sum is `total`; what room the nonzero ones
// have not is taken from the others, first to last. A sum that is near enough stays as it is, to the bit.
void settle(Problem& problem, int sign, double total) {
  constexpr int kRounds = 64;  // each but the last brings another variable to its bound
  for (int round = 0; round < kRounds; ++round) {
    double bounded = 0.0, free = 0.0;
    for (Index t = 0; t < problem.size(); ++t)
      if (problem.y[t] == sign) (problem.alpha[t] < problem.bound[t] ? free : bounded) += problem.alpha[t];
    if (near(bounded + free, total)) return;
    const bool less = bounded + free > total;
    if (!less && free == 0) break;
    const double factor = less ? total / (bounded + free) : (total - bounded) / free;
    for (Index t = 0; t < problem.size(); ++t)
      if (problem.y[t] == sign && (less || problem.alpha[t] < problem.bound[t]))
        problem.alpha[t] = std::min(problem.bound[t], problem.alpha[t] * factor);
  }
  double rest = total - sum_of(problem, sign);
  for (Index t = 0; t < problem.size() && rest > 0; ++t) {
    if (problem.y[t] != sign) continue;
    const double more = std::min(problem.bound[t] - problem.alpha[t], rest);
    problem.alpha[t] += more;
    rest -= more;
  }
}

// The feasible point near the coefficients [n] of `start`. Where the machine fixes the sums, which scale its coefficients,
// they are scaled to these; then all are cut at their bounds, and the sums of both signs made those of the cold start, or
// equal where it has none.
void continue_from(Problem& problem, const double* start, Index n) {
  double total[] = {sum_of(problem, 1), sum_of(problem, -1)};
  const bool fixed = total[0] > 0;
  for (Index t = 0; t < problem.size(); ++t) {
    const double coefficient = start[t % n];
    if (!std::isfinite(coefficient)) throw InvalidInput("alpha[" + std::to_string(t % n) + "] is not finite");
    problem.alpha[t] = std::max(coefficient * problem.y[t], 0.0);
  }
  double factor[] = {1.0, 1.0};
  for (int side : {0, 1}) {
    const double sum = sum_of(problem, side == 0 ? 1 : -1);
    if (fixed && sum > 0 && !near(sum, total[side])) factor[side] = total[side] / sum;
  }
  constexpr double kAtBound = 1.0 - 1e-12;  // rounding takes no variable off its bound
  for (Index t = 0; t < problem.size(); ++t) {
    const double alpha = problem.alpha[t] * factor[problem.y[t] > 0 ? 0 : 1], bound = problem.bound[t];
    problem.alpha[t] = alpha < bound * kAtBound ? alpha : bound;
  }
  if (!fixed) total[0] = total[1] = std::min(sum_of(problem, 1), sum_of(problem, -1));
  settle(problem, 1, total[0]);
  settle(problem, -1, total[1]);
}

}  // namespace

Problem make_problem(const MachineSpec& spec, const Vector& target, const Vector& weight, const double* start) {
  Problem problem = cold_start(spec, target, weight);
  for (const double bound : problem.bound)
    if (!(bound > 0 && std::isfinite(bound)))
      throw InvalidInput("the bound of a coefficient, C times the weights of its sample, is " +
                         std::string(bound > 0 ? "infinite" : "zero") + ": take others");
  if (start) continue_from(problem, start, static_cast<Index>(target.size()));
  return problem;
}

}  // namespace dpsvm
