// Every level against a plain loop: double precision to the bit, whatever the length. So too the loops of 64-byte vectors
// on a processor that has none: the compiler then makes each of several smaller ones.
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>
#include <vector>

#include "check.hpp"
#include "random.hpp"
#include "samples.hpp"
#include "simd.hpp"

#define DPSVM_VECTOR_BYTES 64
#define DPSVM_LEVEL_NAME "64-byte vectors"
namespace dpsvm {
namespace wide {
namespace {
#include "simd_body.hpp"
}  // namespace
}  // namespace wide
}  // namespace dpsvm

using namespace dpsvm;

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct Arrays {
  std::vector<double> v, diag;
  std::vector<float> ki, kj;
  std::vector<std::uint8_t> side;
};

// Values from a small set, so that ties are common.
Arrays random_arrays(Index n, Random& random) {
  Arrays a;
  for (Index t = 0; t < n; ++t) {
    a.v.push_back(0.25 * static_cast<double>(random.below(9)) - 1.0);
    a.diag.push_back(0.5 * static_cast<double>(random.below(3)));
    a.ki.push_back(0.5f * static_cast<float>(random.below(5)) - 1.0f);
    a.kj.push_back(static_cast<float>(random.uniform()));
    a.side.push_back(static_cast<std::uint8_t>(random.below(16)));
  }
  return a;
}

Extreme plain_argmax(const Arrays& a, std::uint8_t bit) {
  Extreme best{-kInfinity, -1};
  for (Index t = 0; t < static_cast<Index>(a.v.size()); ++t)
    if ((a.side[t] & bit) && a.v[t] >= best.value) best = {a.v[t], t};
  return best;
}

void scans_agree(const Simd& level, Index n, Random& random) {
  Arrays a = random_arrays(n, random);
  for (std::uint8_t bit : {1, 2, 4, 8}) {
    const Extreme expected = plain_argmax(a, bit), found = level.argmax(a.v.data(), a.side.data(), bit, n);
    CHECK_EQUAL(found.index, expected.index);
    CHECK(found.value == expected.value);

    Arrays negated = a;
    for (double& v : negated.v) v = -v;
    const Extreme least = level.argmin(negated.v.data(), a.side.data(), bit, n);
    CHECK_EQUAL(least.index, expected.index);
    CHECK(least.value == -expected.value);

    const double m = 0.3, diag_i = 1.0;
    std::vector<Index> far(n), wanted_far;
    for (const double sign : {-1.0, 1.0}) {
      far.resize(n);
      far.resize(level.beyond(a.v.data(), a.side.data(), bit, sign, m, 0.1, n, far.data()));
      wanted_far.clear();
      for (Index t = 0; t < n; ++t)
        if ((a.side[t] & bit) && sign * (a.v[t] - m) >= 0.1) wanted_far.push_back(t);
      CHECK(far == wanted_far);
    }

    SecondOrder wanted{-1, -kInfinity, kInfinity};
    for (Index t = 0; t < n; ++t) {
      if (!(a.side[t] & bit)) continue;
      wanted.lowest = std::min(wanted.lowest, a.v[t]);
      const double b = m - a.v[t];
      double curvature = diag_i + a.diag[t] - 2.0 * static_cast<double>(a.ki[t]);
      if (curvature <= 0) curvature = kTau;
      if (b > 0 && b * b / curvature >= wanted.gain) wanted = {t, b * b / curvature, wanted.lowest};
    }
    const SecondOrder second =
        level.of_floats.second_order(a.v.data(), a.ki.data(), a.diag.data(), a.side.data(), bit, m, diag_i, n);
    CHECK_EQUAL(second.index, wanted.index);
    CHECK(second.gain == wanted.gain);
    CHECK(second.lowest == wanted.lowest);

    const std::vector<double> wide(a.ki.begin(), a.ki.end());
    const SecondOrder of_doubles =
        level.of_doubles.second_order(a.v.data(), wide.data(), a.diag.data(), a.side.data(), bit, m, diag_i, n);
    CHECK_EQUAL(of_doubles.index, second.index);
    CHECK(of_doubles.gain == second.gain);
    CHECK(of_doubles.lowest == second.lowest);
  }
}

