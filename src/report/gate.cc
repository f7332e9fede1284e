// Rules on a comparison. A rule that cannot be judged is not kept: a gate that passes in silence is worse than none.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/text.h"
#include "report/comparison.h"

namespace goodput {

Result<Gate> parse_gate(const std::string& text) {
  const auto bad = [&](std::string why) {
    return fail(ErrorCode::kUsage, std::move(why), fmt::format("--gate '{}'", text));
  };
  const size_t sign = text.find_first_of("<>");
  if (sign == text.npos || sign == 0 || sign + 1 >= text.size() || text[sign + 1] != '=')
    return bad("expected FIGURE<=BOUND or FIGURE>=BOUND, such as 'p95_ttft<=+5%', 'goodput>=-3%' or 'failed<=0'");
  Gate gate;
  gate.text = text;
  gate.figure = trim(std::string_view(text).substr(0, sign));
  gate.at_most = text[sign] == '<';
  std::string_view bound = trim(std::string_view(text).substr(sign + 2));
  const bool change = bound.starts_with('+') || bound.starts_with('-');
  double scale = 1;
  if (bound.ends_with('%')) {
    if (!change)
      return bad("a percentage is a change against A: write +5% or -5%");
    gate.of = Gate::Of::kRatio;
    bound.remove_suffix(1);
    scale = 0.01;
  } else {
    gate.of = change ? Gate::Of::kChange : Gate::Of::kValue;
    if (bound.ends_with("ms"))
      bound.remove_suffix(2);
    else if (bound.ends_with("pp"))
      bound.remove_suffix(2), scale = 0.01;
  }
  if (bound.starts_with('+'))
    bound.remove_prefix(1);
  const auto number = parse_double(trim(bound));
  if (!number || std::fabs(*number) > 1e15)
    return bad(fmt::format("expected a number, found '{}'", bound));
  gate.bound = *number * scale;
  return gate;
}

std::vector<GateOutcome> judge_gates(const std::vector<Gate>& gates, const Comparison& comparison) {
  std::vector<GateOutcome> outcomes;
  for (const Gate& gate : gates) {
    const size_t before = outcomes.size();
    for (const ComparedFigure& f : comparison.figures) {
      if (f.name != gate.figure)
        continue;
      GateOutcome o{.gate = gate, .label = f.label};
      if (f.difference) {
        const Difference& d = *f.difference;
        switch (gate.of) {
          case Gate::Of::kRatio:
            o.seen = d.ratio;
            o.interval = d.ratio_interval;
            break;
          case Gate::Of::kChange:
            o.seen = d.change;
            o.interval = d.change_interval;
            break;
          case Gate::Of::kValue:
            o.seen = d.b;
            break;
        }
      } else if (gate.of == Gate::Of::kValue) {
        o.seen = f.value_b;
      }
      if (o.seen)
        o.result =
            (gate.at_most ? *o.seen <= gate.bound : *o.seen >= gate.bound) ? GateResult::kHolds : GateResult::kViolated;
      o.undecided = o.interval && o.interval->low < gate.bound && gate.bound < o.interval->high;
      outcomes.push_back(std::move(o));
    }
    if (outcomes.size() == before)
      outcomes.push_back({.gate = gate, .label = ""});
  }
  return outcomes;
}

}  // namespace goodput
