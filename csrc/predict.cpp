#include "predict.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "distances.hpp"
#include "norms.hpp"
#include "precision.hpp"
#include "samples.hpp"
#include "simd.hpp"

namespace dpsvm {

namespace {

// Kernel values kept at a time by each thread: its second-level cache holds them.
constexpr Index kBlockBytes = Index{1} << 19;
constexpr Index kMaxQueries = 64;

// As many where support vectors are laid out anew for each block.
constexpr Index kFarBlockBytes = Index{1} << 22;

// Queries that loops take at once.
constexpr Index kWhole = 4;

// Dot products are used for rows with gamma |x|^2 up to this: their kernel values of rbf are off by about as many times
// 2^-53. (So are they where the support vector is longer: it is the farther away, and its kernel value the smaller.)
constexpr double kNear = 16;

// Whole numbers with squared norms up to this have exact dot products.
constexpr double kExact = 0x1p51;

// Weight vectors together may be this long; beyond, support vectors are multiplied one by one.
constexpr Index kMostWeights = Index{1} << 22;

// From the kernel values of one query with all support vectors to its decision values.
class Decision {
 public:
  explicit Decision(const PredictInput& input) : in_(input) {
    const Index classes = std::max<Index>(in_.classes, 1);
    first_.push_back(0);
    for (Index c = 0; c < classes; ++c) first_.push_back(first_.back() + in_.n_support[c]);
  }

  Index pairs() const { return in_.classes == 0 ? 1 : in_.classes * (in_.classes - 1) / 2; }

  template <class T>
  void values(const T* k, double* out) const {
    if (in_.classes == 0) {
      *out = dot(in_.dual_coef, k, in_.n_sv) - in_.rho[0];
      return;
    }
    Index pair = 0;
    for (Index a = 0; a < in_.classes; ++a)
      for (Index b = a + 1; b < in_.classes; ++b, ++pair)
        out[pair] = share(k, a, b - 1) + share(k, b, a) - in_.rho[pair];
  }

  // Calls visit(support vector, pair, coefficient) for every pair a support vector takes part in.
  template <class Visit>
  void for_each_coefficient(const Visit& visit) const {
    for (Index s = 0; in_.classes == 0 && s < in_.n_sv; ++s) visit(s, 0, in_.dual_coef[s]);
    Index pair = 0;
    for (Index a = 0; a < in_.classes; ++a)
      for (Index b = a + 1; b < in_.classes; ++b, ++pair) {
        for (Index s = first_[a]; s < first_[a + 1]; ++s) visit(s, pair, in_.dual_coef[(b - 1) * in_.n_sv + s]);
        for (Index s = first_[b]; s < first_[b + 1]; ++s) visit(s, pair, in_.dual_coef[a * in_.n_sv + s]);
      }
  }

 private:
  // What the support vectors of class c contribute through line r of the coefficients.
  template <class T>
  double share(const T* k, Index c, Index r) const {
    const Index from = first_[c];
    return dot(in_.dual_coef + r * in_.n_sv + from, k + from, first_[c + 1] - from);
  }

  static double dot(const double* a, const double* b, Index n) { return simd().dot(a, b, n); }
  static double dot(const double* a, const float* b, Index n) { return simd().dot_f32(a, b, n); }

