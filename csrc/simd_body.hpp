// The loops of simd.hpp written with vector types of DPSVM_VECTOR_BYTES. Included once per level, inside a namespace of
// that level, after every standard header (so that no library inline function is compiled for the wrong processor).
// No include guard: each inclusion is a new level.

typedef double Vd __attribute__((vector_size(DPSVM_VECTOR_BYTES)));
typedef float Vf __attribute__((vector_size(DPSVM_VECTOR_BYTES)));
typedef std::int64_t Vl __attribute__((vector_size(DPSVM_VECTOR_BYTES)));
typedef std::uint64_t Vu __attribute__((vector_size(DPSVM_VECTOR_BYTES)));
typedef std::int32_t Vi __attribute__((vector_size(DPSVM_VECTOR_BYTES)));
typedef float HalfVf __attribute__((vector_size(DPSVM_VECTOR_BYTES / 2)));
typedef std::uint8_t Bytes __attribute__((vector_size(DPSVM_VECTOR_BYTES / 8)));

constexpr Index kLanes = DPSVM_VECTOR_BYTES / 8;
constexpr double kInfinity = __builtin_inf();

template <class V, class T>
inline __attribute__((always_inline)) V load(const T* p) {
  V v;
  __builtin_memcpy(&v, p, sizeof(V));
  return v;
}

template <class V, class T>
inline __attribute__((always_inline)) void store(T* p, const V& v) {
  __builtin_memcpy(p, &v, sizeof(V));
}

template <class V, class T>
inline __attribute__((always_inline)) V splat(T x) {
  return x - V{};
}

// The compiler's own conversions go through memory; these are the single instructions.
inline __attribute__((always_inline)) Vd widen(const float* p) {
#if defined(DPSVM_FMA) && DPSVM_VECTOR_BYTES == 64
  return (Vd)_mm512_cvtps_pd(_mm256_loadu_ps(p));
#elif defined(DPSVM_FMA) && DPSVM_VECTOR_BYTES == 32
  return (Vd)_mm256_cvtps_pd(_mm_loadu_ps(p));
#else
  return __builtin_convertvector(load<HalfVf>(p), Vd);
#endif
}

inline __attribute__((always_inline)) Vd widen(const double* p) { return load<Vd>(p); }

inline __attribute__((always_inline)) HalfVf rounded(Vd x) {
#if defined(DPSVM_FMA) && DPSVM_VECTOR_BYTES == 64
  return (HalfVf)_mm512_cvtpd_ps((__m512d)x);
#elif defined(DPSVM_FMA) && DPSVM_VECTOR_BYTES == 32
  return (HalfVf)_mm256_cvtpd_ps((__m256d)x);
#else
  return __builtin_convertvector(x, HalfVf);
#endif
}

inline __attribute__((always_inline)) Vl widen(const std::uint8_t* p) {
#if defined(DPSVM_FMA) && DPSVM_VECTOR_BYTES == 64
  return (Vl)_mm512_cvtepu8_epi64(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p)));
#elif defined(DPSVM_FMA) && DPSVM_VECTOR_BYTES == 32
  return (Vl)_mm256_cvtepu8_epi64(_mm_loadu_si32(p));
#else
  return __builtin_convertvector(load<Bytes>(p), Vl);
#endif
}

inline __attribute__((always_inline)) Vl has_bit(const std::uint8_t* side, std::int64_t bit) {
  return (widen(side) & bit) != 0;
}

inline __attribute__((always_inline)) Vd multiply_add(Vd a, Vd b, Vd c) { return c + a * b; }

inline __attribute__((always_inline)) Vf multiply_add(Vf a, Vf b, Vf c) {
#if defined(DPSVM_FMA) && DPSVM_VECTOR_BYTES == 64
  return (Vf)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
#elif defined(DPSVM_FMA) && DPSVM_VECTOR_BYTES == 32
  return (Vf)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
#elif defined(DPSVM_FMA)
  return (Vf)vfmaq_f32((float32x4_t)c, (float32x4_t)a, (float32x4_t)b);
#else
  return c + a * b;
#endif
}

inline __attribute__((always_inline)) double multiply_add(double a, double b, double c) { return c + a * b; }

inline __attribute__((always_inline)) float multiply_add(float a, float b, float c) {
#if defined(DPSVM_FMA)
  return __builtin_fmaf(a, b, c);
#else
  return c + a * b;
#endif
}

