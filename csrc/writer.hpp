// Compressed sparse rows -> LIBSVM text: leading numbers, then index:value, each followed by one space as LIBSVM's own
// tools write them, and a newline after each row.
#pragma once

#include <cstdint>
#include <string>

#include "types.hpp"

namespace dpsvm {

struct WriterOptions {
  Index leading = 1;       // numbers that start a row
  int leading_digits = 0;  // significant digits, as printf's %.*g; 0: the fewest that read back to the same double
  int value_digits = 0;    // likewise
  Index first_index = 1;   // index written for column 0
};

struct SparseRowsView {
  const double* leading;        // [rows * options.leading]
  const double* values;         // [entries]
  const std::int64_t* columns;  // [entries]
  const std::int64_t* offsets;  // [rows + 1], of which the first need not be 0
  Index rows;
};

// Appends the rows to `out`. Requires: digits between 0 and 17.
void write_rows(const SparseRowsView& rows, const WriterOptions& options, std::string& out);

}  // namespace dpsvm
