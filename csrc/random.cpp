#include "random.hpp"

#include <random>

namespace dpsvm {

namespace {

std::uint64_t splitmix(std::uint64_t& x) {
  std::uint64_t z = (x += 0x9e3779b97f4a7c15u);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

std::uint64_t rotate(std::uint64_t x, int k) { return (x << k) | (x >> (64 - k)); }

}  // namespace

Random::Random(std::optional<std::uint64_t> seed) {
  if (seed) {
    std::uint64_t x = *seed;
    for (std::uint64_t& word : state_) word = splitmix(x);
  } else {
    std::random_device entropy;
    for (std::uint64_t& word : state_) word = (static_cast<std::uint64_t>(entropy()) << 32) | entropy();
  }
}

std::uint64_t Random::bits() {
  auto& s = state_;
  const std::uint64_t result = rotate(s[0] + s[3], 23) + s[0];
  const std::uint64_t shifted = s[1] << 17;
  s[2] ^= s[0];
  s[3] ^= s[1];
  s[1] ^= s[2];
  s[0] ^= s[3];
  s[2] ^= shifted;
  s[3] = rotate(s[3], 45);
  return result;
}

double Random::uniform() { return static_cast<double>(bits() >> 11) * 0x1p-53; }

Index Random::below(Index n) {
  const auto range = static_cast<std::uint64_t>(n);
  const std::uint64_t reject_above = UINT64_MAX - UINT64_MAX % range;
  std::uint64_t x;
  do x = bits();
  while (x >= reject_above);
  return static_cast<Index>(x % range);
}

std::uint64_t derived_seed(std::uint64_t seed, Index k) {
  std::uint64_t x = seed ^ (static_cast<std::uint64_t>(k) * 0xd1342543de82ef95u);
  return k == 0 ? seed : splitmix(x);
}

}  // namespace dpsvm