inline __attribute__((always_inline)) bool any(Vl mask) {
#if defined(DPSVM_FMA) && DPSVM_VECTOR_BYTES == 64
  return _mm512_movepi64_mask((__m512i)mask) != 0;
#elif defined(DPSVM_FMA) && DPSVM_VECTOR_BYTES == 32
  return _mm256_movemask_pd((__m256d)mask) != 0;
#else
  std::int64_t all = 0;
  for (Index lane = 0; lane < kLanes; ++lane) all |= mask[lane];
  return all != 0;
#endif
}

// Keeps, in each lane, the largest value offered so far and where it was; the later of two equal ones.
struct Running {
  Vd value;
  Vl index;

  static inline __attribute__((always_inline)) Running start() {
    return {splat<Vd>(-kInfinity), splat<Vl>(std::int64_t{-1})};
  }

  inline __attribute__((always_inline)) void offer(Vd x, Vl at, Vl allowed) {
    const Vl take = allowed & (x >= value);
    value = take ? x : value;
    index = take ? at : index;
  }

  double largest() const {
    double most = value[0];
    for (Index lane = 1; lane < kLanes; ++lane) most = value[lane] > most ? value[lane] : most;
    return most;
  }

  Extreme reduce() const {
    Extreme best{-kInfinity, -1};
    for (Index lane = 0; lane < kLanes; ++lane) {
      merge(best, value[lane], index[lane]);
    }
    return best;
  }

  static void merge(Extreme& best, double x, Index at) {
    if (at >= 0 && (x > best.value || (x == best.value && at > best.index))) best = {x, at};
  }
};

inline Vl first_lanes() {
  Vl lanes;
  for (Index lane = 0; lane < kLanes; ++lane) lanes[lane] = lane;
  return lanes;
}

// Calls body(offset, which) for whole vectors, alternating between two running maxima to hide latency.
template <class Body, class Tail>
inline __attribute__((always_inline)) Extreme scan(Index n, Body body, Tail tail) {
  Running even = Running::start(), odd = Running::start();
  Vl at = first_lanes();
  Index t = 0;
  for (; t + 2 * kLanes <= n; t += 2 * kLanes) {
    body(t, at, even);
    body(t + kLanes, at + kLanes, odd);
    at += 2 * kLanes;
  }
  if (t + kLanes <= n) {
    body(t, at, even);
    t += kLanes;
  }
  Extreme best = even.reduce();
  const Extreme other = odd.reduce();
  Running::merge(best, other.value, other.index);
  for (; t < n; ++t) tail(t, best);
  return best;
}

Extreme argmax(const double* v, const std::uint8_t* side, std::uint8_t bit, Index n) {
  return scan(
      n, [=](Index t, Vl at, Running& best) { best.offer(load<Vd>(v + t), at, has_bit(side + t, bit)); },
      [=](Index t, Extreme& best) {
        if (side[t] & bit) Running::merge(best, v[t], t);
      });
}

Extreme argmin(const double* v, const std::uint8_t* side, std::uint8_t bit, Index n) {
  Extreme best = scan(
      n, [=](Index t, Vl at, Running& best) { best.offer(-load<Vd>(v + t), at, has_bit(side + t, bit)); },
      [=](Index t, Extreme& best) {
        if (side[t] & bit) Running::merge(best, -v[t], t);
      });
  best.value = -best.value;
  return best;
}

Index beyond(const double* v, const std::uint8_t* side, std::uint8_t bit, double sign, double origin, double needed,
             Index n, Index* out) {
  Index found = 0, t = 0;
  for (; t + kLanes <= n; t += kLanes) {
    const Vl take = has_bit(side + t, bit) & (sign * (load<Vd>(v + t) - origin) >= needed);
    if (!any(take)) continue;
    for (Index lane = 0; lane < kLanes; ++lane) {
      out[found] = t + lane;
      found -= take[lane];
    }
  }
  for (; t < n; ++t) {
    out[found] = t;
    found += (side[t] & bit) && sign * (v[t] - origin) >= needed;
  }
  return found;
}