  const PredictInput& in_;
  std::vector<Index> first_;  // [classes + 1] first support vector of each class
};

// Calls piece(first, last) for ranges of queries, in parallel; false if cancelled on the way.
template <class Piece>
bool in_pieces(Index queries, Index at_once, ThreadPool& pool, Watch& watch, const Piece& piece) {
  std::atomic<bool> cancelled{false};
  const Index count = (queries + at_once - 1) / at_once;
  pool.run(
      count,
      [&](Index p) {
        Progress progress;
        progress.problem = p;
        progress.problems = count;
        if (watch.check(progress)) cancelled = true;
        if (!cancelled) piece(p * at_once, std::min(queries, (p + 1) * at_once));
      },
      [&] {
        if (watch.check({})) cancelled = true;
      });
  return !cancelled;
}

// Whether all entries that are not zero are so.
template <class Test>
bool all_entries(const Matrix& matrix, const Test& test) {
  return std::visit(
      [&](const auto& view) {
        bool all = true;
        for (Index i = 0; all && i < view.rows; ++i)
          for_each_entry(view, i, [&](Index, auto value) { all &= test(value); });
        return all;
      },
      matrix);
}

bool all_are_sets(const Matrix& matrix) {
  return all_entries(matrix, [](auto value) { return value == 1; });
}

bool all_are_whole(const Matrix& matrix) {
  return all_entries(matrix, [](auto value) { return value == std::floor(value); });
}

// So many that their lines fit.
Index queries_at_once(Index line_bytes, Index block_bytes) {
  const Index fitting = std::clamp<Index>(block_bytes / line_bytes, 1, kMaxQueries);
  return fitting < kWhole ? fitting : fitting - fitting % kWhole;
}

// The decision values of the named queries, whose squared norms are given, computed in the precision T.
template <class T>
bool by_dots(const PredictInput& input, const std::vector<Index>& queries, const std::vector<T>& squared_queries,
             double* out, ThreadPool& pool, Watch& watch) {
  if (queries.empty()) return true;
  const auto all = consecutive(0, input.n_sv);
  const auto rows = make_samples<T>(input.support_vectors, all, all_are_sets(input.x), pool);
  const auto squared = squared_norms<T>(input.support_vectors, all, pool);
  const Index features = rows->features();

  const Decision decision(input);
  const Index width = (input.n_sv + Samples<T>::kAlign - 1) / Samples<T>::kAlign * Samples<T>::kAlign;
  const Index at_once = queries_at_once((width + features + 1) * static_cast<Index>(sizeof(T)), kBlockBytes);
  return in_pieces(static_cast<Index>(queries.size()), at_once, pool, watch, [&](Index first, Index last) {
    const Index count = last - first;
    Queries<T> packed;
    const std::unique_ptr<T[]> dense(new T[count * features]);
    const std::unique_ptr<T[]> k(new T[Samples<T>::lines(count) * width + Samples<T>::kAlign]);
    for (Index q = 0; q < count; ++q) rows->expand_query(input.x, queries[first + q], dense.get() + q * features);
    rows->pack(dense.get(), count, packed);
    rows->dots(packed, count, 0, input.n_sv, k.get(), width);
    for (Index q = 0; q < count; ++q) {
      T* kernel = k.get() + q * width;
      apply_kernel(input.kernel, squared_queries[first + q], squared.data(), kernel, kernel, input.n_sv);
      decision.values(kernel, out + queries[first + q] * decision.pairs());
    }
  });
}

// The decision values of the named queries by rbf, from sums of squared differences.
bool by_distances(const PredictInput& input, const std::vector<Index>& queries, double* out, ThreadPool& pool,
                  Watch& watch) {
  if (queries.empty()) return true;
  const std::vector<double> nothing(input.n_sv, 0.0);
  const Decision decision(input);
  const Index width = distances_width(input.n_sv);
  const Index line_bytes = (width + column_count(input.x) + 1) * static_cast<Index>(sizeof(double));
  const Index at_once = queries_at_once(line_bytes, kFarBlockBytes);
  return in_pieces(static_cast<Index>(queries.size()), at_once, pool, watch, [&](Index first, Index last) {
    std::vector<double> k((last - first) * width);
    squared_distances(input.support_vectors, input.x, queries.data() + first, last - first, k.data());
    for (Index q = first; q < last; ++q) {
      double* kernel = k.data() + (q - first) * width;
      apply_kernel(input.kernel, 0.0, kernel, nothing.data(), kernel, input.n_sv);
      decision.values(kernel, out + queries[q] * decision.pairs());
    }
  });
}

// Some of the queries, and their squared norms.
template <class T>
struct Chosen {
  std::vector<Index> queries;
  std::vector<T> squared;
};

// Those that pass a test of their squared norm, and the others.
template <class T, class Test>
std::pair<Chosen<T>, Chosen<T>> part(const std::vector<Index>& queries, const std::vector<T>& squared,
                                     const Test& test) {
  std::pair<Chosen<T>, Chosen<T>> parts;
  for (std::size_t q = 0; q < queries.size(); ++q) {
    Chosen<T>& chosen = test(squared[q]) ? parts.first : parts.second;
    chosen.queries.push_back(queries[q]);
    chosen.squared.push_back(squared[q]);
  }
  return parts;
}

// Whether the dot products of the queries with the support vectors are exact.
bool dots_are_exact(const PredictInput& input, const std::vector<double>& squared, ThreadPool& pool) {
  const auto small = [](double square) { return square <= kExact; };
  if (!std::all_of(squared.begin(), squared.end(), small) || !all_are_whole(input.support_vectors)) return false;
  const auto others = squared_norms<double>(input.support_vectors, consecutive(0, input.n_sv), pool);
  return std::all_of(others.begin(), others.end(), small) && all_are_whole(input.x);
}

bool in_double(const PredictInput& input, const std::vector<Index>& queries, double* out, ThreadPool& pool,
               Watch& watch) {
  const auto squared = squared_norms<double>(input.x, queries, pool);
  const auto [near, far] = part(queries, squared, [&](double square) {
    return input.kernel.type != KernelType::rbf || input.kernel.gamma * square <= kNear;
  });
  if (!far.queries.empty() && dots_are_exact(input, squared, pool))
    return by_dots(input, queries, squared, out, pool, watch);
  return by_dots(input, near.queries, near.squared, out, pool, watch) &&
         by_distances(input, far.queries, out, pool, watch);
}

// The range of the decision values is known.
SinglePrecision precision_of(const PredictInput& input, ThreadPool& pool) {
  SinglePrecision single(input.machine, input.kernel, input.support_vectors, consecutive(0, input.n_sv), pool);
  const Decision decision(input);
  std::vector<double> squares(decision.pairs(), 0.0);
  decision.for_each_coefficient([&](Index, Index pair, double c) { squares[pair] += c * c; });
  for (Index pair = 0; pair < decision.pairs(); ++pair) single.limit(std::sqrt(squares[pair]), input.range[pair]);
  return single;
}

// Each query by itself decides its precision, so that it has the same values in any company.
bool by_kernel(const PredictInput& input, double* out, Watch& watch) {
  ThreadPool pool(input.threads);
  const auto all = consecutive(0, row_count(input.x));
  if (!is_single_precision(input.x) || !input.range) return in_double(input, all, out, pool, watch);
  const SinglePrecision single = precision_of(input, pool);
  if (!single.enough()) return in_double(input, all, out, pool, watch);
  const auto [near, far] =
      part(all, squared_norms<float>(input.x, all, pool), [&](float square) { return single.enough_for(square); });
  return by_dots(input, near.queries, near.squared, out, pool, watch) &&
         in_double(input, far.queries, out, pool, watch);
}

// The linear kernel's weight vectors, one a pair, over the columns that occur in the support vectors.
class Weights {
 public:
  explicit Weights(const PredictInput& input)
      : columns_(std::visit([&](const auto& view) { return ColumnMap(view, consecutive(0, input.n_sv)); },
                            input.support_vectors)),
        decision_(input) {}

