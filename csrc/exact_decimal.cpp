#include "exact_decimal.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>

#include "decimal.hpp"

namespace dpsvm {
namespace {

// A whole number; what is computed below stays under 2^5000.
class Natural {
 public:
  explicit Natural(std::uint64_t value = 0) {
    for (; value > 0; value >>= 32) limbs_[size_++] = static_cast<std::uint32_t>(value);
  }
  Natural(const Natural& other) : size_(other.size_) { std::copy_n(other.limbs_, size_, limbs_); }
  Natural& operator=(const Natural&) = delete;

  void multiply_add(std::uint32_t factor, std::uint32_t term) {
    std::uint64_t carry = term;
    for (int k = 0; k < size_; ++k) {
      carry += std::uint64_t{factor} * limbs_[k];
      limbs_[k] = static_cast<std::uint32_t>(carry);
      carry >>= 32;
    }
    if (carry > 0) limbs_[size_++] = static_cast<std::uint32_t>(carry);
  }

  void multiply_by_power_of_five(int n) {
    constexpr int kMost = 13;  // 5^13 < 2^32
    constexpr std::uint32_t kLargest = 1220703125;
    for (; n >= kMost; n -= kMost) multiply_add(kLargest, 0);
    std::uint32_t rest = 1;
    for (; n > 0; --n) rest *= 5;
    multiply_add(rest, 0);
  }

  void shift_left(int bits) {
    multiply_add(std::uint32_t{1} << bits % 32, 0);
    if (size_ == 0) return;
    const int whole = bits / 32;
    std::copy_backward(limbs_, limbs_ + size_, limbs_ + size_ + whole);
    std::fill_n(limbs_, whole, 0);
    size_ += whole;
  }

  void multiply_by_power_of_ten(int n) {
    multiply_by_power_of_five(n);
    shift_left(n);
  }

  void add(const Natural& other) {
    std::fill(limbs_ + size_, limbs_ + std::max(size_, other.size_), 0);
    size_ = std::max(size_, other.size_);
    std::uint64_t carry = 0;
    for (int k = 0; k < size_; ++k) {
      carry += std::uint64_t{limbs_[k]} + (k < other.size_ ? other.limbs_[k] : 0);
      limbs_[k] = static_cast<std::uint32_t>(carry);
      carry >>= 32;
    }
    if (carry > 0) limbs_[size_++] = static_cast<std::uint32_t>(carry);
  }

  // Requires: other is not larger.
  void subtract(const Natural& other) {
    std::int64_t carry = 0;
    for (int k = 0; k < size_; ++k) {
      carry += std::int64_t{limbs_[k]} - (k < other.size_ ? other.limbs_[k] : 0);
      limbs_[k] = static_cast<std::uint32_t>(carry);
      carry = carry < 0 ? -1 : 0;
    }
    while (size_ > 0 && limbs_[size_ - 1] == 0) --size_;
  }

  // Negative, zero or positive as this is less than, equal to or greater than the other.
  int compare(const Natural& other) const {
    if (size_ != other.size_) return size_ < other.size_ ? -1 : 1;
    for (int k = size_ - 1; k >= 0; --k)
      if (limbs_[k] != other.limbs_[k]) return limbs_[k] < other.limbs_[k] ? -1 : 1;
    return 0;
  }

 private:
  std::uint32_t limbs_[160];  // the least significant first; those beyond size_ mean nothing
  int size_ = 0;              // limbs without the leading zeros
};

// A finite double that is not negative: whole * 2^power.
struct Binary {
  explicit Binary(std::uint64_t bits)
      : whole(bits & (kImplied - 1)), power(std::max(static_cast<int>(bits >> 52), 1) - 1075) {
    if (bits >= kImplied) whole |= kImplied;
  }

