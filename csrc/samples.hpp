// The samples of one problem, copied into the layout dot products want, and reordered as the solver reorders them.
#pragma once

#include <memory>
#include <vector>

#include "matrix.hpp"
#include "simd.hpp"
#include "types.hpp"

namespace dpsvm {

// T is the precision of the dot products. Every dot product adds its terms in ascending feature order, as LIBSVM does,
// whatever the layout: all layouts agree to the bit in double precision.
template <class T>
class Samples {
 public:
  virtual ~Samples() = default;

  virtual Index size() const = 0;
  virtual Index features() const = 0;

  // Row i written out to dense[features()].
  virtual void expand(Index i, T* dense) const = 0;

  // `count` dense queries, side by side in `dense`, brought into the order dots() reads them in.
  virtual void pack(const T* dense, Index count, std::vector<T>& packed) const = 0;

  // out[r * ld + (j - begin)] = <query r, row j> for r < count, begin <= j < end. `begin` is a multiple of kAlign, `out`
  // has room for lines(count) lines, and up to kAlign - 1 entries past the end of a line may be overwritten.
  virtual void dots(const std::vector<T>& packed, Index count, Index begin, Index end, T* out, Index ld) const = 0;

  virtual void swap(Index i, Index j) = 0;

  static constexpr Index kAlign = 16;

  static Index lines(Index count) { return count < kWorthGroup ? count : (count + kTogether - 1) / kTogether * kTogether; }

 protected:
  // Fewer queries than this are taken one by one.
  static constexpr Index kWorthGroup = 3;
};

// Copies the named rows of `matrix`, dense or not, to panels where enough entries are not zero, else to compressed rows.
template <class T>
std::unique_ptr<Samples<T>> make_samples(const Matrix& matrix, const std::vector<Index>& rows);

}  // namespace dpsvm