  Index size() const { return columns_.size() * decision_.pairs(); }

  void fill(const Matrix& support_vectors) {
    const Index pairs = decision_.pairs();
    w_.assign(size(), 0.0);
    std::visit(
        [&](const auto& view) {
          decision_.for_each_coefficient([&](Index s, Index pair, double coefficient) {
            for_each_entry(view, s, [&](Index k, auto value) {
              w_[columns_[k] * pairs + pair] += coefficient * static_cast<double>(value);
            });
          });
        },
        support_vectors);
  }

  // out[pair] = <w of the pair, row> - rho
  void decide(const Matrix& queries, Index row, const double* rho, double* out) const {
    const Index pairs = decision_.pairs();
    std::fill_n(out, pairs, 0.0);
    std::visit(
        [&](const auto& view) {
          for_each_entry(view, row, [&](Index k, auto value) {
            const Index at = columns_[k];
            if (at < 0) return;
            for (Index p = 0; p < pairs; ++p) out[p] += w_[at * pairs + p] * static_cast<double>(value);
          });
        },
        queries);
    for (Index p = 0; p < pairs; ++p) out[p] -= rho[p];
  }

 private:
  ColumnMap columns_;
  Decision decision_;
  std::vector<double> w_;  // [column][pair]
};

bool by_weights(const PredictInput& input, Weights& weights, double* out, Watch& watch) {
  weights.fill(input.support_vectors);
  const Index pairs = Decision(input).pairs();
  ThreadPool pool(input.threads);
  return in_pieces(row_count(input.x), kMaxQueries, pool, watch, [&](Index first, Index last) {
    for (Index q = first; q < last; ++q) weights.decide(input.x, q, input.rho, out + q * pairs);
  });
}

using Places = std::vector<std::pair<Index, Index>>;

// line[s] = the entry of a row in the column of support vector s.
template <class V>
void pick(const DenseView<V>& view, Index row, const Places& places, std::vector<double>& line) {
  for (const auto& [column, s] : places) line[s] = static_cast<double>(view.row(row)[column]);
}

template <class V, class I>
void pick(const CsrView<V, I>& view, Index row, const Places& places, std::vector<double>& line) {
  std::fill(line.begin(), line.end(), 0.0);
  for_each_entry(view, row, [&](Index k, V value) {
    for (auto at = std::lower_bound(places.begin(), places.end(), std::pair<Index, Index>{k, 0});
         at != places.end() && at->first == k; ++at)
      line[at->second] = static_cast<double>(value);
  });
}

bool by_gram(const PredictInput& input, double* out, Watch& watch) {
  const Decision decision(input);
  const Index columns = column_count(input.x);
  for (Index s = 0; s < input.n_sv; ++s)
    if (input.support[s] < 0 || input.support[s] >= columns)
      throw InvalidInput("support vector " + std::to_string(input.support[s]) + " is not one of the kernel matrix's " +
                         std::to_string(columns) + " columns");
  Places places;  // (column of x, support vector), ascending
  for (Index s = 0; s < input.n_sv; ++s) places.emplace_back(input.support[s], s);
  std::sort(places.begin(), places.end());
  ThreadPool pool(input.threads);
  return in_pieces(row_count(input.x), kMaxQueries, pool, watch, [&](Index first, Index last) {
    std::vector<double> line(input.n_sv);
    for (Index q = first; q < last; ++q) {
      std::visit([&](const auto& view) { pick(view, q, places, line); }, input.x);
      decision.values(line.data(), out + q * decision.pairs());
    }
  });
}

}  // namespace

bool decision_values(const PredictInput& input, double* out, Watch& watch) {
  if (input.kernel.type == KernelType::precomputed) return by_gram(input, out, watch);
  if (row_count(input.support_vectors) != input.n_sv)
    throw InvalidInput(std::to_string(row_count(input.support_vectors)) + " support vectors, but coefficients for " +
                       std::to_string(input.n_sv));
  if (column_count(input.support_vectors) != column_count(input.x))
    throw InvalidInput("X has " + std::to_string(column_count(input.x)) + " features, the support vectors " +
                       std::to_string(column_count(input.support_vectors)));
  if (input.kernel.type == KernelType::linear) {
    Weights weights(input);
    if (weights.size() <= kMostWeights) return by_weights(input, weights, out, watch);
  }
  return by_kernel(input, out, watch);
}

}  // namespace dpsvm