  static constexpr std::uint64_t kImplied = std::uint64_t{1} << 52;
  std::uint64_t whole;
  int power;
};

std::uint64_t bits_of(double value) {
  std::uint64_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

double double_of(std::uint64_t bits) {
  double value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

// digits * 10^exponent to a few units in the last place.
double estimate(std::uint64_t digits, int exponent) {
  auto value = static_cast<double>(digits);
  for (; exponent > 22; exponent -= 22) value *= 1e22;
  for (; exponent < -22; exponent += 22) value /= 1e22;
  return exponent < 0 ? value / detail::kPowersOfTen[-exponent] : value * detail::kPowersOfTen[exponent];
}

// digits * 10^exponent beside a midpoint of two doubles.
class Scaled {
 public:
  Scaled(const Natural& digits, int exponent) : digits_(digits), exponent_(exponent) {
    digits_.multiply_by_power_of_five(std::max(exponent, 0));
  }

  // Whether it rounds to more than the double with these bits.
  bool beyond(std::uint64_t bits) const {
    const Binary value(bits);
    Natural left = digits_, right(2 * value.whole + 1);
    right.multiply_by_power_of_five(std::max(-exponent_, 0));
    const int shift = exponent_ - (value.power - 1);
    (shift > 0 ? left : right).shift_left(std::abs(shift));
    const int order = left.compare(right);
    return order > 0 || (order == 0 && value.whole % 2 == 1);
  }

 private:
  Natural digits_;  // times 5^exponent, if that is positive
  int exponent_;
};

// The leading digits of a positive double: digits[0].digits[1]... * 10^power.
struct Digits {
  std::string digits;
  int power;

  void round_up() {
    while (!digits.empty() && digits.back() == '9') digits.pop_back();
    if (digits.empty()) {
      digits = "1";
      ++power;
    } else {
      ++digits.back();
    }
  }
};

// As many digits as asked for, rounded, or for 0 the fewest that read back to the same double, and of those the nearest:
// the digits of Steele and White (How to Print Floating-Point Numbers Accurately, 1990).
Digits digits_of(double positive, int count) {
  const Binary value(bits_of(positive));
  const bool narrow_below = value.whole == Binary::kImplied && value.power > -1074;
  const bool ends_count = value.whole % 2 == 0;  // a midpoint rounds to the even double

  // positive = rest / unit * 10^power; above / unit and below / unit are half the gaps to the doubles beside it.
  Natural rest(4 * value.whole), unit(4), above(2), below(narrow_below ? 1 : 2);
  Digits found{"", static_cast<int>(std::floor(std::log10(positive))) + 1};  // too large, however log10 rounds
  const auto multiply = [&](auto operation) { operation(rest), operation(above), operation(below); };
  if (value.power > 0)
    multiply([&](Natural& x) { x.shift_left(value.power); });
  else
    unit.shift_left(-value.power);
  if (found.power > 0)
    unit.multiply_by_power_of_ten(found.power);
  else
    multiply([&](Natural& x) { x.multiply_by_power_of_ten(-found.power); });
  const auto ten_times = [](Natural& x) { x.multiply_add(10, 0); };
  for (; rest.compare(unit) < 0; --found.power) multiply(ten_times);

  for (;;) {
    char digit = '0';
    for (; rest.compare(unit) >= 0; ++digit) rest.subtract(unit);
    found.digits += digit;
    Natural twice = rest, next = rest;
    twice.add(rest);
    next.add(above);
    const int half = twice.compare(unit);
    const bool nearer_up = half > 0 || (half == 0 && digit % 2 == 1);
    const bool down = count == 0 && rest.compare(below) < ends_count;
    const bool up = count == 0 && next.compare(unit) > -ends_count;
    if (static_cast<int>(found.digits.size()) == count || down || up) {
      if (down == up ? nearer_up : up) found.round_up();
      return found;
    }
    multiply(ten_times);
  }
}

char* copy(const std::string& text, char* out) { return std::copy(text.begin(), text.end(), out); }

std::string fixed(const Digits& of) {
  const auto whole = static_cast<std::size_t>(std::max(of.power, 0)) + 1;
  std::string text = std::string(static_cast<std::size_t>(std::max(-of.power, 0)), '0') + of.digits;
  if (text.size() < whole) text.append(whole - text.size(), '0');
  if (text.size() > whole) text.insert(whole, ".");
  return text;
}

std::string scientific(const Digits& of) {
  std::string text = of.digits;
  if (text.size() > 1) text.insert(1, ".");
  const std::string power = std::to_string(std::abs(of.power));
  return text + (of.power < 0 ? "e-" : "e+") + (power.size() < 2 ? "0" : "") + power;
}

// Writes the sign and what has no digits; `rest` gives the text of a positive number.
template <class Rest>
char* write_signed(double value, char* out, Rest rest) {
  if (std::signbit(value)) *out++ = '-';
  if (!std::isfinite(value)) return copy(std::isnan(value) ? "nan" : "inf", out);
  return copy(value == 0.0 ? "0" : rest(std::abs(value)), out);
}

}  // namespace

double nearest_double(const char* text, std::int64_t exponent) {
  // Midpoints of doubles have at most 767 digits: of what follows it matters only whether it is 0.
  constexpr int kMostDigits = 800, kHeadDigits = 19;
  while (*text == '0' || *text == '.') ++text;
  std::uint64_t head = 0;
  std::int64_t count = 0;
  for (; count < kHeadDigits && (is_digit(*text) || *text == '.'); ++text) {
    if (*text == '.') continue;
    head = 10 * head + static_cast<std::uint64_t>(*text - '0');
    ++count;
  }
  if (head == 0) return 0.0;
  Natural digits(head);
  std::int64_t after_head = 0, dropped = 0;
  bool more = false;
  for (; is_digit(*text) || *text == '.'; ++text) {
    if (*text == '.') continue;
    ++after_head;
    if (++count <= kMostDigits) {
      digits.multiply_add(10, static_cast<std::uint32_t>(*text - '0'));
    } else {
      ++dropped;
      more |= *text != '0';
    }
  }
  const std::int64_t power = exponent + count;  // the number is below 10^power and at least a tenth of that
  if (power > 310) return std::numeric_limits<double>::infinity();
  if (power < -325) return 0.0;
  if (more) {
    digits.multiply_add(10, 1);
    --dropped;
  }

  const Scaled number(digits, static_cast<int>(exponent + dropped));
  std::uint64_t bits = bits_of(estimate(head, static_cast<int>(exponent + after_head)));
  const std::uint64_t infinite = bits_of(std::numeric_limits<double>::infinity());
  while (bits < infinite && number.beyond(bits)) ++bits;
  while (bits > 0 && !number.beyond(bits - 1)) --bits;
  return double_of(bits);
}

char* write_shortest(double value, char* out) {
  return write_signed(value, out, [](double positive) {
    const Digits least = digits_of(positive, 0);
    const std::string short_form = scientific(least), long_form = fixed(least);
    if (long_form.size() > short_form.size()) return short_form;
    const bool padded = static_cast<int>(least.digits.size()) <= least.power;
    return padded ? fixed(digits_of(positive, least.power + 1)) : long_form;
  });
}

char* write_rounded(double value, int digits, char* out) {
  return write_signed(value, out, [digits](double positive) {
    Digits rounded = digits_of(positive, digits);
    while (rounded.digits.back() == '0') rounded.digits.pop_back();
    return rounded.power < -4 || rounded.power >= digits ? scientific(rounded) : fixed(rounded);
  });
}

}  // namespace dpsvm
