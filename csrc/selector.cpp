#include "selector.hpp"

#include <limits>
#include <set>
#include <sstream>
#include <tuple>

namespace dpsvm {

namespace {

// Null before any code runs, so that the files' order of loading does not matter.
Registered* first = nullptr;

bool precedes(const Rule& a, const Rule& b) {
  return std::make_tuple(!a.as_libsvm, a.year, std::string(a.name)) <
         std::make_tuple(!b.as_libsvm, b.year, std::string(b.name));
}

std::string listed(const std::set<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

void require_known(const std::map<std::string, double>& numbers) {
  std::set<std::string> known;
  for (const Rule* rule : rules())
    for (const Number* number : rule->numbers)
      if (number) known.insert(number->name);
  for (const auto& [name, value] : numbers)
    if (!known.count(name)) throw InvalidInput("no selector reads '" + name + "' (" + listed(known) + ")");
}

void require_in_range(const Number& number, double value) {
  if (value > number.low && value < number.high) return;
  std::ostringstream text;
  text << number.name << " = " << value << " must be in (" << number.low << ", " << number.high << ")";
  throw InvalidInput(text.str());
}

}  // namespace

Registered::Registered(const Rule& rule) : rule(rule) {
  Registered** place = &first;
  while (*place && precedes((*place)->rule, rule)) place = &(*place)->next;
  next = *place;
  *place = this;
}

std::vector<const Rule*> rules() {
  std::vector<const Rule*> found;
  for (const Registered* at = first; at; at = at->next) found.push_back(&at->rule);
  return found;
}

const Rule& rule_named(const std::string& name) {
  std::set<std::string> names;
  for (const Rule* rule : rules()) {
    if (name == rule->name) return *rule;
    names.insert(rule->name);
  }
  throw InvalidInput("unknown selector '" + name + "' (" + listed(names) + ")");
}

std::unique_ptr<Selector> make_selector(const SelectorSpec& spec, Index size) {
  const Rule& rule = rule_named(spec.name);
  const Setup setup{spec, size};
  require_known(spec.numbers);
  for (const Number* number : rule.numbers)
    if (number) require_in_range(*number, setup[*number]);
  return rule.make(setup);
}

Violation widest_violation(const State& s) {
  Violation widest;
  widest.gap = -std::numeric_limits<double>::infinity();
  for (int g = 0; g < s.groups; ++g) {
    const Extreme top = s.top[g], bottom = s.bottom(g);
    if (top.index < 0 || bottom.index < 0) continue;
    const double gap = top.value - bottom.value;
    if (gap > widest.gap) widest = {g, top, bottom, gap};
  }
  return widest;
}

}  // namespace dpsvm
