// Long whole numbers against the library's conversions, which are exact too.
#include <algorithm>
#include <cfloat>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <random>
#include <string>

#include "check.hpp"
#include "exact_decimal.hpp"
#include "library.hpp"

namespace {

using Random = std::mt19937_64;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// `text` is digits with or without a dot, and perhaps an exponent.
void check_read(const std::string& text) {
  const std::size_t end = std::min(text.find('e'), text.size()), dot = std::min(text.find('.'), end);
  std::int64_t exponent = end < text.size() ? std::strtoll(text.c_str() + end + 1, nullptr, 10) : 0;
  if (dot < end) exponent -= static_cast<std::int64_t>(end - dot - 1);
  const double expected = library_reads(text), actual = dpsvm::nearest_double(text.c_str(), exponent);
  check::report(std::memcmp(&actual, &expected, sizeof actual) == 0, __FILE__, __LINE__, "reads " + text.substr(0, 60));
}

std::string written(double value, int digits) {
  char text[32];
  char* const end = digits == 0 ? dpsvm::write_shortest(value, text) : dpsvm::write_rounded(value, digits, text);
  return std::string(text, end);
}

std::string printed(const char* format, int digits, double value) {
  char text[64];
  std::snprintf(text, sizeof text, format, digits, value);
  return text;
}

// The fewest digits that read back; of as many there may be one nearer to the double than printf's, at powers of two.
void check_written(double value) {
  for (const int digits : {1, 2, 6, 15, 16, 17}) CHECK_EQUAL(written(value, digits), printed("%.*g", digits, value));
  const std::string shortest = written(value, 0);
  CHECK(library_reads(shortest) == value);
#if defined(__cpp_lib_to_chars)
  char text[32];
  CHECK_EQUAL(shortest, std::string(text, std::to_chars(text, text + sizeof text, value).ptr));
#endif
}

void check_both(double value) {
  check_written(value);
  check_written(-value);
  check_read(printed("%.*e", 16, value));
}

void converts_the_doubles_beside_powers() {
  for (int power = -1074; power < 1024; ++power) {
    const double value = std::ldexp(1.0, power);
    for (const double near : {std::nextafter(value, 0.0), value, std::nextafter(value, kInfinity)}) check_both(near);
  }
  for (int power = -323; power < 309; ++power) {
    const double value = library_reads("1e" + std::to_string(power));
    for (const double near : {std::nextafter(value, 0.0), value, std::nextafter(value, kInfinity)}) check_both(near);
  }
}

void converts_doubles_of_any_bits() {
  Random random(3);
  for (int trial = 0; trial < 5000; ++trial) {
    const std::uint64_t bits = random() >> 1;
    double value;
    std::memcpy(&value, &bits, sizeof value);
    if (std::isfinite(value)) check_both(value);
    check_both(std::ldexp(static_cast<double>(random() >> trial % 64), static_cast<int>(random() % 40) - 20));
    check_both(static_cast<double>(random() % 1000000) / 1000.0);
    check_read(printed("%.*e", trial % 25, std::abs(std::isfinite(value) ? value : 0.1)));
  }
}

// A midpoint, and a hair above it.
void rounds_midpoints_to_even() {
  char text[900];
  Random random(4);
  for (int trial = 0; trial < 5000; ++trial) {
    const std::uint64_t midpoint = (random() >> 10) | (std::uint64_t{1} << 53) | 1;
    std::snprintf(text, sizeof text, "%llu", static_cast<unsigned long long>(midpoint));
    check_read(text);
    check_read(text + ("." + std::string(900, '0')) + "1");
#if LDBL_MANT_DIG > DBL_MANT_DIG && LDBL_MAX_EXP > DBL_MAX_EXP && !defined(_WIN32)
    const std::uint64_t bits = (random() >> 1) % 0x7fefffffffffffff;
    double below;
    std::memcpy(&below, &bits, sizeof below);
    const long double wide =
        (static_cast<long double>(below) + static_cast<long double>(std::nextafter(below, kInfinity))) / 2;
    std::snprintf(text, sizeof text, "%.780Le", wide);
    const std::string digits = text;
    const std::size_t end = digits.find('e');
    check_read(digits);
    check_read(digits.substr(0, end) + std::string(40, '0') + "1" + digits.substr(end));
#endif
  }
  const std::string overflow =  // 2^1024 - 2^970
      "1797693134862315807937289714053034150799341327100378269361737789804449682927647509466490179775872070963302864166"
      "92"
      "8879109465555478519404026306574886715058206819089020007083836762738548458177115317644757302700698555713669596228"
      "42"
      "914819860834936475292719074168444365510704342711559699508093042880177904174497792";
  check_read(overflow);
  check_read(overflow.substr(0, overflow.size() - 1) + "." + std::string(900, '9'));
  CHECK(std::isinf(dpsvm::nearest_double(overflow.c_str(), 0)));
}

void knows_the_ends_of_the_range() {
  const std::string zeros(70000, '0'), nines(5000, '9');
  for (const std::string& text : {std::string("0"),
                                  std::string("0.000e999"),
                                  std::string("1e309"),
                                  std::string("1e310"),
                                  std::string("1e99999999"),
                                  std::string("1e-323"),
                                  std::string("1e-324"),
                                  std::string("1e-325"),
                                  std::string("1e-99999999"),
                                  std::string("2.4703282292062327e-324"),
                                  std::string("2.4703282292062328e-324"),
                                  std::string("1.7976931348623158e308"),
                                  std::string("1.7976931348623159e308"),
                                  std::string("2.2250738585072011e-308"),
                                  std::string("2.2250738585072012e-308"),
                                  "0." + zeros + "1e70001",
                                  "1" + zeros + "e-70000",
                                  nines + "e-5000",
                                  "0." + nines,
                                  "0." + zeros + nines + "e69999"})
    check_read(text);
  CHECK_EQUAL(written(0.0, 0), "0");
  CHECK_EQUAL(written(-0.0, 17), "-0");
  CHECK_EQUAL(written(-kInfinity, 0), "-inf");
  CHECK_EQUAL(written(5e-324, 0), "5e-324");
  CHECK_EQUAL(written(DBL_MAX, 0), "1.7976931348623157e+308");
  CHECK_EQUAL(written(123456789012345680000.0, 0), "123456789012345683968");
}

}  // namespace

int main() {
  converts_the_doubles_beside_powers();
  converts_doubles_of_any_bits();
  rounds_midpoints_to_even();
  knows_the_ends_of_the_range();
  return check::result();
}
