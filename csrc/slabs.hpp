// Memory for kernel rows of any length, taken from the system in large pieces and never more than a budget.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <map>
#include <memory>
#include <vector>

#include "types.hpp"

namespace dpsvm {

// A piece is filled from its start. What is given back serves a row of the same length, or any once its whole piece is
// empty: rows that came together are given back together. Memory is asked for as it proves useful: fresh memory may
// cost more to touch than a row to compute again.
template <class T>
class Slabs {
 public:
  // Room for `rows` rows of `length` entries, or for as many as `bytes` hold; for three at the least.
  Slabs(Index rows, Index length, std::size_t bytes);

  struct Block {
    T* data = nullptr;
    Index length = 0;
    Index slab = 0;
  };

  // Without data where no room is left: give something back and ask again.
  Block take(Index length);
  void give_back(const Block& block);

  // Rows were missed that had been given up for want of room: allows as much more, within the budget.
  void grow(Index entries) {
    missed_ += entries;
    allowed_ = std::min(most_, allowed_ + missed_ / size_);
    missed_ %= size_;
  }

  // How many blocks of this length there is room for, and how many the budget holds.
  Index capacity(Index length) const { return allowed_ * (size_ / length); }
  Index budget(Index length) const { return most_ * (size_ / length); }

  // Blocks of any lengths that can be in use while another is taken: however they lie, one slab can be emptied.
  Index safe() const { return allowed_ - 1; }

 private:
  struct Free {
    void operator()(T* p) const { std::free(p); }
  };
  struct Slab {
    std::unique_ptr<T[], Free> data;
    Index filled = 0;  // entries handed out from the start
    Index blocks = 0;  // handed out and not given back
  };

  Index empty_slab();

  Index size_;        // entries in a slab
  Index most_;        // slabs in the budget
  Index allowed_;     // slabs that may be used for now
  Index missed_ = 0;  // entries missed since more was allowed
  std::vector<Slab> slabs_;
  Index open_ = -1;                            // the slab being filled
  std::map<Index, std::vector<Block>> holes_;  // by length
};

}  // namespace dpsvm
