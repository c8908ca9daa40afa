// The reader and the writer. Usage: test_reader [mutated inputs] [seed]
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "check.hpp"
#include "decimal.hpp"
#include "library.hpp"
#include "reader.hpp"
#include "writer.hpp"

namespace {

using dpsvm::Index;
using dpsvm::ReaderOptions;
using dpsvm::SparseRows;
using Random = std::mt19937_64;

std::size_t below(Random& random, std::size_t bound) { return static_cast<std::size_t>(random() % bound); }

// What reading a text came to: rows, or the line and reason of the error.
struct Outcome {
  SparseRows rows;
  std::string error;

  bool operator==(const Outcome& other) const {
    return error == other.error &&
           (!error.empty() || (same(rows.leading, other.rows.leading) && same(rows.values, other.rows.values) &&
                               rows.columns == other.rows.columns && rows.offsets == other.rows.offsets));
  }

  static bool same(const std::vector<double>& a, const std::vector<double>& b) {
    return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(double)) == 0);
  }
};

// Each piece is fed from memory of exactly its size, so that reading past its end is seen by the sanitizer.
void feed_copy(dpsvm::Reader& reader, const std::string& text, std::size_t start, std::size_t size) {
  const std::vector<char> piece(text.begin() + static_cast<std::ptrdiff_t>(start),
                                text.begin() + static_cast<std::ptrdiff_t>(start + size));
  reader.feed(piece.data(), piece.size());
}

// Reads the text in pieces of a size, or of random sizes when there is a generator.
Outcome read(const std::string& text, const ReaderOptions& options = {}, std::size_t piece = 1 << 20,
             Random* random = nullptr) {
  dpsvm::Reader reader(options);
  try {
    for (std::size_t start = 0; start < text.size();) {
      const std::size_t wanted = random ? 1 + below(*random, piece) : piece;
      const std::size_t size = std::min(wanted, text.size() - start);
      feed_copy(reader, text, start, size);
      start += size;
    }
    reader.finish();
  } catch (const dpsvm::FormatError& error) {
    CHECK_EQUAL(error.line, reader.line());
    return {{}, std::to_string(error.line) + ": " + error.what()};
  }
  return {reader.rows(), ""};
}

std::string error_of(const std::string& text, const ReaderOptions& options = {}) { return read(text, options).error; }

void accepts_what_the_format_allows() {
  const Outcome plain = read("+1 1:0.5 3:-2e1\n-1 2:1\n");
  CHECK(plain.error.empty());
  CHECK((plain.rows.leading == std::vector<double>{1, -1}));
  CHECK((plain.rows.values == std::vector<double>{0.5, -20, 1}));
  CHECK((plain.rows.columns == std::vector<std::int32_t>{0, 2, 1}));
  CHECK((plain.rows.offsets == std::vector<std::int64_t>{0, 2, 3}));
  for (const char* same :
       {"+1 1:0.5 3:-2e1\r\n-1 2:1\r\n", "+1 1:0.5 3:-2e1\n-1 2:1", "+1 1:0.5 3:-2e1\n-1 2:1\r",
        "\n  \t\n# c\n1\t1:.5  3:-20. # x:y\n\n-1 2:1#\n\r\n", "1 qid:3 1:5e-1 3:-20\n-1 qid:4 2:1"}) {
    CHECK(read(same) == plain);
  }
  CHECK((read("1\n2 \n").rows.offsets == std::vector<std::int64_t>{0, 0, 0}));
  CHECK_EQUAL(read("").rows.count(), 0);
  CHECK_EQUAL(read("1 2147483647:1").rows.columns.back(), 2147483646);
}

