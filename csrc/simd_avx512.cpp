// 64-byte vectors for x86-64 processors with AVX-512 F, DQ, BW and VL.
#if defined(__x86_64__)
#include <immintrin.h>

#include <type_traits>

#include "simd.hpp"

// GCC 12 warns about the undefined pass-through operand inside its own intrinsics.
#if !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

#define DPSVM_VECTOR_BYTES 64
#define DPSVM_LEVEL_NAME "avx512"
#define DPSVM_FMA

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx512f,avx512dq,avx512bw,avx512vl,fma,popcnt"))), \
                             apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx512f,avx512dq,avx512bw,avx512vl,fma,popcnt")
#endif
namespace dpsvm {
namespace avx512 {
namespace {
#include "simd_body.hpp"
}  // namespace
extern const Simd table;
const Simd table = kTable;
}  // namespace avx512
}  // namespace dpsvm
#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
#endif