template <class T>
Extreme update(double* v, const T* ki, double di, const T* kj, double dj, const std::uint8_t* side, std::uint8_t bit,
               Index n) {
  return scan(
      n,
      [=](Index t, Vl at, Running& best) {
        const Vd x = load<Vd>(v + t) - (widen(ki + t) * di + widen(kj + t) * dj);
        store(v + t, x);
        best.offer(x, at, has_bit(side + t, bit));
      },
      [=](Index t, Extreme& best) {
        v[t] -= static_cast<double>(ki[t]) * di + static_cast<double>(kj[t]) * dj;
        if (side[t] & bit) Running::merge(best, v[t], t);
      });
}

template <class T>
void accumulate(double* v, const T* k, double c, Index n) {
  Index t = 0;
  for (; t + kLanes <= n; t += kLanes) store(v + t, load<Vd>(v + t) + c * widen(k + t));
  for (; t < n; ++t) v[t] += c * static_cast<double>(k[t]);
}

// Divisions take longer than all the rest, so only vectors that may hold a gain at least as large as the largest so far
// are divided: b^2 below (1 - 2^-50) largest a rounds to a smaller quotient, whatever is lost in these products.
struct Hurdle {
  double share = -kInfinity;  // nothing is below it

  void raise(double largest) {
    share = largest > 0x1p-900 && largest < kInfinity ? largest * (1.0 - 0x1p-50) : -kInfinity;
  }
};

template <class T>
SecondOrder second_order(const double* v, const T* ki, const double* diag, const std::uint8_t* side, std::uint8_t bit,
                         double m, double diag_i, Index n) {
  Vd lowest = splat<Vd>(kInfinity);
  double lowest_tail = kInfinity;
  Hurdle hurdle;
  const Extreme best = scan(
      n,
      [=, &lowest, &hurdle](Index t, Vl at, Running& best) {
        const Vd x = load<Vd>(v + t);
        const Vl low = has_bit(side + t, bit);
        lowest = (low & (x < lowest)) ? x : lowest;
        const Vd b = m - x;
        Vd a = (diag_i + load<Vd>(diag + t)) - 2.0 * widen(ki + t);
        a = (a > 0.0) ? a : splat<Vd>(kTau);
        const Vl worth = low & (b > 0.0) & ~(b * b < hurdle.share * a);
        if (!any(worth)) return;
        best.offer(b * b / a, at, worth);
        hurdle.raise(best.largest());
      },
      [=, &lowest_tail](Index t, Extreme& best) {
        if (!(side[t] & bit)) return;
        lowest_tail = v[t] < lowest_tail ? v[t] : lowest_tail;
        const double b = m - v[t];
        double a = (diag_i + diag[t]) - 2.0 * static_cast<double>(ki[t]);
        a = a > 0.0 ? a : kTau;
        if (b > 0.0) Running::merge(best, b * b / a, t);
      });
  for (Index lane = 0; lane < kLanes; ++lane) {
    lowest_tail = lowest[lane] < lowest_tail ? lowest[lane] : lowest_tail;
  }
  return {best.index, best.value, lowest_tail};
}

// Features taken at a time, so that a panel's share stays in the first-level cache for all the queries.
constexpr Index kDepth = 192;

// Features fetched ahead of those being multiplied where a share is read once.
constexpr Index kAhead = 64;

// What a feature adds to a sum.
struct Product {
  template <class V>
  static inline __attribute__((always_inline)) V add(V q, V x, V sum) {
    return multiply_add(q, x, sum);
  }
};

struct SquaredDifference {
  template <class V>
  static inline __attribute__((always_inline)) V add(V q, V x, V sum) {
    const V d = q - x;
    return multiply_add(d, d, sum);
  }
};

