// Kernel rows kept within a budget of bytes; the least recently used ones make room.
#pragma once

#include <utility>
#include <vector>

#include "types.hpp"

namespace dpsvm {

using Swap = std::pair<Index, Index>;  // two positions to exchange, the smaller first

class RowCache {
 public:
  // Rows are numbered 0 .. rows-1 and hold at most `length` entries. At least two whole rows are kept, whatever the
  // budget: a pair of variables needs both.
  RowCache(Index rows, Index length, std::size_t bytes);
  ~RowCache();
  RowCache(const RowCache&) = delete;
  RowCache& operator=(const RowCache&) = delete;

  // Row `id` with room for `length` entries, its first `valid` entries filled in earlier; now the most recently used.
  // The pointers of the last capacity(length) - 1 distinct fetches stay good.
  struct Row {
    float* data;
    Index valid;
  };
  Row fetch(Index id, Index length);
  void set_valid(Index id, Index valid) { slots_[id].valid = valid; }

  // How many rows of this length the budget holds.
  Index capacity(Index length) const { return budget_ / length; }

  // Applies the exchanges to the columns of every row; a row that ends between the two columns is forgotten.
  void swap_columns(const std::vector<Swap>& swaps);

 private:
  // A link of the circular list of rows in use, least recent after the head (slots_.back()).
  struct Slot {
    float* data = nullptr;
    Index valid = 0;      // entries computed
    Index reserved = 0;   // entries allocated
    Index before, after;
  };

  Index head() const { return static_cast<Index>(slots_.size()) - 1; }
  void unlink(Index id);
  void append(Index id);
  void forget(Index id);

  std::vector<Slot> slots_;  // [rows + 1]
  Index budget_;             // entries, in use and free
  Index free_;
};

}  // namespace dpsvm