void rejects_what_the_format_forbids() {
  CHECK_EQUAL(error_of("1 1:nan"), "1: value \"nan\" is not a finite number");
  CHECK_EQUAL(error_of("1 1:1\n-inf 1:1"), "2: label \"-inf\" is not a finite number");
  CHECK_EQUAL(error_of("1 1:1e309"), "1: value \"1e309\" is too large for a double");
  CHECK_EQUAL(error_of("1 1:1e309x"), "1: value \"1e309x\" is not a finite number");
  CHECK_EQUAL(error_of("1 0:1"), "1: index 0 is below 1");
  CHECK_EQUAL(error_of("1 -3:1"), "1: index of \"-3:1\" is below 1");
  CHECK_EQUAL(error_of("1 2:1 2:1"), "1: index 2 does not ascend: it follows 2");
  CHECK_EQUAL(error_of("1 2147483648:1"), "1: index of \"2147483648:1\" is beyond 2147483647");
  CHECK_EQUAL(error_of("1 18446744073709551617:1"), "1: index of \"18446744073709551617:1\" is beyond 2147483647");
  CHECK_EQUAL(error_of("1 7"), "1: token \"7\" has no colon");
  CHECK_EQUAL(error_of("1 1.5:7"), "1: index of \"1.5:7\" is not a whole number");
  CHECK_EQUAL(error_of("1 1:"), "1: value is missing");
  CHECK_EQUAL(error_of("1 1: 2"), "1: value is missing");
  CHECK_EQUAL(error_of("1 1:2:3"), "1: value \"2:3\" is not a finite number");
  CHECK_EQUAL(error_of("1 1:0x1p3"), "1: value \"0x1p3\" is not a finite number");
  CHECK_EQUAL(error_of(std::string("1 1:1\0 2:3", 10)), "1: value \"1\\x00\" is not a finite number");
  CHECK_EQUAL(error_of("1 1:1\r 2:3"), "1: value \"1\\x0d\" is not a finite number");
  CHECK_EQUAL(error_of("1:2"), "1: label \"1:2\" is not a finite number");
  CHECK_EQUAL(error_of("1 1:2 qid:3"), "1: index of \"qid:3\" is not a whole number");
  CHECK_EQUAL(error_of("1 qid:x 1:2"), "1: query \"qid:x\" is not qid:N");
  CHECK(error_of("1 1:" + std::string(1000, 'a')).size() < 100);
}

void honours_its_options() {
  ReaderOptions two;
  two.leading = 2;
  two.leading_name = "coefficient";
  two.first_line = 9;
  CHECK((read("1 2 1:3", two).rows.leading == std::vector<double>{1, 2}));
  CHECK_EQUAL(error_of("\n1 # 2", two), "10: only 1 of 2 leading numbers");
  CHECK_EQUAL(error_of("1 1:2", two), "9: coefficient \"1:2\" is not a finite number");
  two.leading = std::numeric_limits<Index>::max();
  CHECK_EQUAL(error_of("1 2", two), "9: only 2 of 9223372036854775807 leading numbers");
  two.leading = -1;
  CHECK_THROWS(read("", two), dpsvm::InvalidInput);

  ReaderOptions limited;
  limited.max_rows = 1;
  limited.max_index = 3;
  CHECK(error_of("1 3:1\n\n", limited).empty());
  CHECK_EQUAL(error_of("1\n\n2\n", limited), "3: more rows than the 1 expected");
  CHECK_EQUAL(error_of("1 4:1", limited), "1: index of \"4:1\" is beyond 3");

  ReaderOptions precomputed;
  precomputed.precomputed = true;
  const Outcome kernel = read("1 0:2 1:5 2:6", precomputed);
  CHECK((kernel.rows.columns == std::vector<std::int32_t>{0, 1, 2}));
  CHECK((kernel.rows.values == std::vector<double>{2, 5, 6}));
  CHECK_EQUAL(error_of("1 1:5", precomputed), "1: a row of a precomputed kernel must have 0:serial before its entries");
  CHECK_EQUAL(error_of("1 0:1.5", precomputed), "1: serial number \"1.5\" is not a whole number from 1 to 2147483647");
  CHECK_EQUAL(error_of("1 0:1 0:2", precomputed), "1: index 0 is below 1");
}

void remembers_the_line_of_each_row() {
  dpsvm::Reader reader({});
  const std::string text = "1\n2\n\n# c\n3\n4\n\n5";
  reader.feed(text.data(), text.size());
  reader.finish();
  const std::vector<Index> expected = {1, 2, 5, 6, 8};
  CHECK_EQUAL(reader.rows().count(), 5);
  for (std::size_t row = 0; row < expected.size(); ++row) {
    CHECK_EQUAL(reader.line_of(static_cast<Index>(row)), expected[row]);
  }
  CHECK_THROWS(reader.line_of(5), std::out_of_range);
  CHECK_THROWS(reader.line_of(-1), std::out_of_range);
}

