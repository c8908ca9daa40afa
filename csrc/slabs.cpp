#include "slabs.hpp"

#include <new>
#include <utility>

namespace dpsvm {

namespace {

constexpr Index kUsualBytes = Index{2} << 20;  // of a slab
constexpr Index kRows = 8;                     // whole rows in a slab, where they are long
constexpr Index kMany = 64;                    // slabs there are, where as many rows fit
constexpr Index kAtFirst = 40;                 // slabs allowed before more has proved useful
constexpr Index kFewest = 3;                   // slabs: two hold the rows of a pair, whatever was there before
constexpr Index kRowsAtFirst = 256;

}  // namespace

template <class T>
Slabs<T>::Slabs(Index rows, Index length, std::size_t bytes) {
  const Index usual = kUsualBytes / static_cast<Index>(sizeof(T));
  const auto budget = static_cast<Index>(std::min<std::size_t>(bytes, PTRDIFF_MAX) / sizeof(T));
  const Index all = std::max(rows, kFewest) * length;
  const Index together = std::min({std::max(usual, kRows * length), budget / kMany, all / kMany}) / length;
  size_ = std::max<Index>(together, 1) * length;
  most_ = std::max(kFewest, std::min(budget / size_, (all + size_ - 1) / size_ + 1));
  allowed_ = std::min(most_, std::max(kAtFirst, kRowsAtFirst / (size_ / length)));
}

template <class T>
Index Slabs<T>::empty_slab() {
  for (Index s = 0; s < static_cast<Index>(slabs_.size()); ++s)
    if (slabs_[s].blocks == 0) return s;
  if (static_cast<Index>(slabs_.size()) == allowed_) return -1;
  std::unique_ptr<T[], Free> data(static_cast<T*>(std::malloc(size_ * sizeof(T))));
  if (!data) throw std::bad_alloc();
  slabs_.push_back({std::move(data)});
  return static_cast<Index>(slabs_.size()) - 1;
}

template <class T>
typename Slabs<T>::Block Slabs<T>::take(Index length) {
  if (const auto holes = holes_.find(length); holes != holes_.end() && !holes->second.empty()) {
    const Block block = holes->second.back();
    holes->second.pop_back();
    ++slabs_[block.slab].blocks;
    return block;
  }
  if (open_ < 0 || slabs_[open_].filled + length > size_) open_ = empty_slab();
  if (open_ < 0) return {};
  Slab& slab = slabs_[open_];
  T* data = slab.data.get() + slab.filled;
  slab.filled += length;
  ++slab.blocks;
  return {data, length, open_};
}

template <class T>
void Slabs<T>::give_back(const Block& block) {
  Slab& slab = slabs_[block.slab];
  if (--slab.blocks > 0) {
    holes_[block.length].push_back(block);
    return;
  }
  slab.filled = 0;
  for (auto& [length, holes] : holes_)
    holes.erase(std::remove_if(holes.begin(), holes.end(), [&](const Block& hole) { return hole.slab == block.slab; }),
                holes.end());
}

template class Slabs<float>;
template class Slabs<double>;

}  // namespace dpsvm
