#include "qmatrix.hpp"

#include <algorithm>
#include <chrono>
#include <numeric>
#include <utility>

namespace dpsvm {

namespace {

// Rows asked for together when it is known which will be needed, and of them computed together.
constexpr Index kBatch = 256, kBlock = 32;

// Whole rows from which a cache is large enough to spend on what may be needed.
constexpr Index kManyRows = 256;

// The part of the cache that rows computed ahead of need may take at a time.
constexpr Index kShareAhead = 16;

// The kernel of the samples behind a cache.
template <class T>
class CachedKernel {
 public:
  CachedKernel(std::unique_ptr<Kernel> kernel, std::size_t bytes, QStatistics& statistics)
      : kernel_(std::move(kernel)), cache_(kernel_->size(), kernel_->size(), bytes, kernel_->effort()),
        statistics_(statistics) {}

  Kernel& kernel() const { return *kernel_; }
  RowCache<T>& cache() { return cache_; }

  bool kept(Index id) const { return cache_.begun(id); }

  // Whether row `id` is new, so that others may be computed along with it.
  bool is_new(Index id) { return cache_.valid(id) == 0; }

  // Sample `at` of the kernel's current order, whose row is kept under `id`.
  const T* row(Index at, Index id, Index length) {
    if (cache_.valid(id) >= length) {
      ++statistics_.hits;
      return cache_.fetch(id, length).data;
    }
    length = stretched(length);
    const auto [data, valid] = cache_.fetch(id, length);
    T* rest = data + valid;
    compute(&at, 1, valid, length, &rest);
    computed(id, valid, length);
    return data;
  }

  // What is missing of the rows is computed in blocks, those that were begun with others as far as they. All of them are
  // fetched first: a row that makes room for another is none of these.
  void prefetch(const std::vector<Index>& at, const std::vector<Index>& ids, Index length) {
    length = stretched(length);
    std::vector<Missing> missing;
    for (std::size_t k = 0; k < at.size(); ++k) {
      if (cache_.valid(ids[k]) >= length) continue;
      const auto [data, valid] = cache_.fetch(ids[k], length);
      missing.push_back({valid, at[k], data + valid});
      computed(ids[k], valid, length);
    }
    std::sort(missing.begin(), missing.end(), [](const Missing& a, const Missing& b) { return a.from < b.from; });
    std::vector<Index> rows;
    std::vector<T*> out;
    for (auto m = missing.begin(); m != missing.end(); ++m) {
      rows.push_back(m->at);
      out.push_back(m->rest);
      const bool last = m + 1 == missing.end() || m[1].from != m->from;
      if (!last && static_cast<Index>(rows.size()) < kBlock) continue;
      compute(rows.data(), static_cast<Index>(rows.size()), m->from, length, out.data());
      rows.clear();
      out.clear();
    }
  }

  Index batch(Index length) const {
    return std::clamp<Index>(std::min(cache_.capacity(length) / 8, beside_a_pair()), 1, kBatch);
  }

  // How many rows to compute when one is needed.
  Index together(Index length) const {
    return std::min({kernel_->together(), cache_.capacity(stretched(length)) / kShareAhead, beside_a_pair()});
  }

 private:
  struct Missing {
    Index from;  // the first entry that is missing
    Index at;    // the sample
    T* rest;     // where the entries from there on go
  };

  // Rows that can be fetched at once while those of a pair are in use.
  Index beside_a_pair() const { return cache_.safe() - 2; }

  // A row of which most is needed is computed whole, where many whole rows fit: a variable that reaches its bound needs
  // all of it.
  Index stretched(Index length) const {
    const Index whole = kernel_->size();
    return 2 * length > whole && cache_.budget(whole) >= kManyRows ? whole : length;
  }

  void compute(const Index* rows, Index count, Index from, Index to, T* const* out) {
    const auto started = std::chrono::steady_clock::now();
    kernel_->block(rows, count, from, to, out);
    statistics_.seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
  }

  void computed(Index id, Index from, Index to) {
    cache_.set_valid(id, to);
    ++statistics_.misses;
    statistics_.evaluations += to - from;
  }

  std::unique_ptr<Kernel> kernel_;
  RowCache<T> cache_;
  QStatistics& statistics_;
};

template <class T>
class SingleQ final : public QMatrix {
 public:
  SingleQ(std::unique_ptr<Kernel> kernel, std::size_t bytes)
      : samples_(std::move(kernel), bytes, this->statistics_), id_(samples_.kernel().size()) {
    std::iota(id_.begin(), id_.end(), Index{0});
  }

