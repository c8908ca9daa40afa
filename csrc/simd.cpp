#include "simd.hpp"

#include <array>
#include <cstdlib>
#include <cstring>

namespace dpsvm {

namespace portable {
extern const Simd table;
}
#if defined(__x86_64__)
namespace avx2 {
extern const Simd table;
}
namespace avx512 {
extern const Simd table;
}
#endif

namespace {

using Levels = std::array<const Simd*, 4>;

Levels detect() {
  Levels levels{};
  std::size_t n = 0;
  levels[n++] = &portable::table;
#if defined(__x86_64__)
  // What each level's file is compiled for: a virtual machine may hide any of it.
  const bool avx2_too = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("popcnt");
  if (avx2_too) levels[n++] = &avx2::table;
  if (avx2_too && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl"))
    levels[n++] = &avx512::table;
#endif
  return levels;
}

const Simd& choose() {
  const char* wanted = std::getenv("DPSVM_CPU");
  const Simd* best = nullptr;
  for (const Simd* const* level = simd_levels(); *level; ++level) {
    best = *level;
    if (wanted && std::strcmp(wanted, best->name) == 0) return *best;
  }
  if (wanted && *wanted)
    throw InvalidInput("DPSVM_CPU=" + std::string(wanted) +
                       " is not a level this processor runs (portable, avx2, avx512)");
  return *best;
}

}  // namespace

const Simd* const* simd_levels() {
  static const Levels levels = detect();
  return levels.data();
}

const Simd& simd() {
  static const Simd& chosen = choose();
  return chosen;
}

}  // namespace dpsvm
