#include "cache.hpp"

#include <algorithm>
#include <utility>

namespace dpsvm {

template <class T>
RowCache<T>::RowCache(Index rows, Index length, std::size_t bytes, Index effort)
    : slots_(rows + 1), slabs_(rows, length, bytes), effort_(effort) {
  slots_[head()].before = slots_[head()].after = head();
}

template <class T>
void RowCache<T>::unlink(Index id) {
  const Slot& slot = slots_[id];
  slots_[slot.before].after = slot.after;
  slots_[slot.after].before = slot.before;
}

template <class T>
void RowCache<T>::append(Index id) {
  Slot& slot = slots_[id];
  slot.after = head();
  slot.before = slots_[head()].before;
  slots_[slot.before].after = id;
  slots_[slot.after].before = id;
}

template <class T>
void RowCache<T>::settle(Slot& slot) {
  if (slot.valid == 0) slot.settled = log_.size();
  for (; slot.settled < log_.size(); ++slot.settled) {
    const auto [i, j] = log_[slot.settled];
    if (j < slot.valid)
      std::swap(slot.block.data[i], slot.block.data[j]);
    else if (i < slot.valid)
      slot.valid = i;
  }
}

template <class T>
void RowCache<T>::forget(Index id) {
  Slot& slot = slots_[id];
  unlink(id);
  slabs_.give_back(std::exchange(slot.block, {}));
  slot.valid = 0;
  slot.missed = true;
}

template <class T>
Index RowCache<T>::valid(Index id) {
  settle(slots_[id]);
  return slots_[id].valid;
}

template <class T>
typename RowCache<T>::Room RowCache<T>::fetch(Index id, Index length) {
  Slot& slot = slots_[id];
  settle(slot);
  if (slot.block.length > 0) unlink(id);
  append(id);
  if (std::exchange(slot.missed, false)) slabs_.grow(effort_ * length);
  if (slot.block.length < length) {
    typename Slabs<T>::Block larger;
    while (!(larger = slabs_.take(length)).data) forget(slots_[head()].after);
    std::copy_n(slot.block.data, slot.valid, larger.data);
    if (slot.block.length > 0) slabs_.give_back(slot.block);
    slot.block = larger;
  }
  return {slot.block.data, slot.valid};
}

template <class T>
void RowCache<T>::swap_columns(const std::vector<Swap>& swaps) {
  log_.insert(log_.end(), swaps.begin(), swaps.end());
  if (log_.size() < 4 * slots_.size()) return;
  for (Slot& slot : slots_) {
    settle(slot);
    slot.settled = 0;
  }
  log_.clear();
}

template class RowCache<float>;
template class RowCache<double>;

}  // namespace dpsvm
