#include "slabs.hpp"

#include <algorithm>
#include <new>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace dpsvm {

namespace {

// A large page of the system: touching one costs little more than touching a small one.
constexpr std::size_t kPage = std::size_t{2} << 20;

constexpr Index kRows = 8;    // whole rows in a slab, or more
constexpr Index kFewest = 3;  // slabs: two hold the rows of a pair, whatever was there before

float* from_system(Index floats) {
  std::size_t bytes = static_cast<std::size_t>(floats) * sizeof(float);
  const bool large = bytes >= kPage;
  const std::size_t unit = large ? kPage : 64;
  bytes = (bytes + unit - 1) / unit * unit;
  void* p = std::aligned_alloc(unit, bytes);
  if (!p) throw std::bad_alloc();
#if defined(__linux__) && defined(MADV_HUGEPAGE)
  if (large) madvise(p, bytes, MADV_HUGEPAGE);
#endif
  return static_cast<float*>(p);
}

}  // namespace

Slabs::Slabs(Index rows, Index length, std::size_t bytes) {
  constexpr auto page = static_cast<Index>(kPage / sizeof(float));
  const auto budget = static_cast<Index>(std::min<std::size_t>(bytes, PTRDIFF_MAX) / sizeof(float));
  const Index all = std::max(rows, kFewest) * length;
  const Index usual = (kRows * length + page - 1) / page * page;
  size_ = std::max(length, std::min({usual, budget / kFewest, (all + kFewest - 1) / kFewest}));
  most_ = std::max(kFewest, std::min(budget / size_, (all + size_ - 1) / size_ + 1));
}

Index Slabs::empty_slab() {
  for (Index s = 0; s < static_cast<Index>(slabs_.size()); ++s)
    if (slabs_[s].blocks == 0) return s;
  if (static_cast<Index>(slabs_.size()) == most_) return -1;
  slabs_.emplace_back();
  slabs_.back().data.reset(from_system(size_));
  return static_cast<Index>(slabs_.size()) - 1;
}

Slabs::Block Slabs::take(Index length) {
  if (const auto holes = holes_.find(length); holes != holes_.end() && !holes->second.empty()) {
    const Block block = holes->second.back();
    holes->second.pop_back();
    ++slabs_[block.slab].blocks;
    return block;
  }
  if (open_ < 0 || slabs_[open_].filled + length > size_) open_ = empty_slab();
  if (open_ < 0) return {};
  Slab& slab = slabs_[open_];
  float* data = slab.data.get() + slab.filled;
  slab.filled += length;
  ++slab.blocks;
  return {data, length, open_};
}

void Slabs::give_back(const Block& block) {
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

}  // namespace dpsvm
