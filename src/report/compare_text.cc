#include "report/compare_text.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "store/json_writer.h"

namespace goodput {
namespace {

std::string signed_percent(double share) { return fmt::format("{:+.1f} %", 100 * share); }

std::string shown(double value, const std::string& unit) {
  return unit == "share" ? fmt::format("{:.1f} %", 100 * value) : figure(value);
}

std::string change_of(const ComparedFigure& f) {
  const Difference& d = *f.difference;
  if (f.unit == "share")
    return fmt::format("{:+.1f} pp", 100 * d.change);
  return d.ratio ? signed_percent(*d.ratio) : fmt::format("{:+.4g}", d.change);
}

std::string interval_of(const ComparedFigure& f) {
  const Difference& d = *f.difference;
  if (f.unit == "share" && d.change_interval)
    return fmt::format("{:+.1f} to {:+.1f} pp", 100 * d.change_interval->low, 100 * d.change_interval->high);
  if (d.ratio_interval)
    return fmt::format("{} to {}", signed_percent(d.ratio_interval->low), signed_percent(d.ratio_interval->high));
  if (d.change_interval)
    return fmt::format("{:+.4g} to {:+.4g}", d.change_interval->low, d.change_interval->high);
  return "no interval";
}

std::string verdict_of(const ComparedFigure& f) {
  const auto differs = f.difference->differs();
  if (!differs)
    return "";
  if (!*differs)
    return "not separable";
  const bool less = f.difference->change < 0;
  if (f.unit == "ms")
    return less ? "B faster" : "B slower";
  return less ? "B lower" : "B higher";
}

std::string gate_line(const GateOutcome& o, bool strict) {
  std::string text = o.passes(strict)                       ? "holds"
                     : o.result == GateResult::kCannotJudge ? "CANNOT BE JUDGED"
                                                            : "VIOLATED";
  std::string seen;
  if (o.seen)
    seen = o.gate.of == Gate::Of::kRatio ? signed_percent(*o.seen) : fmt::format("{:.4g}", *o.seen);
  if (o.undecided)
    text += ", undecided: the interval lies on both sides of the bound";
  if (o.result == GateResult::kCannotJudge)
    text += ": no such figure under one definition on both sides";
  return fmt::format("gate {}{}: {}{}\n", o.gate.text, o.label.empty() ? "" : " at " + o.label, text,
                     seen.empty() ? "" : fmt::format(" (seen {})", seen));
}

void write(JsonWriter& w, std::string_view key, const std::optional<Interval>& i) {
  w.key(key);
  if (!i) {
    w.null();
    return;
  }
  w.begin_array().value(i->low).value(i->high).end_array();
}

void write_figure(JsonWriter& w, const ComparedFigure& f) {
  w.begin_object().field("label", f.label).field("figure", f.name).field("unit", f.unit);
  w.field("definition_a", f.definition_a)
      .field("definition_b", f.definition_b)
      .field("compared", f.difference.has_value());
  w.field("runs_a", f.runs_a).field("runs_b", f.runs_b);
  if (f.difference) {
    const Difference& d = *f.difference;
    w.field("a", d.a).field("b", d.b).field("change", d.change);
    write(w, "change_interval", d.change_interval);
    w.field("ratio", d.ratio);
    write(w, "ratio_interval", d.ratio_interval);
    w.field("basis", to_string(d.basis)).field("differs", d.differs());
  } else {
    w.field("a", f.value_a).field("b", f.value_b);
  }
  w.end_object();
}

void write_gate(JsonWriter& w, const GateOutcome& o, bool strict) {
  w.begin_object().field("rule", o.gate.text).field("label", o.label).field("passes", o.passes(strict));
  w.field("judged", o.result != GateResult::kCannotJudge).field("undecided", o.undecided).field("seen", o.seen);
  write(w, "interval", o.interval);
  w.end_object();
}

}  // namespace

std::string render_compare(const CompareReport& r, const TextStyle& style) {
  std::string out;
  for (size_t i = 0; i < r.files_a.size(); ++i)
    out += fmt::format("A  {}: {}\n", r.files_a[i], r.kinds_a[i]);
  for (size_t i = 0; i < r.files_b.size(); ++i)
    out += fmt::format("B  {}: {}\n", r.files_b[i], r.kinds_b[i]);
  TextTable t;
  t.columns = {{"figure", false, 100},  {"load", false, 70},         {"A", true, 95}, {"B", true, 95},
               {"change", true, 94},    {"95 % interval", true, 93}, {"", false, 92}, {"runs", true, 40},
               {"measures", false, 60}, {"interval from", false, 30}};
  std::string differing;
  for (const ComparedFigure& f : r.comparison.figures) {
    const std::string name = f.unit.empty() || f.unit == "share" ? f.name : fmt::format("{} {}", f.name, f.unit);
    if (!f.difference) {
      differing += fmt::format("not compared: {}: A {} ({}), B {} ({}): the definitions differ\n", name,
                               shown(*f.value_a, f.unit), f.definition_a, shown(*f.value_b, f.unit), f.definition_b);
      continue;
    }
    const Difference& d = *f.difference;
    t.rows.push_back({name, f.label, shown(d.a, f.unit), shown(d.b, f.unit), change_of(f), interval_of(f),
                      verdict_of(f), fmt::format("{}/{}", f.runs_a, f.runs_b), f.definition_a,
                      std::string(to_string(d.basis))});
  }
  out += t.render(style) + differing;
  for (const std::string& note : r.comparison.notes)
    out += "note: " + note + "\n";
  for (const GateOutcome& o : r.gates)
    out += gate_line(o, r.strict);
  return out;
}

std::string compare_json(const CompareReport& r) {
  JsonWriter w;
  w.begin_object().field("schema", "goodput.compare/1");
  const auto files = [&](std::string_view key, const auto& names, const auto& kinds) {
    w.key(key).begin_array();
    for (size_t i = 0; i < names.size(); ++i)
      w.begin_object().field("file", names[i]).field("kind", kinds[i]).end_object();
    w.end_array();
  };
  files("a", r.files_a, r.kinds_a);
  files("b", r.files_b, r.kinds_b);
  w.key("figures").begin_array();
  for (const ComparedFigure& f : r.comparison.figures)
    write_figure(w, f);
  w.end_array().key("notes").begin_array();
  for (const std::string& note : r.comparison.notes)
    w.value(note);
  w.end_array().key("gates").begin_array();
  for (const GateOutcome& o : r.gates)
    write_gate(w, o, r.strict);
  const bool pass = std::ranges::all_of(r.gates, [&](const GateOutcome& o) { return o.passes(r.strict); });
  return w.end_array().field("gates_pass", pass).end_object().take();
}

}  // namespace goodput
