// Kernel rows kept within a budget of bytes; the least recently used ones make room.
#pragma once

#include <utility>
#include <vector>

#include "slabs.hpp"
#include "types.hpp"

namespace dpsvm {

using Swap = std::pair<Index, Index>;  // two positions to exchange, the smaller first

// T is what the entries are kept as.
template <class T>
class RowCache {
 public:
  // Rows are numbered 0 .. rows-1 and hold at most `length` entries. At least two whole rows are kept, whatever the
  // budget: a pair of variables needs both. To compute a row takes about `effort` times as long as to write it to fresh
  // memory; each time one is computed again, so much more memory is taken, within the budget.
  RowCache(Index rows, Index length, std::size_t bytes, Index effort = 1);

  // How many entries of row `id`, from the first, are filled in.
  Index valid(Index id);

  // Whether row `id` has been begun, as far as can be told without touching it.
  bool begun(Index id) const { return slots_[id].valid > 0; }

  // Row `id` if it is filled in up to `length`, else null; its turn to make room does not change.
  const T* peek(Index id, Index length) { return valid(id) >= length ? slots_[id].block.data : nullptr; }

  // Row `id` with room for `length` entries, its first `valid` entries filled in earlier; now the most recently used.
  // The pointers of the last distinct rows fetched stay good: as many as safe() said before them, and always two.
  struct Room {
    T* data;
    Index valid;
  };
  Room fetch(Index id, Index length);
  void set_valid(Index id, Index valid) { slots_[id].valid = valid; }

  // How many rows of this length there is room for at present, and how many the budget holds.
  Index capacity(Index length) const { return slabs_.capacity(length); }
  Index budget(Index length) const { return slabs_.budget(length); }

  // Those used least recently make room, so the ones that are in use do so last.
  Index safe() const { return slabs_.safe(); }

  // Exchanges columns of every row; a row that ends between the two is cut off before the first. A row pays for it when
  // it is next asked for: most of those kept are not.
  void swap_columns(const std::vector<Swap>& swaps);

 private:
  // A link of the circular list of rows in use, least recent after the head (slots_.back()).
  struct Slot {
    typename Slabs<T>::Block block;
    Index valid = 0;          // entries computed
    std::size_t settled = 0;  // exchanges of log_ applied
    bool missed = false;      // was forgotten
    Index before, after;
  };

  Index head() const { return static_cast<Index>(slots_.size()) - 1; }
  void unlink(Index id);
  void append(Index id);
  void settle(Slot& slot);
  void forget(Index id);

  std::vector<Slot> slots_;  // [rows + 1]
  std::vector<Swap> log_;    // exchanges that some rows have not followed yet
  Slabs<T> slabs_;
  Index effort_;
};

}  // namespace dpsvm