void updates_agree(const Simd& level, Index n, Random& random) {
  Arrays a = random_arrays(n, random), b = a;
  const double di = 0.1, dj = -0.7, c = 1.0 / 3.0;
  for (Index t = 0; t < n; ++t) b.v[t] -= static_cast<double>(a.ki[t]) * di + static_cast<double>(a.kj[t]) * dj;
  const Extreme found =
      level.of_floats.update(a.v.data(), a.ki.data(), di, a.kj.data(), dj, a.side.data(), std::uint8_t{1}, n);
  CHECK(a.v == b.v);
  CHECK_EQUAL(found.index, plain_argmax(b, 1).index);

  for (Index t = 0; t < n; ++t) b.v[t] += c * static_cast<double>(a.kj[t]);
  level.of_floats.accumulate(a.v.data(), a.kj.data(), c, n);
  CHECK(a.v == b.v);

  const std::vector<double> ki(a.ki.begin(), a.ki.end()), kj(a.kj.begin(), a.kj.end());
  level.of_floats.update(a.v.data(), a.ki.data(), di, a.kj.data(), dj, a.side.data(), std::uint8_t{1}, n);
  level.of_doubles.update(b.v.data(), ki.data(), di, kj.data(), dj, a.side.data(), std::uint8_t{1}, n);
  CHECK(a.v == b.v);
  level.of_floats.accumulate(a.v.data(), a.kj.data(), c, n);
  level.of_doubles.accumulate(b.v.data(), kj.data(), c, n);
  CHECK(a.v == b.v);
}

template <class T>
T product(T q, T x) {
  return q * x;
}

template <class T>
T squared_difference(T q, T x) {
  return (q - x) * (q - x);
}

template <class T>
void sums_agree(void (*sums)(const T*, Index, Index, const T* const*, Index, T*, Index), T (*term)(T, T), Index panels,
                Index depth, Index count, double tolerance, Random& random) {
  const Index width = panels * kPanel<T>;
  std::vector<T> packed(width * depth), out(count * width), queries(count * depth);
  for (T& x : packed) x = static_cast<T>(random.uniform() - 0.5);
  for (T& x : queries) x = static_cast<T>(random.uniform() - 0.5);
  std::vector<const T*> pointers;
  for (Index r = 0; r < count; ++r) pointers.push_back(queries.data() + r * depth);
  sums(packed.data(), panels, depth, pointers.data(), count, out.data(), width);
  for (Index r = 0; r < count; ++r)
    for (Index j = 0; j < width; ++j) {
      T sum{};
      for (Index k = 0; k < depth; ++k)
        sum += term(queries[r * depth + k], packed[(j / kPanel<T> * depth + k) * kPanel<T> + j % kPanel<T>]);
      CHECK(std::fabs(out[r * width + j] - sum) <= tolerance);
    }
}

// One query has the bits it has among others.
template <class T>
void sparse_dots_agree(void (*dots)(const SparseView<T>&, const Index*, Index, const T*, T*, Index),
                       void (*alone)(const SparseView<T>&, const Index*, Index, const T*, T*), double tolerance,
                       Random& random) {
  const Index n = 23, features = 40;
  const SparseSample<T> rows = make_sparse_sample<T>(n, features, random);
  std::vector<T> queries(features * kTogether + kPanel<T>), out(kTogether * n);
  for (T& x : queries) x = static_cast<T>(random.uniform() - 0.5);
  dots(rows.view(), rows.order.data(), n, queries.data(), out.data(), n);
  for (Index r = 0; r < kTogether; ++r)
    for (Index j = 0; j < n; ++j) {
      T sum{};
      for (Index e = rows.offsets[rows.order[j]]; e < rows.offsets[rows.order[j] + 1]; ++e)
        sum += rows.values[e] * queries[rows.columns[e] * kTogether + r];
      CHECK(std::fabs(out[r * n + j] - sum) <= tolerance);
    }
  for (Index r = 0; r < kTogether; ++r) {
    std::vector<T> query(features), line(n);
    for (Index k = 0; k < features; ++k) query[k] = queries[k * kTogether + r];
    alone(rows.view(), rows.order.data(), n, query.data(), line.data());
    for (Index j = 0; j < n; ++j) CHECK_EQUAL(line[j], out[r * n + j]);
  }
}

template <class T>
void shared_bits_agree(void (*count)(const std::uint64_t*, Index, Index, const std::uint64_t*, T*), Random& random) {
  for (Index words : {1, 2, 3, 4, 5, 30, 31, 32, 65}) {
    const Index n_panels = 3;
    std::vector<std::uint64_t> panels(n_panels * words * kBitRows), query(words);
    for (std::uint64_t& word : panels) word = random.below(3) == 0 ? ~std::uint64_t{0} : random.bits();
    for (std::uint64_t& word : query) word = random.below(3) > 0 ? ~std::uint64_t{0} : random.bits();
    std::vector<T> out(n_panels * kBitRows);
    count(panels.data(), n_panels, words, query.data(), out.data());
    for (Index j = 0; j < n_panels * kBitRows; ++j) {
      int shared = 0;
      for (Index w = 0; w < words; ++w) {
        const std::uint64_t word = panels[(j / kBitRows * words + w) * kBitRows + j % kBitRows];
        for (int bit = 0; bit < 64; ++bit) shared += (word & query[w]) >> bit & 1;
      }
      CHECK_EQUAL(out[j], static_cast<T>(shared));
    }
  }
}

