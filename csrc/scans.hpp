// The loops of simd.hpp over all variables, shared among threads where they are long. Results do not depend on how many.
#pragma once

#include <algorithm>
#include <array>
#include <limits>
#include <type_traits>

#include "row.hpp"
#include "simd.hpp"
#include "threads.hpp"

namespace dpsvm {

class Scans {
 public:
  // Without a pool the calling thread does all.
  explicit Scans(ThreadPool* pool = nullptr) : pool_(pool) {}

  Extreme argmax(const double* v, const std::uint8_t* side, std::uint8_t bit, Index n) const {
    return largest(n, [=](Index from, Index count) { return simd().argmax(v + from, side + from, bit, count); });
  }

  Extreme argmin(const double* v, const std::uint8_t* side, std::uint8_t bit, Index n) const {
    Extreme least = largest(n, [=](Index from, Index count) {
      const auto [value, index] = simd().argmin(v + from, side + from, bit, count);
      return Extreme{-value, index};
    });
    least.value = -least.value;
    return least;
  }

  Extreme update(double* v, Row row_i, double di, Row row_j, double dj, const std::uint8_t* side, std::uint8_t bit,
                 Index n) const {
    return row_i.with([&](auto* ki) {
      using T = std::remove_const_t<std::remove_pointer_t<decltype(ki)>>;
      const T* kj = row_j.as<T>();
      return largest(n, [=](Index from, Index count) {
        return simd().of<T>().update(v + from, ki + from, di, kj + from, dj, side + from, bit, count);
      });
    });
  }

  void accumulate(double* v, Row row, double c, Index n) const {
    row.with([&](auto* k) {
      using T = std::remove_const_t<std::remove_pointer_t<decltype(k)>>;
      in_parts(n, [=](Index, Index from, Index count) { simd().of<T>().accumulate(v + from, k + from, c, count); });
    });
  }

  SecondOrder second_order(const double* v, Row row_i, const double* diag, const std::uint8_t* side, std::uint8_t bit,
                           double m, double diag_i, Index n) const {
    return row_i.with([&](auto* ki) { return partner(v, ki, diag, side, bit, m, diag_i, n); });
  }

 private:
  template <class T>
  SecondOrder partner(const double* v, const T* ki, const double* diag, const std::uint8_t* side, std::uint8_t bit,
                      double m, double diag_i, Index n) const {
    const auto search = simd().of<T>().second_order;
    if (part_size(n) >= n) return search(v, ki, diag, side, bit, m, diag_i, n);
    std::array<double, kMost> lowest;
    lowest.fill(std::numeric_limits<double>::infinity());
    const Extreme best = largest(n, [&](Index from, Index count) {
      const SecondOrder part = search(v + from, ki + from, diag + from, side + from, bit, m, diag_i, count);
      lowest[from / part_size(n)] = part.lowest;
      return Extreme{part.gain, part.index};
    });
    return {best.index, best.value, *std::min_element(lowest.begin(), lowest.end())};
  }

  static constexpr Index kMost = 16;              // parts
  static constexpr Index kWorthThreads = 16'384;  // elements
  static constexpr Index kAlign = 64;             // parts do not share a cache line

  Index part_size(Index n) const {
    if (!pool_ || pool_->size() == 1 || n < kWorthThreads) return std::max<Index>(n, 1);
    const Index parts = std::min<Index>(pool_->size(), kMost);
    return (n / parts / kAlign + 1) * kAlign;
  }

  // part(number, first element, how many)
  template <class Part>
  void in_parts(Index n, const Part& part) const {
    const Index size = part_size(n);
    if (size >= n) return part(0, 0, n);
    pool_->run((n + size - 1) / size, [&](Index p) { part(p, p * size, std::min(size, n - p * size)); });
  }

  // The largest of what part(first element, how many) finds; among equals, the last.
  template <class Part>
  Extreme largest(Index n, const Part& part) const {
    if (part_size(n) >= n) return part(0, n);
    std::array<Extreme, kMost> found;
    found.fill({-std::numeric_limits<double>::infinity(), -1});
    in_parts(n, [&](Index p, Index from, Index count) {
      found[p] = part(from, count);
      if (found[p].index >= 0) found[p].index += from;
    });
    Extreme best = found[0];
    for (const Extreme& other : found)
      if (other.index >= 0 && (best.index < 0 || other.value >= best.value)) best = other;
    return best;
  }

  ThreadPool* pool_;
};

}  // namespace dpsvm