// Features [from, to) of R queries against P panels, summed in registers on top of what `out` holds unless from is 0.
// Meanwhile memory is fetched from `ahead` of each panel on, `step` bytes for each feature.
template <class Term, class V, int R, int P, class T>
inline __attribute__((always_inline)) void micro_kernel(const T* panels, Index depth, Index from, Index to,
                                                        const T* const* queries, T* out, Index ld, const T* ahead,
                                                        Index step) {
  constexpr int N = kPanelBytes / sizeof(V);
  constexpr Index lanes = sizeof(V) / sizeof(T);
  V sum[R][P][N];
  for (int r = 0; r < R; ++r)
    for (int p = 0; p < P; ++p)
      for (int n = 0; n < N; ++n) sum[r][p][n] = from > 0 ? load<V>(out + r * ld + p * kPanel<T> + n * lanes) : V{};
  const char* fetch = reinterpret_cast<const char*>(ahead);
  for (Index k = from; k < to; ++k, fetch += step) {
    for (int p = 0; p < P; ++p) __builtin_prefetch(fetch + p * depth * kPanelBytes);
    V x[P][N];
    for (int p = 0; p < P; ++p)
      for (int n = 0; n < N; ++n) x[p][n] = load<V>(panels + (p * depth + k) * kPanel<T> + n * lanes);
    for (int r = 0; r < R; ++r) {
      const V q = splat<V>(queries[r][k]);
      for (int p = 0; p < P; ++p)
        for (int n = 0; n < N; ++n) sum[r][p][n] = Term::add(q, x[p][n], sum[r][p][n]);
    }
  }
  for (int r = 0; r < R; ++r)
    for (int p = 0; p < P; ++p)
      for (int n = 0; n < N; ++n) store(out + r * ld + p * kPanel<T> + n * lanes, sum[r][p][n]);
}

// R queries after R queries against a share of one panel; each pass fetches its part of the share at `next`, which is
// there when the last pass is through.
template <class Term, class V, int R, class T>
inline __attribute__((always_inline)) void many_queries(const T* panel, Index depth, Index from, Index to,
                                                        const T* const* queries, Index count, T* out, Index ld,
                                                        const T* next) {
  const Index passes = count / R, step = (kPanelBytes + passes - 1) / passes;
  for (Index pass = 0; pass < passes; ++pass)
    micro_kernel<Term, V, R, 1>(panel, depth, from, to, queries + pass * R, out + pass * R * ld, ld,
                                next + (to - from) * kPanel<T> * pass / passes, step);
}

// Fewer queries than R against up to kGroup panels, several at a time: enough sums to hide the latency of an addition.
constexpr Index kGroup = 4;

template <class Term, class V, int R, int P, class T>
inline __attribute__((always_inline)) void few_queries(const T* panels, Index n, Index depth, Index from, Index to,
                                                       const T* const* queries, T* out, Index ld) {
  const auto against = [&](Index p, auto together) {
    const T* here = panels + p * depth * kPanel<T>;
    micro_kernel<Term, V, R, decltype(together)::value>(here, depth, from, to, queries, out + p * kPanel<T>, ld,
                                                        here + (from + kAhead) * kPanel<T>, kPanelBytes);
  };
  Index p = 0;
  for (; p + P <= n; p += P) against(p, std::integral_constant<int, P>());
  for (; p < n; ++p) against(p, std::integral_constant<int, 1>());
}

// Panels outside, queries inside: panels are read from memory once for all the queries. W of these at a time use the
// registers best; what is left over is taken R and then fewer at a time.
template <class Term, class V, int W, int R, class T>
void sums(const T* panels, Index n_panels, Index depth, const T* const* queries, Index count, T* out, Index ld) {
  const Index most = count - count % W, many = count - (count - most) % R;
  for (Index p = 0; p < n_panels; p += kGroup) {
    const Index n = n_panels - p < kGroup ? n_panels - p : kGroup;
    const T* here = panels + p * depth * kPanel<T>;
    T* to = out + p * kPanel<T>;
    for (Index from = 0, end;; from = end) {
      end = depth - from < 2 * kDepth ? depth : from + kDepth;
      const T* next_share = here + (end < depth ? end : n * depth) * kPanel<T>;
      for (Index q = 0; q < n && many > 0; ++q) {
        const T* panel = here + q * depth * kPanel<T>;
        const T* next = q + 1 < n ? panel + (depth + from) * kPanel<T> : next_share;
        T* line = to + q * kPanel<T>;
        if (most > 0) many_queries<Term, V, W>(panel, depth, from, end, queries, most, line, ld, next);
        if (many > most)
          many_queries<Term, V, R>(panel, depth, from, end, queries + most, many - most, line + most * ld, ld, next);
      }
      Index r = many;
      for (; r + 2 <= count; r += 2)
        few_queries<Term, V, 2, 2>(here, n, depth, from, end, queries + r, to + r * ld, ld);
      if (r < count) few_queries<Term, V, 1, 4>(here, n, depth, from, end, queries + r, to + r * ld, ld);
      if (end == depth) break;
    }
  }
}

