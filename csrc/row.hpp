// A kernel row as the solver reads it.
#pragma once

#include <type_traits>

#include "types.hpp"

namespace dpsvm {

// The entries from some place on, kept as floats, as LIBSVM keeps them, or as doubles. All rows of a solver are kept alike.
class Row {
 public:
  Row() = default;
  Row(const float* entries) : floats_(entries) {}
  Row(const double* entries) : doubles_(entries) {}

  explicit operator bool() const { return floats_ || doubles_; }

  double operator[](Index t) const { return floats_ ? static_cast<double>(floats_[t]) : doubles_[t]; }

  // The rest, from entry t on.
  Row from(Index t) const { return floats_ ? Row(floats_ + t) : Row(doubles_ + t); }

  // The entries as they are kept, where they are kept as T.
  template <class T>
  const T* as() const {
    if constexpr (std::is_same_v<T, float>)
      return floats_;
    else
      return doubles_;
  }

  // use(entries), as they are kept.
  template <class Use>
  auto with(const Use& use) const {
    return floats_ ? use(floats_) : use(doubles_);
  }

 private:
  const float* floats_ = nullptr;  // one of the two is null
  const double* doubles_ = nullptr;
};

}  // namespace dpsvm
