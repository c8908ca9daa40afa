// Decimal text -> the nearest double, whatever the locale.
#pragma once

#include <cfloat>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <system_error>

#include "exact_decimal.hpp"

namespace dpsvm {

enum class Decimal { ok, malformed, too_large };

inline bool is_digit(char c) { return static_cast<unsigned char>(c - '0') < 10; }

namespace detail {

inline constexpr double kPowersOfTen[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                          1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

// The general case; [first, last) is unsigned and well formed. `exponent` is the power of ten of its last digit.
inline Decimal round_decimal(const char* first, const char* last, std::int64_t exponent, double& value) {
#if defined(__cpp_lib_to_chars)
  if (std::from_chars(first, last, value).ec != std::errc::result_out_of_range) return Decimal::ok;
  while (*first == '0' || *first == '.') ++first;
  for (; is_digit(*first) || *first == '.'; ++first) exponent += *first != '.';
  value = 0.0;
  return exponent > 0 ? Decimal::too_large : Decimal::ok;
#else
  static_cast<void>(last);
  value = nearest_double(first, exponent);
  return std::isinf(value) ? Decimal::too_large : Decimal::ok;
#endif
}

}  // namespace detail

// Reads [+-] digits [. digits] [(e|E) [+-] digits] at `text` and moves `text` past it. Numbers too small for a double
// become zero, as they do when rounded; neither infinity nor NaN has a spelling.
//
// Requires: the text ends in a character that no number contains, such as a newline.
//
// The fast path is Clinger's (How to Read Floating Point Numbers Accurately, 1990): when the digits fit 53 bits and the
// power of ten is exact, one rounded division or multiplication gives the nearest double.
inline Decimal parse_decimal(const char*& text, double& value) {
  const char* p = text;
  const bool negative = *p == '-';
  if (*p == '-' || *p == '+') ++p;
  const char* const first = p;

  std::uint64_t digits = 0;  // wraps beyond 19 digits; used only up to there
  for (; is_digit(*p); ++p) digits = 10 * digits + static_cast<std::uint64_t>(*p - '0');
  std::int64_t count = p - first;
  std::int64_t exponent = 0;
  if (*p == '.') {
    const char* const fraction = ++p;
    for (; is_digit(*p); ++p) digits = 10 * digits + static_cast<std::uint64_t>(*p - '0');
    exponent = fraction - p;
    count -= exponent;
  }
  if (count == 0) return Decimal::malformed;

  if (*p == 'e' || *p == 'E') {
    ++p;
    const bool shrinks = *p == '-';
    if (*p == '-' || *p == '+') ++p;
    if (!is_digit(*p)) return Decimal::malformed;
    constexpr std::int64_t kEnough = 1'000'000'000'000'000;  // beyond the length of any text, far from overflow
    std::int64_t power = 0;
    for (; is_digit(*p); ++p) {
      if (power < kEnough) power = 10 * power + (*p - '0');
    }
    exponent += shrinks ? -power : power;
  }

  Decimal outcome = Decimal::ok;
  if (FLT_EVAL_METHOD == 0 && count <= 19 && digits <= (std::uint64_t{1} << 53) && -22 <= exponent && exponent <= 22) {
    const double whole = static_cast<double>(static_cast<std::int64_t>(digits));
    value = exponent < 0 ? whole / detail::kPowersOfTen[-exponent] : whole * detail::kPowersOfTen[exponent];
  } else {
    outcome = detail::round_decimal(first, p, exponent, value);
  }
  if (negative) value = -value;
  text = p;
  return outcome;
}

}  // namespace dpsvm
