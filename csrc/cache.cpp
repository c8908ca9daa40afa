#include "cache.hpp"

#include <algorithm>
#include <cstdlib>
#include <new>
#include <utility>

namespace dpsvm {

RowCache::RowCache(Index rows, Index length, std::size_t bytes)
    : slots_(rows + 1),
      budget_(std::max(static_cast<Index>(std::min<std::size_t>(bytes, PTRDIFF_MAX) / sizeof(float)), 2 * length)),
      free_(budget_) {
  slots_[head()].before = slots_[head()].after = head();
}

RowCache::~RowCache() {
  for (Slot& slot : slots_) std::free(slot.data);
  std::free(spare_.data);
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

void RowCache::settle(Slot& slot) {
  for (; slot.settled < log_.size(); ++slot.settled) {
    const auto [i, j] = log_[slot.settled];
    if (j < slot.valid)
      std::swap(slot.data[i], slot.data[j]);
    else if (i < slot.valid)
      slot.valid = i;
  }
}

void RowCache::forget(Index id) {
  Slot& slot = slots_[id];
  unlink(id);
  free_ += slot.reserved;
  std::free(spare_.data);
  spare_.data = std::exchange(slot.data, nullptr);
  spare_.reserved = std::exchange(slot.reserved, 0);
  slot.valid = 0;
}

// `data` with room for `length` entries, or other memory with what it held; null if there is none.
float* RowCache::resized(float* data, Index length) {
  if (!data && spare_.reserved == length) return std::exchange(spare_.data, nullptr);
  std::free(std::exchange(spare_.data, nullptr));
  spare_.reserved = 0;
  return static_cast<float*>(std::realloc(data, length * sizeof(float)));
}

Index RowCache::valid(Index id) {
  settle(slots_[id]);
  return slots_[id].valid;
}

RowCache::Row RowCache::fetch(Index id, Index length) {
  Slot& slot = slots_[id];
  settle(slot);
  if (slot.reserved > 0) unlink(id);
  if (slot.reserved < length) {
    while (free_ < length - slot.reserved) forget(slots_[head()].after);
    float* data = resized(slot.data, length);
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
  log_.insert(log_.end(), swaps.begin(), swaps.end());
  if (log_.size() < 4 * slots_.size()) return;
  for (Slot& slot : slots_) {
    settle(slot);
    slot.settled = 0;
  }
  log_.clear();
}

}  // namespace dpsvm
