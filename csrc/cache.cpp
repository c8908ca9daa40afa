#include "cache.hpp"

#include <algorithm>
#include <utility>

namespace dpsvm {

RowCache::RowCache(Index rows, Index length, std::size_t bytes, Index effort)
    : slots_(rows + 1), slabs_(rows, length, bytes), effort_(effort) {
  slots_[head()].before = slots_[head()].after = head();
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
  if (slot.valid == 0) slot.settled = log_.size();
  for (; slot.settled < log_.size(); ++slot.settled) {
    const auto [i, j] = log_[slot.settled];
    if (j < slot.valid)
      std::swap(slot.block.data[i], slot.block.data[j]);
    else if (i < slot.valid)
      slot.valid = i;
  }
}

void RowCache::forget(Index id) {
  Slot& slot = slots_[id];
  unlink(id);
  slabs_.give_back(std::exchange(slot.block, {}));
  slot.valid = 0;
  slot.missed = true;
}

Index RowCache::valid(Index id) {
  settle(slots_[id]);
  return slots_[id].valid;
}

RowCache::Row RowCache::fetch(Index id, Index length) {
  Slot& slot = slots_[id];
  settle(slot);
  if (slot.block.length > 0) unlink(id);
  append(id);
  if (std::exchange(slot.missed, false)) slabs_.grow(effort_ * length);
  if (slot.block.length < length) {
    Slabs::Block larger;
    while (!(larger = slabs_.take(length)).data) forget(slots_[head()].after);
    std::copy_n(slot.block.data, slot.valid, larger.data);
    if (slot.block.length > 0) slabs_.give_back(slot.block);
    slot.block = larger;
  }
  return {slot.block.data, slot.valid};
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