#if defined(DPSVM_FMA) && DPSVM_VECTOR_BYTES == 16
constexpr int kQueries = 4;  // of 32 registers
#else
constexpr int kQueries = DPSVM_VECTOR_BYTES == 16 ? 2 : DPSVM_VECTOR_BYTES == 32 ? 6 : 8;
#endif
constexpr int kLeftOver = kQueries == 6 ? 4 : kQueries;

void dots_f64(const double* panels, Index n_panels, Index depth, const double* const* queries, Index count, double* out,
              Index ld) {
  sums<Product, Vd, kQueries, kLeftOver>(panels, n_panels, depth, queries, count, out, ld);
}

void dots_f32(const float* panels, Index n_panels, Index depth, const float* const* queries, Index count, float* out,
              Index ld) {
  sums<Product, Vf, kQueries, kLeftOver>(panels, n_panels, depth, queries, count, out, ld);
}

void distances_f64(const double* panels, Index n_panels, Index depth, const double* const* queries, Index count,
                   double* out, Index ld) {
  sums<SquaredDifference, Vd, kQueries, kLeftOver>(panels, n_panels, depth, queries, count, out, ld);
}

template <class V, class T>
void sparse_dots(const SparseView<T>& rows, const Index* order, Index n, const T* queries, T* out, Index ld) {
  constexpr Index lanes = sizeof(V) / sizeof(T);
  constexpr Index N = kTogether > lanes ? kTogether / lanes : 1;
  constexpr Index width = N * lanes;  // wider than kTogether where a vector is; the caller pads for it
  for (Index j = 0; j < n; ++j) {
    V sum[N] = {};
    for (Index e = rows.offsets[order[j]]; e < rows.offsets[order[j] + 1]; ++e) {
      const T* q = queries + rows.columns[e] * kTogether;
      const V x = splat<V>(rows.values[e]);
      for (Index s = 0; s < N; ++s) sum[s] = multiply_add(x, load<V>(q + s * lanes), sum[s]);
    }
    T line[width];
    for (Index s = 0; s < N; ++s) store(line + s * lanes, sum[s]);
    for (Index r = 0; r < kTogether; ++r) out[r * ld + j] = line[r];
  }
}

void sparse_f64(const SparseView<double>& rows, const Index* order, Index n, const double* queries, double* out,
                Index ld) {
  sparse_dots<Vd>(rows, order, n, queries, out, ld);
}

void sparse_f32(const SparseView<float>& rows, const Index* order, Index n, const float* queries, float* out,
                Index ld) {
  sparse_dots<Vf>(rows, order, n, queries, out, ld);
}

template <class T>
inline __attribute__((always_inline)) void sparse_one(const SparseView<T>& rows, const Index* order, Index n,
                                                      const T* query, T* out) {
  for (Index j = 0; j < n; ++j) {
    T sum = 0;
    for (Index e = rows.offsets[order[j]]; e < rows.offsets[order[j] + 1]; ++e)
      sum = multiply_add(rows.values[e], query[rows.columns[e]], sum);
    out[j] = sum;
  }
}

void sparse_one_f64(const SparseView<double>& rows, const Index* order, Index n, const double* query, double* out) {
  sparse_one(rows, order, n, query, out);
}

void sparse_one_f32(const SparseView<float>& rows, const Index* order, Index n, const float* query, float* out) {
  sparse_one(rows, order, n, query, out);
}

// How many bits are set in each byte.
inline __attribute__((always_inline)) Vu bits_in_bytes(Vu x) {
#if defined(DPSVM_FMA) && DPSVM_VECTOR_BYTES == 64
  const __m512i count = _mm512_broadcast_i32x4(_mm_setr_epi8(0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4));
  const __m512i low = _mm512_set1_epi8(15), all = (__m512i)x;
  return (Vu)_mm512_add_epi8(_mm512_shuffle_epi8(count, _mm512_and_si512(all, low)),
                             _mm512_shuffle_epi8(count, _mm512_and_si512(_mm512_srli_epi16(all, 4), low)));
#elif defined(DPSVM_FMA) && DPSVM_VECTOR_BYTES == 32
  const __m256i count = _mm256_broadcastsi128_si256(_mm_setr_epi8(0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4));
  const __m256i low = _mm256_set1_epi8(15), all = (__m256i)x;
  return (Vu)_mm256_add_epi8(_mm256_shuffle_epi8(count, _mm256_and_si256(all, low)),
                             _mm256_shuffle_epi8(count, _mm256_and_si256(_mm256_srli_epi16(all, 4), low)));
#elif defined(DPSVM_FMA)
  return (Vu)vcntq_u8((uint8x16_t)x);
#else
  x -= (x >> 1) & 0x5555555555555555;
  x = (x & 0x3333333333333333) + ((x >> 2) & 0x3333333333333333);
  return (x + (x >> 4)) & 0x0f0f0f0f0f0f0f0f;
#endif
}

