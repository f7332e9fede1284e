#include "report/score_text.h"

#include <algorithm>

#include <fmt/format.h>

#include "store/json_writer.h"

namespace goodput {
namespace {

constexpr double kMlperfSeconds = 600;  // MLPerf's least duration of a run

std::string or_dash(const std::optional<double>& v) { return v ? figure(*v) : "-"; }

std::string interval(const std::optional<Estimate>& e) {
  return e && e->low && e->high ? fmt::format("{:.1f} to {:.1f} %", 100 * *e->low, 100 * *e->high) : "-";
}

std::string share(const ClassSummary& c) {
  if (c.attainment)
    return fmt::format("{:.1f} %", 100 * c.attainment->value);
  return c.unmeasurable > 0 ? "not measurable" : "-";
}

std::vector<std::string> cells(const ScoredRun& r, const ClassSummary& c, const TargetSet* targets, bool overall) {
  return {r.label.empty() ? "the run" : r.label,
          r.phase,
          c.name,
          targets ? to_text(*targets) : "",
          fmt::format("{}", c.scheduled),
          fmt::format("{}", c.good),
          share(c),
          interval(c.attainment),
          overall ? figure(r.summary.goodput_rps) : "",
          overall ? figure(r.summary.token_goodput) : "",
          or_dash(c.latency.ttft.p95),
          or_dash(c.latency.tpot.p95),
          overall ? std::string(r.valid ? to_string(r.summary.regime) : "INVALID") : ""};
}

std::string limit_line(std::string_view name, const MlperfLimit& l) {
  std::string text =
      fmt::format("  {} <= {:g} ms: {}; {} of {} over, p99 {} ms", name, l.limit_ms,
                  l.holds ? "holds" : "does not hold", l.over, l.queries, l.p99_ms ? figure(*l.p99_ms) : "-");
  const uint64_t within = l.queries - l.over;
  text += l.holds ? fmt::format(" ({} within, {} needed)", within, l.needed)
                  : fmt::format(" ({} within, {} needed: {} more queries within the limit)", within, l.needed,
                                l.needed - within);
  if (l.undefined > 0)
    text += fmt::format("; {} answers of one token left out", l.undefined);
  return text + "\n";
}

std::string mlperf_text(const ScoredRun& r) {
  std::string out =
      fmt::format("MLPerf's own rule{}: {} (each limit's 99th percentile, 99 % confidence by early stopping)\n",
                  r.label.empty() ? "" : " for " + r.label, r.mlperf->holds ? "holds" : "does not hold");
  out += limit_line("TTFT", r.mlperf->ttft);
  if (r.mlperf->tpot)
    out += limit_line("TPOT", *r.mlperf->tpot);
  if (r.length_s < kMlperfSeconds)
    out +=
        fmt::format("  MLPerf also asks for a run of {:g} s; this one took {} s\n", kMlperfSeconds, figure(r.length_s));
  return out;
}

void write(JsonWriter& w, std::string_view key, const std::optional<Estimate>& e) {
  w.key(key);
  if (!e) {
    w.null();
    return;
  }
  w.begin_object().field("value", e->value).field("low", e->low).field("high", e->high).end_object();
}

void write(JsonWriter& w, std::string_view key, const MlperfLimit& l) {
  w.key(key).begin_object().field("limit_ms", l.limit_ms).field("queries", l.queries).field("over", l.over);
  w.field("needed_within", l.needed).field("holds", l.holds).field("p99_ms", l.p99_ms).field("undefined", l.undefined);
  w.end_object();
}

void write_run(JsonWriter& w, const ScoredRun& r) {
  w.begin_object().field("label", r.label).field("phase", r.phase).field("valid", r.valid);
  w.field("window_s", r.summary.window.length_s()).field("requests", r.summary.requests);
  w.field("good", r.summary.overall.good).field("not_applicable", r.summary.overall.not_applicable);
  w.field("unmeasurable", r.summary.overall.unmeasurable);
  write(w, "attainment", r.summary.overall.attainment);
  w.field("goodput_rps", r.summary.goodput_rps).field("token_goodput", r.summary.token_goodput);
  w.field("regime", to_string(r.summary.regime)).key("by_class").begin_object();
  for (size_t c = 0; c < r.summary.by_class.size(); ++c) {
    const ClassSummary& s = r.summary.by_class[c];
    w.key(s.name).begin_object().field("targets", to_text(r.rules[c].targets)).field("requests", s.scheduled);
    w.field("good", s.good);
    write(w, "attainment", s.attainment);
    w.end_object();
  }
  w.end_object().key("mlperf");
  if (!r.mlperf) {
    w.null();
  } else {
    w.begin_object().field("holds", r.mlperf->holds);
    write(w, "ttft", r.mlperf->ttft);
    if (r.mlperf->tpot)
      write(w, "tpot", *r.mlperf->tpot);
    w.end_object();
  }
  w.end_object();
}

}  // namespace

std::vector<ScoredGroup> score_groups(const ScoreReport& report) {
  std::vector<ScoredGroup> groups;
  std::vector<std::vector<Count>> counts;
  std::vector<std::vector<double>> goodputs;
  std::vector<bool> measurable;
  for (const ScoredRun& r : report.runs) {
    const auto same =
        std::ranges::find_if(groups, [&](const ScoredGroup& g) { return g.label == r.label && g.phase == r.phase; });
    const auto at = static_cast<size_t>(same - groups.begin());
    if (same == groups.end()) {
      groups.push_back({r.label, r.phase, 0, std::nullopt, std::nullopt});
      counts.emplace_back();
      goodputs.emplace_back();
      measurable.push_back(true);
    }
    const ClassSummary& all = r.summary.overall;
    ++groups[at].replicates;
    counts[at].push_back({static_cast<double>(all.good), static_cast<double>(all.scheduled)});
    goodputs[at].push_back(r.summary.goodput_rps);
    measurable[at] = measurable[at] && all.unmeasurable == 0 && all.scheduled > 0;
  }
  for (size_t g = 0; g < groups.size(); ++g) {
    if (measurable[g])
      groups[g].attainment = attainment_estimate(counts[g]);
    Estimate mean;
    for (const double v : goodputs[g])
      mean.value += v / static_cast<double>(goodputs[g].size());
    if (const auto bounds = replicate_interval(goodputs[g], FigureScale::kPlain)) {
      mean.low = std::max(bounds->low, 0.0);
      mean.high = bounds->high;
    }
    groups[g].goodput_rps = mean;
  }
  return groups;
}

std::string render_score(const ScoreReport& report, const TextStyle& style) {
  TextTable t;
  t.columns = {{"run", false, 100},       {"phase", false, 40},        {"class", false, 90},
               {"targets ms", false, 60}, {"requests", true, 70},      {"good", true, 65},
               {"attained", true, 95},    {"95 % interval", true, 80}, {"goodput req/s", true, 92},
               {"good tok/s", true, 50},  {"TTFT p95 ms", true, 45},   {"TPOT p95 ms", true, 44},
               {"state", false, 55}};
  uint64_t not_applicable = 0;
  for (const ScoredRun& r : report.runs) {
    const bool one = r.rules.size() == 1;
    t.rows.push_back(cells(r, r.summary.overall, one ? &r.rules[0].targets : nullptr, true));
    for (size_t c = 0; !one && c < r.rules.size(); ++c)
      t.rows.push_back(cells(r, r.summary.by_class[c], &r.rules[c].targets, false));
    not_applicable += r.summary.overall.not_applicable;
  }
  std::string out = t.render(style);
  if (not_applicable > 0)
    out += fmt::format("{} targets had nothing to divide (TPOT of one token) and {}\n", not_applicable,
                       report.strict ? "count as missed (--strict-targets)" : "were left out");
  for (const ScoredGroup& g : score_groups(report)) {
    if (g.replicates < 2)
      continue;
    out += fmt::format(
        "{} replicates{}: attained {} ({}), goodput {} req/s ({})\n", g.replicates,
        g.label.empty() ? "" : " of " + g.label,
        g.attainment ? fmt::format("{:.1f} %", 100 * g.attainment->value) : "not measurable", interval(g.attainment),
        figure(g.goodput_rps->value),
        g.goodput_rps->low ? fmt::format("{} to {}", figure(*g.goodput_rps->low), figure(*g.goodput_rps->high)) : "-");
  }
  if (report.runs.size() == 1 && report.runs[0].summary.overall.attainment)
    out += "One run: its interval takes requests for independent and is a lower bound of the uncertainty.\n";
  for (const ScoredRun& r : report.runs)
    if (r.mlperf)
      out += mlperf_text(r);
  return out;
}

std::string score_json(const ScoreReport& report) {
  JsonWriter w;
  w.begin_object().field("schema", "goodput.score/1").field("source", report.source);
  w.key("preset");
  report.preset ? w.value(report.preset->name) : w.null();
  w.field("strict_targets", report.strict).key("runs").begin_array();
  for (const ScoredRun& r : report.runs)
    write_run(w, r);
  w.end_array().key("groups").begin_array();
  for (const ScoredGroup& g : score_groups(report)) {
    w.begin_object().field("label", g.label).field("phase", g.phase).field("replicates", g.replicates);
    write(w, "attainment", g.attainment);
    write(w, "goodput_rps", g.goodput_rps);
    w.end_object();
  }
  return w.end_array().end_object().take();
}

}  // namespace goodput
