#include "reader.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <iterator>
#include <utility>

#include "decimal.hpp"

// Every function below that takes a `const char* p` may rely on a newline at or after p, and stops at it.

namespace dpsvm {
namespace {

constexpr Index kLargestIndex = std::numeric_limits<std::int32_t>::max();

bool is_blank(char c) { return c == ' ' || c == '\t'; }

bool ends_row(const char* p) { return *p == '\n' || *p == '#' || (*p == '\r' && p[1] == '\n'); }

bool ends_token(const char* p) { return is_blank(*p) || ends_row(p); }

const char* skip_blanks(const char* p) {
  while (is_blank(*p)) ++p;
  return p;
}

// The token at p in quotes, in printable ASCII, cut to a length fit for a message.
std::string quote(const char* p) {
  constexpr std::size_t kLongest = 40;
  constexpr char kHex[] = "0123456789abcdef";
  std::string text = "\"";
  for (; !ends_token(p); ++p) {
    if (text.size() > kLongest) {
      text += "...";
      break;
    }
    const auto byte = static_cast<unsigned char>(*p);
    if (byte >= 0x20 && byte < 0x7f) {
      text += *p;
    } else {
      text += {'\\', 'x', kHex[byte >> 4], kHex[byte & 15]};
    }
  }
  return text + '"';
}

// Digits at p as a number; one beyond every index allowed if there are too many of them.
const char* read_index(const char* p, Index& index) {
  const char* const first = p;
  std::uint64_t number = 0;
  for (; is_digit(*p); ++p) number = 10 * number + static_cast<std::uint64_t>(*p - '0');
  index = p - first <= 18 ? static_cast<Index>(number) : std::numeric_limits<Index>::max();
  return p;
}

}  // namespace

Reader::Reader(ReaderOptions options) : options_(std::move(options)), line_(options_.first_line) {
  if (options_.leading < 0) throw InvalidInput("leading must not be negative");
  options_.max_index = std::min(options_.max_index, kLargestIndex);
}

void Reader::feed(const char* text, std::size_t size) {
  if (size == 0) return;
  const char* const end = text + size;
  if (!partial_.empty()) {
    const void* const newline = std::memchr(text, '\n', size);
    if (newline == nullptr) {
      partial_.append(text, size);
      return;
    }
    const char* const next = static_cast<const char*>(newline) + 1;
    partial_.append(text, next);
    read_lines(partial_.data(), partial_.data() + partial_.size());
    partial_.clear();
    text = next;
  }
  const char* const last = std::find(std::make_reverse_iterator(end), std::make_reverse_iterator(text), '\n').base();
  read_lines(text, last);
  partial_.assign(last, end);
}

void Reader::finish() {
  if (partial_.empty()) return;
  partial_ += '\n';
  read_lines(partial_.data(), partial_.data() + partial_.size());
  partial_.clear();
}

Index Reader::line_of(Index row) const {
  if (row < 0 || row >= rows_.count()) throw std::out_of_range("row " + std::to_string(row) + " was not read");
  const auto after = std::upper_bound(jumps_.begin(), jumps_.end(), row,
                                      [](Index wanted, const Jump& jump) { return wanted < jump.row; });
  return row + std::prev(after)->shift;
}

// Whole lines: [text, end) is empty or ends in a newline.
void Reader::read_lines(const char* text, const char* end) {
  while (text != end) {
    text = skip_blanks(text);
    if (!ends_row(text)) text = read_row(text);
    text = static_cast<const char*>(std::memchr(text, '\n', static_cast<std::size_t>(end - text))) + 1;
    ++line_;
  }
}

const char* Reader::read_row(const char* p) {
  if (rows_.count() >= options_.max_rows) fail("more rows than the " + std::to_string(options_.max_rows) + " expected");
  p = read_leading(p);
  p = skip_qid(p);
  if (options_.precomputed) p = read_serial(p);
  p = read_entries(p);
  finish_row();
  return p;
}

const char* Reader::read_leading(const char* p) {
  for (Index i = 0; i < options_.leading; ++i) {
    p = skip_blanks(p);
    if (ends_row(p)) fail("only " + std::to_string(i) + " of " + std::to_string(options_.leading) + " leading numbers");
    double number;
    p = read_value(p, options_.leading_name.c_str(), number);
    rows_.leading.push_back(number);
  }
  return p;
}

const char* Reader::skip_qid(const char* p) {
  p = skip_blanks(p);
  if (p[0] != 'q' || p[1] != 'i' || p[2] != 'd' || p[3] != ':') return p;
  Index query;
  const char* const last = read_index(p + 4, query);
  if (last == p + 4 || !ends_token(last)) fail("query " + quote(p) + " is not qid:N");
  ++qid_tokens_;
  return last;
}

const char* Reader::read_serial(const char* p) {
  if (p[0] != '0' || p[1] != ':') fail("a row of a precomputed kernel must have 0:serial before its entries");
  double serial;
  const char* const last = read_value(p + 2, "serial number", serial);
  if (serial < 1 || serial > static_cast<double>(kLargestIndex) || serial != std::floor(serial)) {
    fail("serial number " + quote(p + 2) + " is not a whole number from 1 to 2147483647");
  }
  push(0, serial);
  return last;
}

const char* Reader::read_entries(const char* p) {
  const Index base = options_.precomputed ? 0 : 1;
  Index previous = 0;
  for (p = skip_blanks(p); !ends_row(p); p = skip_blanks(p)) {
    const char* const token = p;
    Index index;
    p = read_index(p, index);
    if (p == token || *p != ':') fail_index(token);
    if (index <= previous) {
      if (index == 0) fail("index 0 is below 1");
      fail("index " + std::to_string(index) + " does not ascend: it follows " + std::to_string(previous));
    }
    if (index > options_.max_index) {
      fail("index of " + quote(token) + " is beyond " + std::to_string(options_.max_index));
    }
    double value;
    p = read_value(p + 1, "value", value);
    push(index - base, value);
    previous = index;
  }
  return p;
}

const char* Reader::read_value(const char* p, const char* what, double& value) {
  if (is_digit(p[0]) && is_blank(p[1])) {  // most of what 0/1 data holds
    value = p[0] - '0';
    return p + 1;
  }
  if (ends_token(p)) fail(std::string(what) + " is missing");
  const char* const token = p;
  const Decimal outcome = parse_decimal(p, value);
  if (outcome == Decimal::ok && ends_token(p)) return p;
  const bool too_large = outcome == Decimal::too_large && ends_token(p);
  fail(what + (' ' + quote(token)) + (too_large ? " is too large for a double" : " is not a finite number"));
}

void Reader::finish_row() {
  const Index row = rows_.count();
  const Index shift = line_ - row;
  if (jumps_.empty() || jumps_.back().shift != shift) jumps_.push_back({row, shift});
  const auto entries = static_cast<Index>(rows_.columns.size());
  if (entries > rows_.offsets.back()) columns_ = std::max<Index>(columns_, rows_.columns.back() + Index{1});
  rows_.offsets.push_back(entries);
}

void Reader::push(Index column, double value) {
  rows_.columns.push_back(static_cast<std::int32_t>(column));
  rows_.values.push_back(value);
}

void Reader::fail(const std::string& reason) const { throw FormatError(line_, reason); }

// The token at hand does not start with an index and a colon.
void Reader::fail_index(const char* token) const {
  const char* p = token;
  while (*p != ':' && !ends_token(p)) ++p;
  if (*p != ':') fail("token " + quote(token) + " has no colon");
  if (token[0] == '-' && is_digit(token[1])) fail("index of " + quote(token) + " is below 1");
  fail("index of " + quote(token) + " is not a whole number");
}

}  // namespace dpsvm