// The eight bytes of each lane added up.
inline __attribute__((always_inline)) Vu sum_of_bytes(Vu x) {
#if defined(DPSVM_FMA) && DPSVM_VECTOR_BYTES == 64
  return (Vu)_mm512_sad_epu8((__m512i)x, _mm512_setzero_si512());
#elif defined(DPSVM_FMA) && DPSVM_VECTOR_BYTES == 32
  return (Vu)_mm256_sad_epu8((__m256i)x, _mm256_setzero_si256());
#elif defined(DPSVM_FMA)
  return (Vu)vpaddlq_u32(vpaddlq_u16(vpaddlq_u8((uint8x16_t)x)));
#else
  x = (x & 0x00ff00ff00ff00ff) + ((x >> 8) & 0x00ff00ff00ff00ff);
  x += x >> 32;
  return (x + (x >> 16)) & 0xffff;
#endif
}

// Words whose bits a byte can count: 8 each.
constexpr Index kCountable = 31;

// Small whole numbers.
inline __attribute__((always_inline)) void store_counts(double* out, Vu count) {
  const double magic = 0x1p52;
  store(out, (Vd)(count | (Vu)splat<Vd>(magic)) - magic);
}

inline __attribute__((always_inline)) void store_counts(float* out, Vu count) {
  double wide[kLanes];
  store_counts(wide, count);
  store(out, rounded(load<Vd>(wide)));
}

template <class T>
inline __attribute__((always_inline)) void shared_bits(const std::uint64_t* panels, Index n_panels, Index words,
                                                       const std::uint64_t* query, T* out) {
  for (Index p = 0; p < n_panels; ++p, panels += words * kBitRows, out += kBitRows)
    for (Index lane = 0; lane < kBitRows; lane += kLanes) {
      Vu total = {};
      for (Index from = 0; from < words; from += kCountable) {
        const Index to = words - from < kCountable ? words : from + kCountable;
        Vu bytes = {};
        for (Index w = from; w < to; ++w) bytes += bits_in_bytes(load<Vu>(panels + w * kBitRows + lane) & query[w]);
        total += sum_of_bytes(bytes);
      }
      store_counts(out + lane, total);
    }
}

void bits_f64(const std::uint64_t* panels, Index n_panels, Index words, const std::uint64_t* query, double* out) {
  shared_bits(panels, n_panels, words, query, out);
}

void bits_f32(const std::uint64_t* panels, Index n_panels, Index words, const std::uint64_t* query, float* out) {
  shared_bits(panels, n_panels, words, query, out);
}

// exp(x) = 2^n exp(r), r = x - n log 2 in two pieces so that the reduced argument is exact to 2^-70; exp(r) by its
// Taylor series, whose remainder on |r| <= log(2)/2 is below 5e-18.
inline __attribute__((always_inline)) Vd exp_vector(Vd x) {
  const double log2e = 1.4426950408889634074, log2_high = 0x1.62e42fefa0000p-1, log2_low = 0x1.cf79abc9e3b3ap-40,
               magic = 0x1.8p52;
  x = x < -708.0 ? splat<Vd>(-708.0) : x;
  const Vd shifted = x * log2e + magic;
  const Vd n = shifted - magic;
  const Vd high = x - n * log2_high;
  const Vd low = n * log2_low;
  const Vd r = high - low;
  const Vd lost = (high - r) - low;
  Vd q = splat<Vd>(1.0 / 6227020800.0);
  for (double c : {1.0 / 479001600.0, 1.0 / 39916800.0, 1.0 / 3628800.0, 1.0 / 362880.0, 1.0 / 40320.0, 1.0 / 5040.0,
                   1.0 / 720.0, 1.0 / 120.0, 1.0 / 24.0, 1.0 / 6.0, 0.5})
    q = q * r + c;
  const Vd y = 1.0 + (r + (r * r * q + lost));
  return (Vd)((Vl)y + ((Vl)shifted << 52));
}

