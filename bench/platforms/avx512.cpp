// What one level computes, to the bit, for avx512.py to compare with the other levels. DPSVM_CPU names the level.
//
//   avx512 loops                 every loop of simd.hpp over random numbers
//   avx512 train name=value ...  a fit of a LIBSVM file and the decision values of its own rows
//
// Prints one line of name=value words, after the level's own name: doubles as %a, arrays as a hash of their bytes.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iostream>
#include <iterator>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "../../tests/cpp/samples.hpp"
#include "predict.hpp"
#include "random.hpp"
#include "reader.hpp"
#include "simd.hpp"
#include "train.hpp"

using namespace dpsvm;

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// FNV-1a over the bytes of what it is given.
class Hash {
 public:
  template <class T>
  void add(const std::vector<T>& values) {
    add_bytes(values.data(), values.size() * sizeof(T));
  }
  void add(double value) { add_bytes(&value, sizeof value); }
  void add(Index value) { add_bytes(&value, sizeof value); }
  void add(const Extreme& found) { add(found.value), add(found.index); }
  void add(const SecondOrder& found) { add(found.index), add(found.gain), add(found.lowest); }

  std::string text() const {
    char text[17];
    std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(state_));
    return text;
  }

 private:
  void add_bytes(const void* bytes, std::size_t size) {
    const auto* p = static_cast<const unsigned char*>(bytes);
    for (std::size_t k = 0; k < size; ++k) state_ = (state_ ^ p[k]) * 0x100000001b3;
  }

  std::uint64_t state_ = 0xcbf29ce484222325;
};

template <class T>
std::string hash_of(const std::vector<T>& values) {
  Hash hash;
  hash.add(values);
  return hash.text();
}

std::string hexadecimal(double value) {
  char text[40];
  std::snprintf(text, sizeof text, "%a", value);
  return text;
}

void tell(const std::string& name, const std::string& value) { std::cout << ' ' << name << '=' << value; }

template <class T>
std::vector<T> uniform(Index n, Random& random, double scale = 1.0) {
  std::vector<T> values(n);
  for (T& x : values) x = static_cast<T>(scale * (random.uniform() - 0.5));
  return values;
}

// Lengths with every remainder of a division by the vectors' lanes, and a long one.
std::vector<Index> lengths() {
  std::vector<Index> all{1001};
  for (Index n = 0; n < 70; ++n) all.push_back(n);
  return all;
}

void tell_scans(const Simd& level) {
  std::map<std::string, Hash> found;
  Random random(11);
  for (const Index n : lengths())
    for (const bool ties : {false, true}) {
      std::vector<double> v = uniform<double>(n, random), diag = uniform<double>(n, random, 2.0);
      std::vector<float> ki = uniform<float>(n, random), kj = uniform<float>(n, random);
      const std::vector<double> wide_ki(ki.begin(), ki.end()), wide_kj(kj.begin(), kj.end());
      std::vector<std::uint8_t> side(n);
      for (std::uint8_t& bits : side) bits = static_cast<std::uint8_t>(random.below(16));
      if (ties)
        for (double& x : v) x = 0.25 * static_cast<double>(random.below(5)) - 0.5;
      for (const std::uint8_t bit : {1, 2, 4, 8}) {
        found["argmax"].add(level.argmax(v.data(), side.data(), bit, n));
        found["argmin"].add(level.argmin(v.data(), side.data(), bit, n));
        std::vector<Index> far(n);
        far.resize(level.beyond(v.data(), side.data(), bit, -1.0, 0.2, 0.1, n, far.data()));
        found["beyond"].add(far);
        found["second_order"].add(
            level.of_floats.second_order(v.data(), ki.data(), diag.data(), side.data(), bit, 0.3, 0.7, n));
        found["update"].add(level.of_floats.update(v.data(), ki.data(), 0.1, kj.data(), -0.7, side.data(), bit, n));
        found["update"].add(v);
        level.of_floats.accumulate(v.data(), ki.data(), 1.0 / 3.0, n);
        found["accumulate"].add(v);
        found["second_order_wide"].add(
            level.of_doubles.second_order(v.data(), wide_ki.data(), diag.data(), side.data(), bit, 0.3, 0.7, n));
        found["update_wide"].add(
            level.of_doubles.update(v.data(), wide_ki.data(), 0.1, wide_kj.data(), -0.7, side.data(), bit, n));
        found["update_wide"].add(v);
        level.of_doubles.accumulate(v.data(), wide_ki.data(), 1.0 / 3.0, n);
        found["accumulate_wide"].add(v);
      }
      found["dot"].add(level.dot(v.data(), diag.data(), n));
      found["dot_f32"].add(level.dot_f32(v.data(), ki.data(), n));
    }
  for (const auto& [name, hash] : found) tell(name, hash.text());
}

