// What each rule may pick, from a state made by hand that is never updated.
#include <algorithm>
#include <cmath>
#include <set>

#include "check.hpp"
#include "samples.hpp"
#include "selector.hpp"

using namespace dpsvm;

namespace {

constexpr double kTol = 1e-3;

// Ten variables: 0-4 can only grow with v = 0, .25, ..., 1, and 5-9 can only fall with v = -1, -.75, ..., 0.
State hand_made(int groups) {
  State s;
  s.size = s.active = 10;
  s.groups = groups;
  s.bound.assign(10, 1.0);
  s.alpha.assign(10, 0.0);
  s.diagonal.assign(10, 1.0);
  s.side.assign(10, 0);
  for (Index t = 0; t < 10; ++t) {
    s.original.push_back(9 - t);
    s.y.push_back(t < 5 ? 1 : -1);
    s.v.push_back(t < 5 ? 0.25 * static_cast<double>(t) : -1 + 0.25 * static_cast<double>(t - 5));
  }
  for (Index t = 0; t < 10; ++t) s.set_alpha(t, 0.0);
  s.find_top();
  return s;
}

// Kernel rows of the identity.
class IdentityQ final : public QMatrix {
 public:
  Row row(Index i, Index) override {
    std::fill_n(line_, 10, 0.0f);
    line_[i] = 1.0f;
    return line_;
  }
  bool kept(Index) const override { return true; }
  void prefetch(const Index*, Index, Index) override {}
  Index batch(Index) const override { return 1; }
  double diagonal(Index) const override { return 1.0; }
  void swap(const std::vector<Swap>&) override {}

 private:
  float line_[10];
};

Choice once(const SelectorSpec& spec, const State& s) {
  IdentityQ q;
  return make_selector(spec, s.size)->select(s, q, kTol);
}

void deterministic_rules_take_the_worst_pair() {
  const State s = hand_made(1);
  for (const char* name : {"wss1", "wss2", "wss-wr"}) {
    const Choice pair = once({name}, s);
    CHECK(pair.kind == Choice::Kind::pair);
    CHECK_EQUAL(pair.i, 4);
    CHECK_EQUAL(pair.j, 5);
    CHECK_EQUAL(pair.gap, 2.0);
  }
}

void constant_factor_rules_stay_within_their_factor() {
  const State s = hand_made(1);
  std::set<std::pair<Index, Index>> seen3, seen4;
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    const Choice three = once({"wss3", {{"sigma", 0.7}}, seed}, s), four = once({"wss4", {{"sigma", 0.7}}, seed}, s);
    CHECK(s.v[three.i] - s.v[three.j] >= 0.7 * 2.0);
    seen3.insert({three.i, three.j});
    CHECK_EQUAL(four.i, 4);
    CHECK(s.v[4] - s.v[four.j] >= 0.7 * 2.0);
    seen4.insert({four.i, four.j});
  }
  CHECK_EQUAL(seen3.size(), 6u);  // violations 2, 1.75 (two pairs), 1.5 (three pairs)
  CHECK_EQUAL(seen4.size(), 3u);
}

void dpwss_takes_each_partner_once() {
  const State s = hand_made(1);
  IdentityQ q;
  const auto selector = make_selector({"dpwss", {{"sigma", 0.6}}, 5}, s.size);
  std::set<Index> partners;
  Choice pair = selector->select(s, q, kTol);
  for (; pair.kind == Choice::Kind::pair; pair = selector->select(s, q, kTol)) {
    CHECK_EQUAL(pair.i, 4);
    CHECK(partners.insert(pair.j).second);
  }
  CHECK(pair.kind == Choice::Kind::exhausted);
  CHECK(partners == (std::set<Index>{5, 6, 7, 8}));  // violation at least 1.2
  CHECK_EQUAL(selector->draws(), 4);
}

void wss_wr_takes_each_variable_once() {
  const State s = hand_made(1);
  IdentityQ q;
  const auto selector = make_selector({"wss-wr"}, s.size);
  std::set<Index> variables;
  Choice pair = selector->select(s, q, kTol);
  for (; pair.kind == Choice::Kind::pair; pair = selector->select(s, q, kTol)) {
    CHECK(variables.insert(pair.i).second);
    CHECK(variables.insert(pair.j).second);
  }
  CHECK(pair.kind == Choice::Kind::exhausted);
  CHECK(variables.size() >= 8);
}

void groups_are_never_mixed() {
  State s = hand_made(2);
  for (Index t : {0, 5}) s.set_alpha(t, 0.5);  // so that each group has both sides
  s.find_top();
  for (const Rule* rule : rules())
    for (std::uint64_t seed = 0; seed < 50; ++seed) {
      const Choice pair = once({rule->name, {}, seed}, s);
      CHECK(pair.kind == Choice::Kind::pair);
      CHECK_EQUAL(s.group(pair.i), s.group(pair.j));
      CHECK(s.v[pair.i] > s.v[pair.j]);
    }
}

void nothing_is_selected_at_the_optimum() {
  State s = hand_made(1);
  for (double& v : s.v) v = 0.5;
  s.find_top();
  for (const Rule* rule : rules()) CHECK(once({rule->name, {}, 1}, s).kind == Choice::Kind::stationary);
}

// Whether it is an end, and no error, that a rule has no pair left; and whether it draws.
void rules_are_what_they_say() {
  for (const Rule* rule : rules()) {
    const State s = hand_made(1);
    IdentityQ q;
    const auto selector = make_selector({rule->name, {}, 3}, s.size);
    Choice pair = selector->select(s, q, kTol);
    for (int k = 0; k < 100 && pair.kind == Choice::Kind::pair; ++k) pair = selector->select(s, q, kTol);
    CHECK((pair.kind == Choice::Kind::exhausted) == rule->once_only);
    CHECK((selector->draws() > 0) == rule->random);
  }
}

void rules_are_told_apart_and_begin_with_libsvms() {
  const std::vector<const Rule*> all = rules();
  CHECK(all.size() >= 6);
  CHECK_EQUAL(std::string(all[0]->name), SelectorSpec{}.name);
  std::set<std::string> names;
  std::map<std::string, const Number*> numbers;
  for (std::size_t k = 0; k < all.size(); ++k) {
    CHECK(names.insert(all[k]->name).second);
    CHECK(all[k]->as_libsvm == (k == 0));
    CHECK(k < 2 || all[k - 1]->year <= all[k]->year);
    for (const Number* number : all[k]->numbers) {
      if (!number) continue;
      CHECK(number->low < number->initial && number->initial < number->high);
      CHECK(numbers.emplace(number->name, number).first->second == number);
    }
  }
}

void what_no_rule_reads_is_refused() {
  for (const double sigma : {0.0, 1.0, std::nan("")}) {
    CHECK_THROWS(make_selector({"wss3", {{"sigma", sigma}}}, 10), InvalidInput);
    CHECK(make_selector({"wss1", {{"sigma", sigma}}}, 10) != nullptr);  // which does not read it
  }
  CHECK_THROWS(make_selector({"wss3", {{"sigmoid", 0.5}}}, 10), InvalidInput);
  CHECK_THROWS(make_selector({"wss9"}, 10), InvalidInput);
}

}  // namespace

int main() {
  deterministic_rules_take_the_worst_pair();
  constant_factor_rules_stay_within_their_factor();
  dpwss_takes_each_partner_once();
  wss_wr_takes_each_variable_once();
  groups_are_never_mixed();
  nothing_is_selected_at_the_optimum();
  rules_are_what_they_say();
  rules_are_told_apart_and_begin_with_libsvms();
  what_no_rule_reads_is_refused();
  return check::result();
}
