// The closed form against a fine search over the feasible segment.
#include <cmath>
#include <limits>

#include "check.hpp"
#include "random.hpp"
#include "step.hpp"

using namespace dpsvm;

namespace {

// The objective along the segment, up to a constant: moving y_i a_i up by s and y_j a_j down by s.
double along(const TwoVariables& i, const TwoVariables& j, double curvature, double s) {
  return 0.5 * curvature * s * s - (i.v - j.v) * s;
}

void minimises_within_the_box(Random& random) {
  const auto draw = [&] {
    const double bound = 0.5 + random.uniform();
    return TwoVariables{bound * random.uniform(), bound, 4 * random.uniform() - 2, random.below(2) ? 1 : -1};
  };
  TwoVariables i = draw(), j = draw();
  if (i.v < j.v) std::swap(i, j);
  const double curvature = 0.1 + random.uniform();
  const TwoAlphas moved = step(i, j, curvature);
  CHECK(moved.i >= 0 && moved.i <= i.bound);
  CHECK(moved.j >= 0 && moved.j <= j.bound);
  CHECK(std::fabs(i.y * (moved.i - i.alpha) + j.y * (moved.j - j.alpha)) < 1e-14);

  double best = std::numeric_limits<double>::infinity();
  for (double s = -4; s <= 4; s += 1e-3) {
    const double a = i.alpha + i.y * s, b = j.alpha - j.y * s;
    if (a < 0 || a > i.bound || b < 0 || b > j.bound) continue;
    best = std::min(best, along(i, j, curvature, s));
  }
  CHECK(along(i, j, curvature, i.y * (moved.i - i.alpha)) <= best + 1e-12);
}

}  // namespace

int main() {
  Random random(3);
  for (int k = 0; k < 500; ++k) minimises_within_the_box(random);
  return check::result();
}
