#include "cache.hpp"

#include <algorithm>
#include <cstdlib>
#include <new>

namespace dpsvm {

RowCache::RowCache(Index rows, Index length, std::size_t bytes)
    : slots_(rows + 1),
      budget_(std::max(static_cast<Index>(std::min<std::size_t>(bytes, PTRDIFF_MAX) / sizeof(float)), 2 * length)),
      free_(budget_) {
  slots_[head()].before = slots_[head()].after = head();
}

RowCache::~RowCache() {
  for (Slot& slot : slots_) std::free(slot.data);
}

void RowCache::unlink(Index id) {
  const Slot& slot = slots_[id];
  slots_[slot.before].after = slot.after;
  slots_[slot.after].before = slot.before;
}

void RowCache::append(Index id) {
  Slot& slot = slots_[id];
  slot.after = head();
  slot.before = slots_[head()].before;
  slots_[slot.before].after = id;
  slots_[slot.after].before = id;
}

void RowCache::forget(Index id) {
  Slot& slot = slots_[id];
  unlink(id);
  std::free(slot.data);
  free_ += slot.reserved;
  slot.data = nullptr;
  slot.valid = slot.reserved = 0;
}

RowCache::Row RowCache::fetch(Index id, Index length) {
  Slot& slot = slots_[id];
  if (slot.reserved > 0) unlink(id);
  if (slot.reserved < length) {
    while (free_ < length - slot.reserved) forget(slots_[head()].after);
    auto* data = static_cast<float*>(std::realloc(slot.data, length * sizeof(float)));
    if (!data) {
      if (slot.reserved > 0) append(id);
      throw std::bad_alloc();
    }
    free_ -= length - slot.reserved;
    slot.data = data;
    slot.reserved = length;
  }
  append(id);
  return {slot.data, slot.valid};
}

void RowCache::swap_columns(const std::vector<Swap>& swaps) {
  for (Index id = slots_[head()].after; id != head();) {
    Slot& slot = slots_[id];
    const Index next = slot.after;
    for (const auto& [i, j] : swaps) {
      if (j < slot.valid) {
        std::swap(slot.data[i], slot.data[j]);
      } else if (i < slot.valid) {
        forget(id);
        break;
      }
    }
    id = next;
  }
}

}  // namespace dpsvm
