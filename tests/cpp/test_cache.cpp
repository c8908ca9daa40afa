// The cache never exceeds its budget, forgets the least recently used row first, and follows exchanges of columns.
#include <algorithm>
#include <vector>

#include "cache.hpp"
#include "check.hpp"
#include "random.hpp"

using namespace dpsvm;

namespace {

void write(RowCache<float>& cache, Index id, Index length) {
  const auto row = cache.fetch(id, length);
  for (Index t = row.valid; t < length; ++t) row.data[t] = static_cast<float>(100 * id + t);
  cache.set_valid(id, std::max(row.valid, length));
}

void keeps_recent_rows() {
  RowCache<float> cache(5, 10, 3 * 10 * sizeof(float));
  for (Index id : {0, 1, 2}) write(cache, id, 10);
  CHECK_EQUAL(cache.fetch(0, 10).valid, 10);
  write(cache, 3, 10);
  CHECK_EQUAL(cache.fetch(1, 10).valid, 0);  // the least recently used of 0, 1, 2
  cache.set_valid(1, 10);
  CHECK_EQUAL(cache.fetch(0, 10).valid, 10);
}

void two_rows_always_fit() {
  RowCache<float> cache(3, 1000, 1);
  write(cache, 0, 1000);
  write(cache, 1, 1000);
  CHECK_EQUAL(cache.fetch(0, 1000).valid, 1000);
  CHECK_EQUAL(cache.fetch(1, 1000).valid, 1000);
}

void a_row_grows() {
  RowCache<float> cache(2, 8, 1000);
  write(cache, 0, 3);
  const auto row = cache.fetch(0, 8);
  CHECK_EQUAL(row.valid, 3);
  CHECK_EQUAL(row.data[2], 2.0f);
}

void columns_follow_exchanges() {
  RowCache<float> cache(3, 6, 1000);
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

void memory_grows_by_what_was_forgotten_and_missed(Index effort) {
  constexpr Index rows = 3000, length = 10'000, missed = 100;
  const std::size_t bytes = 2000 * length * sizeof(float);
  RowCache<float> cache(rows, length, bytes, effort);
  const Index at_first = cache.capacity(length);
  CHECK(at_first < cache.budget(length));
  CHECK(cache.budget(length) <= 2000);
  for (Index id = 0; id < rows; ++id) write(cache, id, length);
  CHECK_EQUAL(cache.capacity(length), at_first);
  CHECK_EQUAL(cache.valid(0), 0);
  for (Index id = 0; id < missed; ++id) write(cache, id, length);
  const Index more = cache.capacity(length) - at_first;
  CHECK(more > effort * missed / 2);
  CHECK(more <= effort * missed);
}

void rows_of_any_length_keep_what_was_written() {
  constexpr Index rows = 40, longest = 100;
  for (const Index budget : {3, 7, 20, 100}) {
    RowCache<float> cache(rows, longest, budget * longest * sizeof(float));
    Random random(static_cast<std::uint64_t>(budget));
    for (int round = 0; round < 5000; ++round) {
      const Index id = random.below(rows), length = round % 3 == 0 ? longest : 1 + random.below(longest);
      write(cache, id, length);
      const auto row = cache.fetch(id, length);
      for (Index t = 0; t < row.valid; ++t) CHECK_EQUAL(row.data[t], static_cast<float>(100 * id + t));
    }
  }
}

void the_other_row_of_a_pair_stays() {
  RowCache<float> cache(20, 50, 1);
  Random random(3);
  for (int round = 0; round < 2000; ++round) {
    const Index i = random.below(20), j = random.below(20);
    write(cache, i, 1 + random.below(50));
    const auto first = cache.fetch(i, 50);
    write(cache, i, 50);
    write(cache, j, 1 + random.below(50));
    write(cache, j, 50);
    CHECK_EQUAL(first.data[49], static_cast<float>(100 * i + 49));
  }
}

void rows_in_use_stay_while_others_are_fetched() {
  constexpr Index rows = 400, longest = 100;
  for (const Index budget : {1, 4, 30, 100, 150}) {
    RowCache<float> cache(rows, longest, budget * longest * sizeof(float));
    Random random(static_cast<std::uint64_t>(budget));
    for (int round = 0; round < 300; ++round) {
      const Index most = random.below(2) == 0 ? longest : 1 + random.below(longest);
      std::vector<RowCache<float>::Room> in_use;
      const Index first = random.below(rows), together = cache.safe();
      for (Index k = 0; k < together; ++k) {
        const Index id = (first + 7 * k) % rows, length = most - random.below((most + 1) / 2);
        in_use.push_back(cache.fetch(id, length));
        for (Index t = in_use[k].valid; t < length; ++t) in_use[k].data[t] = static_cast<float>(100 * id + t);
        cache.set_valid(id, std::max(in_use[k].valid, length));
      }
      for (Index k = 0; k < together; ++k)
        CHECK_EQUAL(in_use[k].data[0], static_cast<float>(100 * ((first + 7 * k) % rows)));
    }
  }
}

}  // namespace

int main() {
  rows_in_use_stay_while_others_are_fetched();
  for (const Index effort : {1, 3}) memory_grows_by_what_was_forgotten_and_missed(effort);
  rows_of_any_length_keep_what_was_written();
  the_other_row_of_a_pair_stays();
  keeps_recent_rows();
  two_rows_always_fit();
  a_row_grows();
  columns_follow_exchanges();
  return check::result();
}