void takes_a_long_line_in_small_pieces() {
  std::string text = "1";
  for (int index = 1; index <= 200000; ++index) text += ' ' + std::to_string(index) + ":1";
  const Outcome outcome = read(text, {}, 16);
  CHECK_EQUAL(outcome.error, "");
  CHECK_EQUAL(outcome.rows.values.size(), 200000u);
}

std::optional<double> decimal(const std::string& number) {
  const std::string text = number + '\n';
  const char* p = text.c_str();
  double value;
  if (dpsvm::parse_decimal(p, value) != dpsvm::Decimal::ok || *p != '\n') return std::nullopt;
  return value;
}

void check_decimal(const std::string& text) {
  const double expected = library_reads(text);
  const std::optional<double> actual = decimal(text);
  const bool right = std::isinf(expected) ? !actual : actual && std::memcmp(&*actual, &expected, sizeof expected) == 0;
  check::report(right, __FILE__, __LINE__, "decimal " + text.substr(0, 60));
}

void rounds_every_decimal_as_the_library_does() {
  const std::string zeros(70000, '0');
  for (const std::string& text : {std::string("0"),
                                  std::string("-0"),
                                  std::string("+.5"),
                                  std::string("5."),
                                  std::string("0e99999"),
                                  std::string("-0e-99999"),
                                  std::string("9007199254740993"),
                                  std::string("9007199254740992e22"),
                                  std::string("9007199254740993e22"),
                                  std::string("1e23"),
                                  std::string("8.5e-23"),
                                  std::string("4.9e-324"),
                                  std::string("2.4e-324"),
                                  std::string("2.5e-324"),
                                  std::string("-1e-400"),
                                  std::string("1e99999999999999999999"),
                                  std::string("1e-99999999999999999999"),
                                  std::string("1.7976931348623157e308"),
                                  std::string("1.7976931348623159e308"),
                                  std::string("2.2250738585072011e-308"),
                                  std::string("18446744073709551616"),
                                  std::string("0.") + zeros + "1e70001",
                                  "1" + zeros + "e-70000",
                                  "1" + zeros,
                                  "0." + zeros + "1",
                                  "0." + zeros + "e70000"}) {
    check_decimal(text);
  }
  Random random(7);
  for (int trial = 0; trial < 20000; ++trial) {
    std::string text(below(random, 2), '-');
    for (std::size_t n = 1 + below(random, 12); n > 0; --n) text += static_cast<char>('0' + below(random, 10));
    if (below(random, 2)) text += '.';
    if (text.back() == '.') {
      for (std::size_t n = below(random, 14); n > 0; --n) text += static_cast<char>('0' + below(random, 10));
    }
    if (below(random, 2)) text += 'e' + std::to_string(static_cast<int>(below(random, 700)) - 350);
    check_decimal(text);
  }
  for (const char* text : {"", "+", ".", "e5", "1e", "1e+", "--1", "+-1", "nan", "inf", "0x10", "1_0", "1,5"}) {
    CHECK(!decimal(text));
  }
}

std::string written(const SparseRows& rows, const dpsvm::WriterOptions& options = {}) {
  const std::vector<std::int64_t> columns(rows.columns.begin(), rows.columns.end());
  std::string out;
  dpsvm::write_rows({rows.leading.data(), rows.values.data(), columns.data(), rows.offsets.data(), rows.count()},
                    options, out);
  return out;
}

void writes_numbers_as_printf_does() {
  Random random(11);
  for (int trial = 0; trial < 20000; ++trial) {
    const std::uint64_t bits = random();
    double value;
    std::memcpy(&value, &bits, sizeof value);
    if (trial % 2) value = std::ldexp(static_cast<double>(random() % 2000001) - 1e6, -static_cast<int>(trial % 7));
    if (!std::isfinite(value)) continue;
    dpsvm::WriterOptions options;
    options.leading = 0;
    options.value_digits = 1 + trial % 17;
    char expected[64];
    std::snprintf(expected, sizeof expected, "1:%.*g \n", options.value_digits, value);
    CHECK_EQUAL(written({{}, {value}, {0}, {0, 1}}, options), expected);
    options.value_digits = 0;
    const std::string shortest = written({{}, {value}, {0}, {0, 1}}, options);
    const std::optional<double> back = decimal(shortest.substr(2, shortest.size() - 4));
    CHECK(back && std::memcmp(&*back, &value, sizeof value) == 0);
  }
}