// Distance in units of the last place.
double ulps(double a, double b) { return std::fabs(a - b) / (std::nextafter(std::fabs(b), kInfinity) - std::fabs(b)); }

void exponentials_agree(const Simd& level, Random& random) {
  for (Index n : {1, 3, 8, 1001}) {
    std::vector<double> x(n), y;
    for (double& value : x) value = -std::pow(10.0, 6 * random.uniform() - 3) * 0.7 + (random.uniform() < 0.1);
    const std::vector<float> single(x.begin(), x.end());
    std::vector<float> singley, singlezeros(n), rounded(n);
    std::vector<double> zeros(n);
    for (double value : x) y.push_back(value / 2);  // exp(-((0 + 0) - 2 x / 2)) = exp(x)
    for (float value : single) singley.push_back(value / 2);
    level.rbf_rounded(1.0, 0.0, zeros.data(), y.data(), rounded.data(), n);
    level.rbf_f64(1.0, 0.0, zeros.data(), y.data(), y.data(), n);
    level.rbf_f32(1.0f, 0.0f, singlezeros.data(), singley.data(), singley.data(), n);
    for (Index t = 0; t < n; ++t) {
      CHECK(ulps(y[t], std::exp(x[t])) <= 1.0);
      CHECK_EQUAL(rounded[t], static_cast<float>(y[t]));
      CHECK(std::fabs(static_cast<double>(singley[t]) - std::exp(static_cast<double>(single[t]))) <= 3e-7);
    }
  }
  double far = 0.0, near = 4.0, squared[] = {1e6, 5.0};
  level.rbf_f64(1.0, 0.0, &squared[0], &far, &far, 1);
  level.rbf_f64(2.0, 3.0, &squared[1], &near, &near, 1);
  CHECK_EQUAL(static_cast<float>(far), 0.0f);
  CHECK_EQUAL(near, 1.0);
}

}  // namespace

int main() {
  std::vector<double> dots_of_levels, exps_of_levels;
  std::vector<const Simd*> levels{&wide::kTable};
  for (const Simd* const* level = simd_levels(); *level; ++level) levels.push_back(*level);
  for (const Simd* level : levels) {
    Random random(7);
    for (Index n = 0; n < 70; ++n) {
      scans_agree(*level, n, random);
      updates_agree(*level, n, random);
    }
    for (Index n : {1000, 1003, 5000}) scans_agree(*level, n, random);
    for (Index panels : {1, 2, 4, 5, 9})
      for (Index count : {1, 2, 3, 4, 7, 9, 10, 19, 23}) {
        sums_agree<double>(level->dots_f64, product, panels, 5, count, 0.0, random);
        sums_agree<float>(level->dots_f32, product, panels, 17, count, 1e-5, random);
        sums_agree<double>(level->dots_f64, product, panels, 600, count, 0.0, random);
        sums_agree<double>(level->distances_f64, squared_difference, panels, 600, count, 0.0, random);
      }
    sparse_dots_agree<double>(level->sparse_f64, level->sparse_one_f64, 0.0, random);
    sparse_dots_agree<float>(level->sparse_f32, level->sparse_one_f32, 1e-6, random);
    shared_bits_agree<double>(level->bits_f64, random);
    shared_bits_agree<float>(level->bits_f32, random);
    exponentials_agree(*level, random);

    std::vector<double> a(101), b(101);
    for (double& value : a) value = random.uniform();
    for (double& value : b) value = random.uniform();
    dots_of_levels.push_back(level->dot(a.data(), b.data(), 101));
    const std::vector<float> single(b.begin(), b.end());
    const std::vector<double> widened(single.begin(), single.end());
    CHECK_EQUAL(level->dot_f32(a.data(), single.data(), 101), level->dot(a.data(), widened.data(), 101));
    level->rbf_f64(1.0, 0.0, b.data(), a.data(), a.data(), 101);
    exps_of_levels.push_back(a[50]);
  }
  for (double value : dots_of_levels) CHECK_EQUAL(value, dots_of_levels[0]);
  for (double value : exps_of_levels) CHECK_EQUAL(value, exps_of_levels[0]);
  return check::result();
}