template <class T>
void tell_dots(const char* name, void (*dots)(const T*, Index, Index, const T* const*, Index, T*, Index)) {
  Hash hash;
  Random random(12);
  for (const Index panels : {1, 2, 4, 5, 9})
    for (const Index count : {1, 2, 3, 4, 7, 9, 19})
      for (const Index depth : {1, 5, 17, 400}) {
        const Index width = panels * kPanel<T>;
        const std::vector<T> packed = uniform<T>(width * depth, random), queries = uniform<T>(count * depth, random);
        std::vector<const T*> pointers;
        for (Index r = 0; r < count; ++r) pointers.push_back(queries.data() + r * depth);
        std::vector<T> out(count * width);
        dots(packed.data(), panels, depth, pointers.data(), count, out.data(), width);
        hash.add(out);
      }
  tell(name, hash.text());
}

template <class T>
void tell_sparse(const char* name, void (*dots)(const SparseView<T>&, const Index*, Index, const T*, T*, Index)) {
  const Index n = 97, features = 150;
  Random random(13);
  const SparseSample<T> rows = make_sparse_sample<T>(n, features, random);
  std::vector<T> out(kTogether * n);
  const std::vector<T> queries = uniform<T>(features * kTogether + kPanel<T>, random);
  dots(rows.view(), rows.order.data(), n, queries.data(), out.data(), n);
  tell(name, hash_of(out));
}

template <class T>
void tell_bits(const char* name, void (*count)(const std::uint64_t*, Index, Index, const std::uint64_t*, T*)) {
  Hash hash;
  Random random(14);
  for (Index words = 1; words < 12; ++words) {
    const Index n_panels = 5;
    std::vector<std::uint64_t> panels(n_panels * words * kBitRows), query(words);
    for (std::uint64_t& word : panels) word = random.bits();
    for (std::uint64_t& word : query) word = random.bits();
    std::vector<T> out(n_panels * kBitRows);
    count(panels.data(), n_panels, words, query.data(), out.data());
    hash.add(out);
  }
  tell(name, hash.text());
}

template <class T, class Out>
void tell_rbf(const char* name, void (*rbf)(T, T, const T*, const T*, Out*, Index)) {
  Hash hash;
  Random random(15);
  for (const Index n : lengths())
    for (const T gamma : {T(0.01), T(1), T(900)}) {  // from near 1 to vanishing
      const std::vector<T> s = uniform<T>(n, random);
      std::vector<Out> out(n);
      std::vector<T> squared = uniform<T>(n, random, 0.2);
      for (Index t = 0; t < n; ++t) squared[t] += T(0.4);
      rbf(gamma, T(0.7), squared.data(), s.data(), out.data(), n);
      hash.add(out);
    }
  tell(name, hash.text());
}

void tell_loops(const Simd& level) {
  tell_scans(level);
  tell_dots("dots_f64", level.dots_f64);
  tell_dots("dots_f32", level.dots_f32);
  tell_sparse("sparse_f64", level.sparse_f64);
  tell_sparse("sparse_f32", level.sparse_f32);
  tell_bits("bits_f64", level.bits_f64);
  tell_bits("bits_f32", level.bits_f32);
  tell_rbf("rbf_f64", level.rbf_f64);
  tell_rbf("rbf_rounded", level.rbf_rounded);
  tell_rbf("rbf_f32", level.rbf_f32);
}

using Words = std::map<std::string, std::string>;

// What a name=value word says; `otherwise` where there is none, or where its value is None.
std::string text_of(const Words& words, const std::string& name, const std::string& otherwise) {
  const auto at = words.find(name);
  return at == words.end() || at->second == "None" ? otherwise : at->second;
}

double number_of(const Words& words, const std::string& name, double otherwise) {
  const std::string text = text_of(words, name, "");
  return text.empty() ? otherwise : std::stod(text);
}

template <class Value>
Value chosen(const Words& words, const std::string& name, const std::map<std::string, Value>& values,
             const std::string& otherwise) {
  const std::string text = text_of(words, name, otherwise);
  const auto at = values.find(text);
  if (at == values.end()) throw InvalidInput("unknown " + name + " '" + text + "'");
  return at->second;
}

// Compressed rows that own their numbers.
template <class T>
struct Rows {
  std::vector<T> values;
  std::vector<std::int64_t> columns, offsets{0};
  Index cols = 0;

  Index size() const { return static_cast<Index>(offsets.size()) - 1; }
  CsrView<T, std::int64_t> view() const { return {values.data(), columns.data(), offsets.data(), size(), cols}; }

  // Row i of `from`, any struct with these members.
  template <class From>
  void append(const From& from, Index i) {
    for (auto e = from.offsets[i]; e < from.offsets[i + 1]; ++e) {
      values.push_back(static_cast<T>(from.values[e]));
      columns.push_back(from.columns[e]);
    }
    offsets.push_back(static_cast<std::int64_t>(values.size()));
  }
};

// Labels to codes in LIBSVM's order: first seen first, but +1 before -1. Returns how many classes there are.
Index to_codes(std::vector<double>& y) {
  std::vector<double> labels;
  for (double label : y)
    if (std::find(labels.begin(), labels.end(), label) == labels.end()) labels.push_back(label);
  if (labels == std::vector<double>{-1.0, 1.0}) std::swap(labels[0], labels[1]);
  for (double& label : y) label = static_cast<double>(std::find(labels.begin(), labels.end(), label) - labels.begin());
  return static_cast<Index>(labels.size());
}

