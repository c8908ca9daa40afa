// The cache never exceeds its budget, forgets the least recently used row first, and follows exchanges of columns.
#include "cache.hpp"

#include <vector>

#include "check.hpp"

using namespace dpsvm;

namespace {

void write(RowCache& cache, Index id, Index length) {
  const auto row = cache.fetch(id, length);
  for (Index t = row.valid; t < length; ++t) row.data[t] = static_cast<float>(100 * id + t);
  cache.set_valid(id, length);
}

void keeps_recent_rows() {
  RowCache cache(5, 10, 3 * 10 * sizeof(float));
  for (Index id : {0, 1, 2}) write(cache, id, 10);
  CHECK_EQUAL(cache.fetch(0, 10).valid, 10);
  write(cache, 3, 10);
  CHECK_EQUAL(cache.fetch(1, 10).valid, 0);  // the least recently used of 0, 1, 2
  cache.set_valid(1, 10);
  CHECK_EQUAL(cache.fetch(0, 10).valid, 10);
}

void two_rows_always_fit() {
  RowCache cache(3, 1000, 1);
  write(cache, 0, 1000);
  write(cache, 1, 1000);
  CHECK_EQUAL(cache.fetch(0, 1000).valid, 1000);
  CHECK_EQUAL(cache.fetch(1, 1000).valid, 1000);
}

void a_row_grows() {
  RowCache cache(2, 8, 1000);
  write(cache, 0, 3);
  const auto row = cache.fetch(0, 8);
  CHECK_EQUAL(row.valid, 3);
  CHECK_EQUAL(row.data[2], 2.0f);
}

void columns_follow_exchanges() {
  RowCache cache(3, 6, 1000);
  write(cache, 0, 6);
  write(cache, 1, 4);
  write(cache, 2, 1);
  cache.swap_columns({{1, 5}, {1, 2}});
  const auto whole = cache.fetch(0, 6);
  CHECK_EQUAL(whole.data[1], 2.0f);
  CHECK_EQUAL(whole.data[2], 5.0f);
  CHECK_EQUAL(whole.data[5], 1.0f);
  CHECK_EQUAL(cache.fetch(1, 4).valid, 1);  // it ended between columns 1 and 5
  CHECK_EQUAL(cache.fetch(2, 1).valid, 1);  // it ended before both
}

}  // namespace

int main() {
  keeps_recent_rows();
  two_rows_always_fit();
  a_row_grows();
  columns_follow_exchanges();
  return check::result();
}
