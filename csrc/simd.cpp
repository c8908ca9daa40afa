#include "simd.hpp"

#include <array>
#include <cstdlib>
#include <cstring>
#include <string>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

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
#elif defined(__aarch64__)
namespace neon {
extern const Simd table;
}
#endif

namespace {

using Levels = std::array<const Simd*, 4>;

#if defined(__x86_64__)

// What the processor has and the system saves the registers of. The compilers' own test needs a library that clang does
// not link on Windows.
struct Processor {
  bool avx2 = false, avx512 = false;  // all that the level's file is compiled for: a virtual machine may hide any of it

  Processor() {
    unsigned a, b, basic, d, extended, c;
    if (!__get_cpuid(1, &a, &b, &basic, &d) || !__get_cpuid_count(7, 0, &a, &extended, &c, &d)) return;
    constexpr unsigned kSavesRegisters = bit_OSXSAVE | bit_AVX;
    if ((basic & kSavesRegisters) != kSavesRegisters) return;
    unsigned saved;
    __asm__("xgetbv" : "=a"(saved), "=d"(d) : "c"(0));
    const auto has = [](unsigned word, unsigned bits) { return (word & bits) == bits; };
    avx2 = has(saved, 0x06) && has(basic, bit_FMA | bit_POPCNT) && has(extended, bit_AVX2);
    avx512 = avx2 && has(saved, 0xe6) && has(extended, bit_AVX512F | bit_AVX512DQ | bit_AVX512BW | bit_AVX512VL);
  }
};

Levels detect() {
  const Processor processor;
  Levels levels{&portable::table};
  if (processor.avx2) levels[1] = &avx2::table;
  if (processor.avx512) levels[2] = &avx512::table;
  return levels;
}

#elif defined(__aarch64__)

Levels detect() { return {&portable::table, &neon::table}; }

#else

Levels detect() { return {&portable::table}; }

#endif

const Simd& choose() {
  const char* wanted = std::getenv("DPSVM_CPU");
  const Simd* best = nullptr;
  std::string names;
  for (const Simd* const* level = simd_levels(); *level; ++level) {
    best = *level;
    if (wanted && std::strcmp(wanted, best->name) == 0) return *best;
    names += (names.empty() ? "" : ", ") + std::string(best->name);
  }
  if (wanted && *wanted)
    throw InvalidInput("DPSVM_CPU=" + std::string(wanted) + " is not a level this processor runs (" + names + ")");
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
