// 16-byte vectors for 64-bit ARM processors, all of which have fused multiply-add.
#if defined(__aarch64__)
#include <arm_neon.h>

#include <type_traits>

#include "simd.hpp"

#define DPSVM_VECTOR_BYTES 16
#define DPSVM_LEVEL_NAME "neon"
#define DPSVM_FMA

namespace dpsvm {
namespace neon {
namespace {
#include "simd_body.hpp"
}  // namespace
extern const Simd table;
const Simd table = kTable;
}  // namespace neon
}  // namespace dpsvm
#endif
