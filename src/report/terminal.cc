#include "report/terminal.h"

#include <algorithm>

#include <fmt/format.h>

namespace goodput {
namespace {

constexpr size_t kCapacityRows = 12;  // of the table; the choice and the largest batch are always among them

std::string or_dash(const std::optional<double>& value) { return value ? figure(*value) : "-"; }

// "4.62 requests/s (95 % interval 4.31 to 4.93)"
std::string with_interval(const Estimate& e, std::string_view unit) {
  std::string text = fmt::format("{} {}", figure(e.value), unit);
  if (e.low && e.high)
    text += fmt::format(" (95 % interval {} to {})", figure(*e.low), figure(*e.high));
  return text;
}

std::string regret_text(const Rule& r) {
  std::string text = fmt::format("{:+.0f} %", r.regret.value * 100);
  if (r.regret.low && r.regret.high)
    text += fmt::format(" (95 % interval {:+.0f} to {:+.0f} %)", *r.regret.low * 100, *r.regret.high * 100);
  return text;
}

void answer(std::string& out, const MapResult& m, const TextStyle& style) {
  if (!m.chosen) {
    const bool none =
        !m.capacity.empty() && std::ranges::none_of(m.capacity, [](const Capacity& c) { return c.best().has_value(); });
    out += style.strong(none ? fmt::format("No setting keeps {} of every class inside its targets at any rate tried.",
                                           percent(m.floor))
                             : "No choice yet.") +
           "\n";
    return;
  }
  const Choice& c = *m.chosen;
  out += style.strong(fmt::format("Run {}", short_text(c.settings))) + "\n";
  out += fmt::format("  goodput      {}, confirmed on fresh seeds at {} requests/s offered\n",
                     with_interval(c.goodput, "requests/s"), figure(c.offered_rate));
  if (c.capacity_rate)
    out += fmt::format("  capacity     {} requests/s with every class at {} or above: headroom {:+.0f} %\n",
                       figure(*c.capacity_rate), percent(m.floor), c.headroom * 100);
  if (c.undecided)
    out += fmt::format(
        "  undecided    an interval of attainment straddles the floor of {}: a larger --budget settles it\n",
        percent(m.floor));
  out += fmt::format("  set          {}\n", c.flags);
  if (!c.why.empty())
    out += fmt::format("  why          {}\n", c.why);
  for (size_t i = 0; i < c.not_separable_from.size(); ++i)
    out += fmt::format("  {:<12} {}\n", i == 0 ? "no better" : "",
                       short_text(c.not_separable_from[i]) + " (not separable)");
}

void rules(std::string& out, const MapResult& m) {
  const auto line = [&](std::string_view name, const std::optional<Rule>& r) {
    if (!r)
      return;
    if (m.chosen && r->settings == m.chosen->settings) {
      out += fmt::format("  {:<20} the same setting\n", name);
      return;
    }
    out +=
        fmt::format("  {:<20} regret {}: {} with {}{}\n", name, regret_text(*r),
                    with_interval(r->goodput, "requests/s"), short_text(r->settings), r->measured ? "" : ", simulated");
  };
  if (!m.largest_batch && !m.offline_throughput && !m.background)
    return;
  out += "\nWhat other choices cost\n";
  line("largest batch", m.largest_batch);
  line("offline throughput", m.offline_throughput);
  if (m.background && m.background->with && m.background->without)
    out += fmt::format("  {:<20} interactive goodput {} requests/s with it, {} without{}\n", "background work",
                       figure(m.background->with->value), figure(m.background->without->value),
                       m.background->measured ? "" : ", simulated");
}

TextTable capacity_table(const MapResult& m, bool all) {
  TextTable t;
  t.columns = {{"setting", false, 100},
               {"", false, 90},
               {"goodput req/s", true, 80},
               {"predicted req/s", true, 60},
               {"measured req/s", true, 70}};
  const std::vector<ClassSpec>& classes = m.workload.classes;
  for (const ClassSpec& c : classes)
    t.columns.push_back({c.name + " attained", true, 30});
  t.columns.push_back({"TTFT p95 ms", true, 50});
  t.columns.push_back({"gap p95 ms", true, 50});
  t.columns.push_back({"offline tok/s", true, 10});
  const auto on_frontier = [&](const Settings& s) {
    return std::ranges::any_of(m.frontier, [&](const Capacity& c) { return c.settings == s; });
  };
  for (size_t i = 0; i < m.capacity.size(); ++i) {
    const Capacity& c = m.capacity[i];
    const bool chosen = m.chosen && m.chosen->settings == c.settings;
    const bool largest = m.largest_batch && m.largest_batch->settings == c.settings;
    if (!all && i >= kCapacityRows && !chosen && !largest)
      continue;
    const auto& best = c.best();
    const auto of_best = [&](auto member) { return best ? or_dash((*best).*member) : std::string("-"); };
    std::vector<std::string> row = {short_text(c.settings),
                                    chosen                    ? "chosen"
                                    : largest                 ? "largest batch"
                                    : on_frontier(c.settings) ? "frontier"
                                                              : "",
                                    best ? figure(best->goodput_rps) : "-",
                                    c.predicted ? figure(c.predicted->rate) : "-",
                                    c.measured ? figure(c.measured->rate) : "-"};
    for (const ClassSpec& cls : classes) {
      std::string cell = "-";
      if (best)
        for (const auto& [name, value] : best->attainment_by_class)
          if (name == cls.name)
            cell = percent(value);
      row.push_back(std::move(cell));
    }
    row.push_back(of_best(&Operating::interactive_ttft_p95_ms));
    row.push_back(of_best(&Operating::interactive_gap_p95_ms));
    row.push_back(or_dash(c.offline_tokens_per_s));
    t.rows.push_back(std::move(row));
  }
  return t;
}

}  // namespace

std::string study_text(const MapResult& m, const TextStyle& style) {
  if (style.plain)
    return capacity_table(m, true).render(style);
  std::string out;
  answer(out, m, style);
  rules(out, m);
  if (!m.capacity.empty()) {
    out += fmt::format("\nCapacity: the largest rate at which every class keeps {} inside its targets\n",
                       percent(m.floor));
    const TextTable t = capacity_table(m, false);
    out += t.render(style);
    if (t.rows.size() < m.capacity.size())
      out += style.faint(fmt::format("{} more settings in the report", m.capacity.size() - t.rows.size())) + "\n";
  }
  if (const auto& e = m.prediction_error) {
    const auto error = [](const std::optional<double>& v) { return v ? fmt::format("{:+.0f} %", *v * 100) : "-"; };
    const auto line = [&](const RelativeErrors& r) {
      return fmt::format("goodput {}, TTFT p50 {}, TPOT p50 {}", error(r.goodput), error(r.ttft_p50),
                         error(r.tpot_p50));
    };
    out += fmt::format("\nPrediction, largest error: {}\n  at the speed the machine had in each point: {}\n",
                       line(e->as_predicted), line(e->at_speed));
  }
  if (!m.notes.empty())
    out += "\n";
  for (const std::string& note : m.notes)
    out += fmt::format("Note: {}\n", note);
  if (!m.report.empty())
    out += fmt::format("\nReport: {}\n", m.report);
  if (!m.study_file.empty())
    out += fmt::format("Study:  {} (goodput study show {})\n", m.study_file, m.study_file);
  return out;
}

}  // namespace goodput