TrainOptions options_from(const Words& words, Index features) {
  TrainOptions options;
  options.machine.machine = chosen<Machine>(words, "machine",
                                            {{"c-svc", Machine::c_svc},
                                             {"nu-svc", Machine::nu_svc},
                                             {"one-class", Machine::one_class},
                                             {"epsilon-svr", Machine::epsilon_svr},
                                             {"nu-svr", Machine::nu_svr}},
                                            "c-svc");
  options.machine.C = number_of(words, "C", 1.0);
  options.machine.nu = number_of(words, "nu", 0.5);
  options.machine.epsilon = number_of(words, "epsilon", 0.1);
  options.kernel.type = chosen<KernelType>(words, "kernel",
                                           {{"linear", KernelType::linear},
                                            {"poly", KernelType::poly},
                                            {"rbf", KernelType::rbf},
                                            {"sigmoid", KernelType::sigmoid}},
                                           "rbf");
  options.kernel.gamma = number_of(words, "gamma", 1.0 / static_cast<double>(features));
  options.kernel.coef0 = number_of(words, "coef0", 0.0);
  options.kernel.degree = static_cast<int>(number_of(words, "degree", 3));
  options.algorithm = chosen<Algorithm>(words, "algorithm",
                                        {{"smo", Algorithm::smo}, {"decomposition", Algorithm::decomposition}}, "smo");
  options.selector.name = text_of(words, "selector", "wss2");
  options.selector.seed = 5;
  options.solver.tol = number_of(words, "tol", 1e-3);
  options.solver.shrinking = text_of(words, "shrinking", "True") == "True";
  return options;
}

template <class T>
void tell_fit(const Words& words) {
  std::ifstream file(text_of(words, "file", ""));
  const std::string text(std::istreambuf_iterator<char>(file), {});
  Reader reader(ReaderOptions{});
  reader.feed(text.data(), text.size());
  reader.finish();

  Rows<T> x;
  x.cols = reader.column_count();
  for (Index i = 0; i < reader.rows().count(); ++i) x.append(reader.rows(), i);
  std::vector<double> y = reader.rows().leading;

  const TrainOptions options = options_from(words, x.cols);
  TrainInput input;
  input.x = x.view();
  for (Index row = 0; row < row_count(input.x); ++row) input.rows.push_back(row);
  input.classes = is_classifier(options.machine.machine) ? to_codes(y) : 0;
  input.y = y.data();
  Watch watch(nullptr, nullptr, kInfinity);
  const Model model = train(input, options, watch);

  Rows<T> support;
  support.cols = x.cols;
  for (const std::int32_t row : model.support) support.append(x, row);
  PredictInput asked;
  asked.x = x.view();
  asked.support_vectors = support.view();
  asked.n_sv = support.size();
  asked.dual_coef = model.dual_coef.data();
  asked.rho = model.rho.data();
  asked.n_support = model.n_support.data();
  asked.classes = input.classes;
  asked.kernel = options.kernel;
  std::vector<double> decisions(x.size() * model.rho.size());
  decision_values(asked, decisions.data(), watch);

  const auto each = [&](const std::string& name, const auto& of) {
    std::string all;
    for (const Report& report : model.reports) all += (all.empty() ? "" : ",") + of(report);
    tell(name, all);
  };
  each("iterations", [](const Report& r) { return std::to_string(r.result.iterations); });
  each("objective", [](const Report& r) { return hexadecimal(r.result.objective); });
  each("rho", [](const Report& r) { return hexadecimal(r.result.rho); });
  each("r", [](const Report& r) { return hexadecimal(r.result.r); });
  each("nu", [](const Report& r) { return hexadecimal(r.nu); });
  each("gap", [](const Report& r) { return hexadecimal(r.result.gap); });
  each("n_sv", [](const Report& r) { return std::to_string(r.n_sv); });
  each("n_bsv", [](const Report& r) { return std::to_string(r.n_bsv); });
  tell("total_sv", std::to_string(model.support.size()));
  tell("support", hash_of(model.support));
  tell("coefficients", hash_of(model.dual_coef));
  tell("decisions", hash_of(decisions));
}

void answer(int count, char** arguments) {
  const std::string what = count > 1 ? arguments[1] : "";
  Words words;
  for (int k = 2; k < count; ++k) {
    const std::string word = arguments[k];
    const std::size_t equals = word.find('=');
    if (equals == std::string::npos) throw InvalidInput("not name=value: " + word);
    words[word.substr(0, equals)] = word.substr(equals + 1);
  }
  std::cout << "level=" << simd().name;
  if (what == "loops")
    tell_loops(simd());
  else if (what != "train")
    throw InvalidInput("the first word must be loops or train");
  else if (text_of(words, "precision", "float64") == "float32")
    tell_fit<float>(words);
  else
    tell_fit<double>(words);
  std::cout << std::endl;
}

}  // namespace

int main(int count, char** arguments) {
  try {
    answer(count, arguments);
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
  return 0;
}
