// 32-byte vectors for x86-64 processors with AVX2 and FMA.
#if defined(__x86_64__)
#include <immintrin.h>

#include <type_traits>

#include "simd.hpp"

#define DPSVM_VECTOR_BYTES 32
#define DPSVM_LEVEL_NAME "avx2"
#define DPSVM_FMA

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,fma,popcnt"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,fma,popcnt")
#endif
namespace dpsvm {
namespace avx2 {
namespace {
#include "simd_body.hpp"
}  // namespace
extern const Simd table;
const Simd table = kTable;
}  // namespace avx2
}  // namespace dpsvm
#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
#endif
