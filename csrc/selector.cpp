#include "selector.hpp"

namespace dpsvm {

namespace {

void require(bool ok, const char* name, double value, const char* range) {
  if (!ok) throw InvalidInput(std::string(name) + " = " + std::to_string(value) + " must be " + range);
}

}  // namespace

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

std::unique_ptr<Selector> make_selector(const SelectorSpec& spec, Index size) {
  const std::string& name = spec.name;
  if (name == "wss1") return make_wss1();
  if (name == "wss2") return make_wss2();
  if (name == "wss-wr") return make_wss_wr(size);
  if (name == "wss3" || name == "wss4" || name == "dpwss")
    require(spec.sigma > 0 && spec.sigma < 1, "sigma", spec.sigma, "in (0, 1)");
  if (name == "wss3") return make_wss3(spec.sigma, spec.seed);
  if (name == "wss4") return make_wss4(spec.sigma, spec.seed);
  if (name == "dpwss") {
    require(spec.selection_epsilon > 0 && spec.selection_epsilon <= std::numeric_limits<double>::max(),
            "selection_epsilon", spec.selection_epsilon, "positive and finite");
    return make_dpwss(spec.selection_epsilon, spec.sigma, spec.seed, size);
  }
  throw InvalidInput("unknown selector '" + name + "' (wss1, wss2, wss3, wss4, wss-wr, dpwss)");
}

}  // namespace dpsvm
