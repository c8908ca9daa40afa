// The samples of one problem, copied into the layout dot products want, and reordered as the solver reorders them.
#pragma once

#include <memory>
#include <vector>

#include "columns.hpp"
#include "matrix.hpp"
#include "simd.hpp"
#include "threads.hpp"
#include "types.hpp"

namespace dpsvm {

// Dense vectors to be multiplied with samples, in the form the samples' layout wants; only one member is filled.
template <class T>
struct Queries {
  std::vector<T> values;
  std::vector<std::uint64_t> bits;
};

// T is the precision of the dot products. Every dot product adds its terms in ascending feature order, as LIBSVM does,
// whatever the layout: all layouts agree to the bit in double precision.
template <class T>
class Samples {
 public:
  explicit Samples(ColumnMap columns) : columns_(std::move(columns)) {}
  virtual ~Samples() = default;

  virtual Index size() const = 0;

  // How many queries are answered in little more time than one.
  virtual Index together() const { return 1; }

  // What a sample takes, on average.
  virtual Index row_bytes() const = 0;

  // The columns that are kept (ColumnMap), the length of a dense vector.
  Index features() const { return columns_.size(); }

  // Row i of another matrix with as many columns, written out to dense[features()]; what it has in columns that are not
  // kept meets only zeros.
  void expand_query(const Matrix& queries, Index i, T* dense) const {
    std::visit([&](const auto& view) { write_row(view, columns_, i, dense); }, queries);
  }

  // Row i written out to dense[features()].
  virtual void expand(Index i, T* dense) const = 0;

  // `count` dense queries, side by side in `dense`, brought into the order dots() reads them in.
  virtual void pack(const T* dense, Index count, Queries<T>& packed) const = 0;

  // out[r * ld + (j - begin)] = <query r, row j> for r < count, begin <= j < end. `begin` is a multiple of kAlign, `out`
  // has room for lines(count) lines, and up to kAlign - 1 entries past the end of a line may be overwritten.
  virtual void dots(const Queries<T>& packed, Index count, Index begin, Index end, T* out, Index ld) const = 0;

  virtual void swap(Index i, Index j) = 0;

  static constexpr Index kAlign = 16;

  static Index lines(Index count) {
    return count < kWorthGroup ? count : (count + kTogether - 1) / kTogether * kTogether;
  }

 protected:
  const ColumnMap columns_;

  // Fewer queries than this are taken one by one.
  static constexpr Index kWorthGroup = 3;
};

// Copies the named rows of `matrix`, dense or not: to sets of bits where all entries are 0 or 1 and that is shorter, to
// panels where enough entries are not zero, else to compressed rows. Sets of bits can be multiplied with each other only:
// `for_sets` says that no other query will come. The threads of `pool` share the copying.
template <class T>
std::unique_ptr<Samples<T>> make_samples(const Matrix& matrix, const std::vector<Index>& rows, bool for_sets,
                                         ThreadPool& pool);

}  // namespace dpsvm
