// Decimal text <-> double by long whole numbers: exact on every platform, whatever the locale, and slow. For libraries
// whose <charconv> has no doubles: libc++'s from_chars before LLVM 20, and its to_chars on macOS before 13.3.
#pragma once

#include <cstdint>

namespace dpsvm {

// The double nearest to the digits at `text`, among which there may be one dot, times 10^exponent of the last digit; of
// two as near the even one, infinity beyond the largest double. Requires: what follows is no digit or dot.
double nearest_double(const char* text, std::int64_t exponent);

// The text std::to_chars gives a double, of at most 24 characters, at `out`; returns its end. The fewest digits
// that read back to it, as fixed or scientific notation where that is shorter.
char* write_shortest(double value, char* out);

// Likewise printf's %.*g. Requires: digits between 1 and 17.
char* write_rounded(double value, int digits, char* out);

}  // namespace dpsvm