  Row row(Index i, Index length) override {
    if (samples_.is_new(id_[i])) this->compute_ahead(i, length, samples_.together(length));
    return samples_.row(i, id_[i], length);
  }

  bool kept(Index i) const override { return samples_.kept(id_[i]); }

  Row peek(Index i, Index length) override { return samples_.cache().peek(id_[i], length); }

  void prefetch(const Index* rows, Index count, Index length) override {
    std::vector<Index> at(rows, rows + count), ids;
    for (Index i : at) ids.push_back(id_[i]);
    samples_.prefetch(at, ids, length);
  }

  Index batch(Index length) const override { return samples_.batch(length); }

  Index effort() const override { return samples_.kernel().effort(); }

  double diagonal(Index i) const override { return samples_.kernel().diagonal(i); }

  void swap(const std::vector<Swap>& swaps) override {
    for (const auto& [i, j] : swaps) {
      samples_.kernel().swap(i, j);
      std::swap(id_[i], id_[j]);
    }
    samples_.cache().swap_columns(swaps);
  }

 private:
  CachedKernel<T> samples_;
  std::vector<Index> id_;  // position -> the sample's first position, its name in the cache
};

// Whole kernel rows in sample order; each use gathers one into the order of the variables.
template <class T>
class DoubledQ final : public QMatrix {
 public:
  DoubledQ(std::unique_ptr<Kernel> kernel, std::size_t bytes)
      : samples_(std::move(kernel), bytes, this->statistics_), sample_(2 * samples_.kernel().size()) {
    const Index n = samples_.kernel().size();
    for (Index t = 0; t < 2 * n; ++t) sample_[t] = t % n;
    for (Line& line : lines_) line.values.resize(2 * n);
  }

  Row row(Index i, Index length) override {
    const Index s = sample_[i], whole = samples_.kernel().size();
    if (samples_.is_new(s)) this->compute_ahead(i, whole, samples_.together(whole));
    return in_order(s, samples_.row(s, s, whole), length);
  }

  bool kept(Index i) const override { return samples_.kept(sample_[i]); }

  void prefetch(const Index* rows, Index count, Index) override {
    std::vector<Index> at;
    for (Index r = 0; r < count; ++r) at.push_back(sample_[rows[r]]);
    std::sort(at.begin(), at.end());
    at.erase(std::unique(at.begin(), at.end()), at.end());
    samples_.prefetch(at, at, samples_.kernel().size());
  }

  Index batch(Index) const override { return samples_.batch(samples_.kernel().size()); }

  Index effort() const override { return samples_.kernel().effort(); }

  double diagonal(Index i) const override { return samples_.kernel().diagonal(sample_[i]); }

  void swap(const std::vector<Swap>& swaps) override {
    for (const auto& [i, j] : swaps) std::swap(sample_[i], sample_[j]);
    for (Line& line : lines_) line.length = 0;
  }

 private:
  // A row in the order of the variables, as far as it was gathered.
  struct Line {
    Index sample = 0, length = 0;
    std::vector<T> values;
  };

  // The two rows used last stay gathered: a step uses each of them several times.
  const T* in_order(Index sample, const T* row, Index length) {
    if (lines_[last_].sample != sample) last_ = 1 - last_;
    Line& line = lines_[last_];
    if (line.sample != sample) line.length = 0;
    line.sample = sample;
    for (; line.length < length; ++line.length) line.values[line.length] = row[sample_[line.length]];
    return line.values.data();
  }

  CachedKernel<T> samples_;
  std::vector<Index> sample_;  // position -> sample
  Line lines_[2];
  int last_ = 0;
};

}  // namespace

template <class T>
std::unique_ptr<QMatrix> make_qmatrix(std::unique_ptr<Kernel> kernel, std::size_t cache_bytes, bool doubled) {
  if (doubled) return std::make_unique<DoubledQ<T>>(std::move(kernel), cache_bytes);
  return std::make_unique<SingleQ<T>>(std::move(kernel), cache_bytes);
}

template std::unique_ptr<QMatrix> make_qmatrix<float>(std::unique_ptr<Kernel>, std::size_t, bool);
template std::unique_ptr<QMatrix> make_qmatrix<double>(std::unique_ptr<Kernel>, std::size_t, bool);

}  // namespace dpsvm