inline __attribute__((always_inline)) Vf exp_vector(Vf x) {
  const float log2e = 1.44269504f, log2_high = 0x1.62e400p-1f, log2_low = 0x1.7f7d1cp-20f, magic = 0x1.8p23f;
  const Vi vanishes = x < -87.0f;
  x = vanishes ? splat<Vf>(-87.0f) : x;
  const Vf shifted = x * log2e + magic;
  const Vf n = shifted - magic;
  const Vf r = (x - n * log2_high) - n * log2_low;
  Vf q = splat<Vf>(1.0f / 5040.0f);
  for (float c : {1.0f / 720.0f, 1.0f / 120.0f, 1.0f / 24.0f, 1.0f / 6.0f, 0.5f}) q = q * r + c;
  const Vf y = 1.0f + (r + r * r * q);
  return (Vf)(((Vi)y + ((Vi)shifted << 23)) & ~vanishes);
}

// finish(values) is what is kept of a vector of values.
template <class V, class T, class Out, class Finish>
inline __attribute__((always_inline)) void rbf(T gamma, T xx, const T* squared, const T* s, Out* out, Index n,
                                               Finish finish) {
  constexpr Index lanes = sizeof(V) / sizeof(T);
  const auto value = [=](V zz, V dots) { return finish(exp_vector(-gamma * ((xx + zz) - 2 * dots))); };
  Index t = 0;
  for (; t + lanes <= n; t += lanes) store(out + t, value(load<V>(squared + t), load<V>(s + t)));
  if (t < n) {
    T zz[lanes] = {}, dots[lanes] = {};
    Out last[lanes];
    for (Index k = 0; k < n - t; ++k) zz[k] = squared[t + k], dots[k] = s[t + k];
    store(last, value(load<V>(zz), load<V>(dots)));
    for (Index k = 0; k < n - t; ++k) out[t + k] = last[k];
  }
}

void rbf_f64(double gamma, double xx, const double* squared, const double* s, double* out, Index n) {
  rbf<Vd>(gamma, xx, squared, s, out, n, [](Vd x) { return x; });
}

void rbf_rounded(double gamma, double xx, const double* squared, const double* s, float* out, Index n) {
  rbf<Vd>(gamma, xx, squared, s, out, n, [](Vd x) { return rounded(x); });
}

void rbf_f32(float gamma, float xx, const float* squared, const float* s, float* out, Index n) {
  rbf<Vf>(gamma, xx, squared, s, out, n, [](Vf x) { return x; });
}

// Eight interleaved partial sums at every level, so that the result does not depend on the level.
template <class T>
inline __attribute__((always_inline)) double dot_of(const double* a, const T* b, Index n) {
  constexpr Index kSums = 8;
  constexpr int N = kSums / kLanes;
  const auto wide = [](const T* p) {
    if constexpr (sizeof(T) == sizeof(double))
      return load<Vd>(p);
    else
      return widen(p);
  };
  Vd sum[N] = {};
  Index t = 0;
  for (; t + kSums <= n; t += kSums)
    for (int s = 0; s < N; ++s) sum[s] += load<Vd>(a + t + s * kLanes) * wide(b + t + s * kLanes);
  double total = 0.0;
  for (int s = 0; s < N; ++s)
    for (Index lane = 0; lane < kLanes; ++lane) total += sum[s][lane];
  for (; t < n; ++t) total += a[t] * static_cast<double>(b[t]);
  return total;
}

double dot(const double* a, const double* b, Index n) { return dot_of(a, b, n); }
double dot_f32(const double* a, const float* b, Index n) { return dot_of(a, b, n); }

template <class T>
constexpr RowLoops<T> kRowLoops{update<T>, accumulate<T>, second_order<T>};

constexpr Simd kTable{DPSVM_LEVEL_NAME,  argmax,         argmin,         beyond,        kRowLoops<float>,
                      kRowLoops<double>, dots_f64,       dots_f32,       distances_f64, sparse_f64,
                      sparse_f32,        sparse_one_f64, sparse_one_f32, bits_f64,      bits_f32,
                      rbf_f64,           rbf_rounded,    rbf_f32,        dot,           dot_f32};
