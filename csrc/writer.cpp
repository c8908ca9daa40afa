#include "writer.hpp"

#include <charconv>
#include <cmath>

#include "exact_decimal.hpp"

namespace dpsvm {
namespace {

constexpr Index kLongestNumber = 32;  // %.17g takes at most 24

// Whole numbers below 10^digits look the same as integers and as %.*g; integers are quicker.
double integer_limit(int digits) { return digits == 0 || digits > 9 ? 1e9 : std::pow(10.0, digits); }

class NumberWriter {
 public:
  explicit NumberWriter(int digits) : digits_(digits), limit_(integer_limit(digits)) {}

  char* write(double value, char* out) const {
    char* const end = out + kLongestNumber;
    if (value > -limit_ && value < limit_) {
      const auto whole = static_cast<std::int32_t>(value);
      if (whole == value && (whole != 0 || !std::signbit(value))) return std::to_chars(out, end, whole).ptr;
    }
#if defined(__cpp_lib_to_chars)
    if (digits_ == 0) return std::to_chars(out, end, value).ptr;
    return std::to_chars(out, end, value, std::chars_format::general, digits_).ptr;
#else
    return digits_ == 0 ? write_shortest(value, out) : write_rounded(value, digits_, out);
#endif
  }

 private:
  int digits_;
  double limit_;
};

}  // namespace

void write_rows(const SparseRowsView& rows, const WriterOptions& options, std::string& out) {
  const NumberWriter leading(options.leading_digits);
  const NumberWriter values(options.value_digits);
  char buffer[2 * kLongestNumber + 2];  // index:value and its space
  for (Index row = 0; row < rows.rows; ++row) {
    for (Index i = row * options.leading; i < (row + 1) * options.leading; ++i) {
      char* p = leading.write(rows.leading[i], buffer);
      *p++ = ' ';
      out.append(buffer, p);
    }
    for (std::int64_t k = rows.offsets[row]; k < rows.offsets[row + 1]; ++k) {
      char* p = std::to_chars(buffer, buffer + kLongestNumber, rows.columns[k] + options.first_index).ptr;
      *p++ = ':';
      p = values.write(rows.values[k], p);
      *p++ = ' ';
      out.append(buffer, p);
    }
    out += '\n';
  }
}

}  // namespace dpsvm