std::string mutate(std::string text, Random& random) {
  static const std::vector<std::string> tokens = {"nan",
                                                  "inf",
                                                  "-",
                                                  "+",
                                                  ":",
                                                  "#",
                                                  "\n",
                                                  "\r\n",
                                                  "\r",
                                                  " ",
                                                  "\t",
                                                  "0:1",
                                                  "1:",
                                                  ":1",
                                                  "qid:",
                                                  "qid:5",
                                                  "1e999",
                                                  "1e-999",
                                                  "2147483647:1",
                                                  "2147483648:1",
                                                  "99999999999999999999:1",
                                                  "-1:1",
                                                  "0x1",
                                                  "1.",
                                                  ".5",
                                                  "e5",
                                                  "1:1:1",
                                                  "123456789012345678901234567890",
                                                  "0.1e-22",
                                                  std::string(1, '\0'),
                                                  "\xff",
                                                  "\xef\xbb\xbf",
                                                  std::string(300, '7')};
  for (std::size_t edits = 1 + below(random, 4); edits > 0; --edits) {
    const std::size_t at = below(random, text.size() + 1);
    const std::size_t span = below(random, std::min<std::size_t>(text.size() - at, 12) + 1);
    switch (below(random, 5)) {
      case 0:
        text.insert(at, tokens[below(random, tokens.size())]);
        break;
      case 1:
        text.erase(at, span);
        break;
      case 2:
        text.insert(at, text.substr(at, span));
        break;
      case 3:
        text.replace(at, span, tokens[below(random, tokens.size())]);
        break;
      default:
        if (at < text.size()) text[at] = static_cast<char>(random());
    }
  }
  return text;
}

void check_rows(const SparseRows& rows, const ReaderOptions& options) {
  const auto count = static_cast<std::size_t>(rows.count());
  CHECK_EQUAL(rows.leading.size(), count * static_cast<std::size_t>(options.leading));
  CHECK_EQUAL(rows.values.size(), rows.columns.size());
  CHECK_EQUAL(static_cast<std::size_t>(rows.offsets.back()), rows.columns.size());
  for (const double value : rows.leading) CHECK(std::isfinite(value));
  for (const double value : rows.values) CHECK(std::isfinite(value));
  for (std::size_t row = 0; row < count; ++row) {
    const auto begin = static_cast<std::size_t>(rows.offsets[row]);
    const auto end = static_cast<std::size_t>(rows.offsets[row + 1]);
    for (std::size_t k = begin; k < end; ++k) {
      CHECK(rows.columns[k] >= 0);
      CHECK(k == begin || rows.columns[k - 1] < rows.columns[k]);
    }
  }
}

// Whatever the text: rows or an error, the same however the text is cut; and rows that survive being written.
void survives_mutation(std::size_t inputs, std::uint64_t seed) {
  const std::vector<std::string> sources = {
      "+1 1:0.5 3:-2e1 7:1\n-1 2:1 # note\n\n+1\n-1 1:3 2:4\r\n", "1 qid:1 1:0.125 2:1e-7\n2 qid:2 3:123456.789\n",
      "0.25 -1 1:0.70833 2:1 3:1\n-0.5 1 2:-0.32 4:1\n", "1 0:1 1:4 2:2\n-1 0:2 1:2 2:9\n"};
  Random random(seed);
  for (std::size_t input = 0; input < inputs; ++input) {
    const std::string text = mutate(sources[input % sources.size()], random);
    ReaderOptions options;
    options.leading = input % sources.size() == 2 ? 2 : 1;
    options.precomputed = input % sources.size() == 3;
    const Outcome whole = read(text, options);
    CHECK(read(text, options, 1 + below(random, 8), &random) == whole);
    if (!whole.error.empty()) continue;
    check_rows(whole.rows, options);
    dpsvm::WriterOptions writing;
    writing.leading = options.leading;
    writing.first_index = options.precomputed ? 0 : 1;
    CHECK(read(written(whole.rows, writing), options) == whole);
  }
}

}  // namespace

int main(int argc, char** argv) {
  accepts_what_the_format_allows();
  rejects_what_the_format_forbids();
  honours_its_options();
  remembers_the_line_of_each_row();
  takes_a_long_line_in_small_pieces();
  rounds_every_decimal_as_the_library_does();
  writes_numbers_as_printf_does();
  const std::size_t inputs = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 2000;
  const std::uint64_t seed = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1;
  survives_mutation(inputs, seed);
  return check::result();
}
