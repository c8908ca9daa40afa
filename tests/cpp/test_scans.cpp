// A pass shared among threads finds what one thread finds, the last of equal values included.
#include <vector>

#include "check.hpp"
#include "random.hpp"
#include "scans.hpp"

using namespace dpsvm;

namespace {

struct Arrays {
  std::vector<double> v, diag;
  std::vector<float> ki, kj;
  std::vector<std::uint8_t> side;
};

// Few different values, so that most maxima are ties.
Arrays make(Index n, Random& random) {
  Arrays a;
  for (Index t = 0; t < n; ++t) {
    a.v.push_back(static_cast<double>(random.below(5)));
    a.diag.push_back(1.0);
    a.ki.push_back(static_cast<float>(random.below(3)) / 4);
    a.kj.push_back(static_cast<float>(random.below(3)) / 4);
    a.side.push_back(static_cast<std::uint8_t>(random.below(4)));
  }
  return a;
}

void same(const Extreme& found, const Extreme& expected) {
  CHECK_EQUAL(found.index, expected.index);
  CHECK(found.value == expected.value);
}

void agree(int threads, Index n, Random& random) {
  ThreadPool pool(threads);
  const Scans shared(&pool), alone;
  const Arrays a = make(n, random);
  for (const std::uint8_t bit : {1, 2, 4}) {  // no element has the last
    same(shared.argmax(a.v.data(), a.side.data(), bit, n), alone.argmax(a.v.data(), a.side.data(), bit, n));
    same(shared.argmin(a.v.data(), a.side.data(), bit, n), alone.argmin(a.v.data(), a.side.data(), bit, n));
    const SecondOrder found =
        shared.second_order(a.v.data(), a.ki.data(), a.diag.data(), a.side.data(), bit, 3.0, 1.0, n);
    const SecondOrder expected =
        alone.second_order(a.v.data(), a.ki.data(), a.diag.data(), a.side.data(), bit, 3.0, 1.0, n);
    same({found.gain, found.index}, {expected.gain, expected.index});
    CHECK(found.lowest == expected.lowest);

    Arrays b = a, c = a;
    same(shared.update(b.v.data(), a.ki.data(), 0.1, a.kj.data(), -0.3, a.side.data(), bit, n),
         alone.update(c.v.data(), a.ki.data(), 0.1, a.kj.data(), -0.3, a.side.data(), bit, n));
    shared.accumulate(b.v.data(), a.ki.data(), 0.7, n);
    alone.accumulate(c.v.data(), a.ki.data(), 0.7, n);
    CHECK(b.v == c.v);
  }
}

}  // namespace

int main() {
  Random random(11);
  for (int threads : {1, 2, 3, 5})
    for (Index n : {0, 1, 1000, 16'384, 40'001}) agree(threads, n, random);
  return check::result();
}
