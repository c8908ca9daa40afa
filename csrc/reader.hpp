// LIBSVM text -> compressed sparse rows, strictly: what the format does not allow is an error, never a guess.
//
// A row is: leading numbers (the label of a data file, or the nr_class - 1 coefficients of a model's support vector),
// perhaps qid:N, and index:value pairs whose indices ascend.
//
// Separators are spaces and tabs; lines end in \n or \r\n; # starts a comment; lines without a row are skipped.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "types.hpp"

namespace dpsvm {

struct FormatError : InvalidInput {
  FormatError(Index at, const std::string& reason) : InvalidInput(reason), line(at) {}
  Index line;
};

struct ReaderOptions {
  Index leading = 1;                   // plain numbers that start a row
  std::string leading_name = "label";  // what errors call them
  Index first_line = 1;                // number of the first line fed
  Index max_rows = std::numeric_limits<Index>::max();
  Index max_index = std::numeric_limits<std::int32_t>::max();
  bool precomputed = false;  // every row has 0:serial before its entries; columns then start at index 0
};

struct SparseRows {
  std::vector<double> leading;              // [rows * options.leading]
  std::vector<double> values;               // [entries]
  std::vector<std::int32_t> columns;        // [entries], index - 1, or the index itself when precomputed
  std::vector<std::int64_t> offsets = {0};  // [rows + 1]

  Index count() const { return static_cast<Index>(offsets.size()) - 1; }
};

// Takes the text in pieces cut anywhere; memory grows with the text fed, not with any number in it.
// Throws FormatError; after that the reader may only be asked for line().
class Reader {
 public:
  explicit Reader(ReaderOptions options);

  void feed(const char* text, std::size_t size);
  void finish();  // the last line may lack its newline

  const SparseRows& rows() const { return rows_; }
  Index line() const { return line_; }              // the line being read
  Index line_of(Index row) const;                   // the line a row was read from
  Index column_count() const { return columns_; }   // one more than the largest column
  Index qid_tokens() const { return qid_tokens_; }  // seen and ignored

 private:
  // Rows from `row` on, up to the next jump, stand `shift` lines below their number.
  struct Jump {
    Index row, shift;
  };

  void read_lines(const char* text, const char* end);
  const char* read_row(const char* p);
  const char* read_leading(const char* p);
  const char* read_serial(const char* p);
  const char* skip_qid(const char* p);
  const char* read_entries(const char* p);
  const char* read_value(const char* p, const char* what, double& value);
  void finish_row();
  void push(Index column, double value);
  [[noreturn]] void fail(const std::string& reason) const;
  [[noreturn]] void fail_index(const char* token) const;

  ReaderOptions options_;
  SparseRows rows_;
  std::vector<Jump> jumps_;
  std::string partial_;  // the start of a line whose end has not been fed
  Index line_;
  Index columns_ = 0;
  Index qid_tokens_ = 0;
};

}  // namespace dpsvm
