// The inner loops that deserve vector instructions, compiled once per instruction set and chosen at run time.
//
// Contract: double precision results are the same to the bit at every level. Each output is a fixed sequence of
// rounded additions and multiplications (no fused multiply-add, no reassociation), and ties between equal values go to
// the last index, as in LIBSVM. Single precision dot products fuse multiply and add where the level can, and then all of
// them do: one query or many, panels or compressed rows, they have the same bits.
#pragma once

#include <type_traits>

#include "types.hpp"

namespace dpsvm {

// Rows are stored in panels: kPanelBytes / sizeof(T) rows side by side, feature after feature.
inline constexpr Index kPanelBytes = 64;
template <class T>
inline constexpr Index kPanel = kPanelBytes / static_cast<Index>(sizeof(T));

// Sets of bits are stored in panels of as many rows side by side, word after word.
inline constexpr Index kBitRows = 8;

// Curvature used in place of one that is not positive.
inline constexpr double kTau = 1e-12;

// Queries taken against a compressed row at once.
inline constexpr Index kTogether = 8;

template <class T>
struct SparseView {
  const T* values;              // [offsets[rows]]
  const std::int32_t* columns;  // [offsets[rows]]
  const Index* offsets;         // [rows + 1]
};

struct Extreme {
  double value;
  Index index;  // -1: no element qualified
};

struct SecondOrder {
  Index index;    // the partner with the largest gain, -1 if none
  double gain;    // b^2 / a: twice the decrease of the objective if no bound is met
  double lowest;  // min of v over the elements with `bit`, +infinity if none
};

// Loops over the variables that read kernel rows kept as T.
template <class T>
struct RowLoops {
  // v[t] -= ki[t] di + kj[t] dj for t < n; returns argmax(v, side, bit, n) of the new v.
  Extreme (*update)(double* v, const T* ki, double di, const T* kj, double dj, const std::uint8_t* side,
                    std::uint8_t bit, Index n);

  // v[t] += c k[t] for t < n.
  void (*accumulate)(double* v, const T* k, double c, Index n);

  // Among t < n with `bit` and b = m - v[t] > 0, the largest b^2 / a with a = (diag_i + diag[t]) - 2 ki[t], or kTau
  // where a is not positive.
  SecondOrder (*second_order)(const double* v, const T* ki, const double* diag, const std::uint8_t* side,
                              std::uint8_t bit, double m, double diag_i, Index n);
};

struct Simd {
  const char* name;

  // Largest (smallest) v[t] among the t < n whose side[t] has `bit`.
  Extreme (*argmax)(const double* v, const std::uint8_t* side, std::uint8_t bit, Index n);
  Extreme (*argmin)(const double* v, const std::uint8_t* side, std::uint8_t bit, Index n);

  // The t < n with `bit` and sign (v[t] - origin) >= needed, in ascending order, to out[n]; returns how many.
  Index (*beyond)(const double* v, const std::uint8_t* side, std::uint8_t bit, double sign, double origin,
                  double needed, Index n, Index* out);

  RowLoops<float> of_floats;
  RowLoops<double> of_doubles;

  template <class T>
  const RowLoops<T>& of() const {
    if constexpr (std::is_same_v<T, float>)
      return of_floats;
    else
      return of_doubles;
  }

  // out[r * ld + p * kPanel + lane] = <queries[r], that row>, features added in ascending order.
  void (*dots_f64)(const double* panels, Index n_panels, Index depth, const double* const* queries, Index count,
                   double* out, Index ld);
  void (*dots_f32)(const float* panels, Index n_panels, Index depth, const float* const* queries, Index count,
                   float* out, Index ld);

  // out[r * ld + p * kPanel + lane] = |queries[r] - that row|^2, squared differences added in ascending order.
  void (*distances_f64)(const double* panels, Index n_panels, Index depth, const double* const* queries, Index count,
                        double* out, Index ld);

  // Dot products of compressed rows: out[r * ld + j] = <query r, row order[j]> for r < kTogether and j < n, with the queries
  // interleaved: queries[column * kTogether + r].
  void (*sparse_f64)(const SparseView<double>& rows, const Index* order, Index n, const double* queries, double* out,
                     Index ld);
  void (*sparse_f32)(const SparseView<float>& rows, const Index* order, Index n, const float* queries, float* out,
                     Index ld);

  // The same for one query that is not interleaved: out[j] = <query, row order[j]> for j < n.
  void (*sparse_one_f64)(const SparseView<double>& rows, const Index* order, Index n, const double* query, double* out);
  void (*sparse_one_f32)(const SparseView<float>& rows, const Index* order, Index n, const float* query, float* out);

  // out[p * kBitRows + lane] = how many bits that row of the panels shares with query[words].
  void (*bits_f64)(const std::uint64_t* panels, Index n_panels, Index words, const std::uint64_t* query, double* out);
  void (*bits_f32)(const std::uint64_t* panels, Index n_panels, Index words, const std::uint64_t* query, float* out);

  // out[t] = exp(-gamma ((xx + squared[t]) - 2 s[t])) for t < n, the argument at most 1; in double, exp is within one unit
  // in the last place, and rbf_rounded rounds it. `out` may be `s` or `squared`.
  void (*rbf_f64)(double gamma, double xx, const double* squared, const double* s, double* out, Index n);
  void (*rbf_rounded)(double gamma, double xx, const double* squared, const double* s, float* out, Index n);
  void (*rbf_f32)(float gamma, float xx, const float* squared, const float* s, float* out, Index n);

  double (*dot)(const double* a, const double* b, Index n);
  double (*dot_f32)(const double* a, const float* b, Index n);  // of b's entries in double
};

// The best level this processor runs, or the one the environment variable DPSVM_CPU names (portable, avx2, avx512, neon).
const Simd& simd();

// Every level this processor runs, best last; ends with nullptr. For tests.
const Simd* const* simd_levels();

}  // namespace dpsvm
