// The level every compiler and processor has: 16-byte vectors (SSE2, NEON, or plain scalars).
#include <type_traits>

#include "simd.hpp"

#define DPSVM_VECTOR_BYTES 16
#define DPSVM_LEVEL_NAME "portable"

namespace dpsvm {
namespace portable {
namespace {
#include "simd_body.hpp"
}  // namespace
extern const Simd table;
const Simd table = kTable;
}  // namespace portable
}  // namespace dpsvm
