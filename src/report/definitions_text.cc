#include "report/definitions_text.h"

#include <array>

#include <fmt/format.h>

#include "store/json_writer.h"

namespace goodput {
namespace {

struct Metric {
  std::string_view name, title;
};
constexpr std::array kMetrics = {Metric{"ttft", "Time to first token"}, Metric{"tpot", "Time per output token"},
                                 Metric{"itl", "Gaps between tokens"}, Metric{"e2el", "End-to-end latency"}};

std::string or_dash(const std::optional<double>& v) { return v ? figure(*v) : "-"; }

std::string figures_of(const DefinitionsReport& report, const Metric& metric, const TextStyle& style) {
  TextTable t;
  t.columns = {{"tool", false, 100}, {"its name", false, 80}, {"n", true, 50},     {"mean ms", true, 95},
               {"p50 ms", true, 90}, {"p95 ms", true, 85},    {"p99 ms", true, 70}};
  std::string notes;
  for (const ToolView& view : report.views)
    for (const ToolFigure& f : view.figures) {
      if (f.row->metric != metric.name)
        continue;
      t.rows.push_back({std::string(to_string(view.tool)), std::string(f.row->key), fmt::format("{}", f.values.size()),
                        or_dash(f.mean), or_dash(f.p50), or_dash(f.p95), or_dash(f.p99)});
      notes += fmt::format("  {}, {}: {}\n", to_string(view.tool), f.row->key, f.row->says);
    }
  return style.strong(metric.title) + "\n" + t.render(style) + notes + "\n";
}

std::string whole_run(const DefinitionsReport& report, const TextStyle& style) {
  TextTable t;
  t.columns = {{"tool", false, 100},        {"output tokens", true, 90}, {"divides by s", true, 60},
               {"goodput req/s", true, 95}, {"good share", true, 80},    {"percentiles", false, 50}};
  std::string notes;
  for (const ToolView& v : report.views) {
    t.rows.push_back({std::string(to_string(v.tool)), v.output_tokens ? fmt::format("{}", *v.output_tokens) : "-",
                      figure(v.duration_s), or_dash(v.goodput_rps),
                      v.good_share ? fmt::format("{:.1f} %", 100 * *v.good_share) : "-",
                      std::string(to_string(percentile_rule(v.tool)))});
    notes += fmt::format("  {}: tokens: {}; goodput: {}\n", to_string(v.tool), v.tokens_say, v.goodput_says);
  }
  const std::string targets = report.targets.empty() ? "no targets given" : to_text(report.targets);
  return style.strong(fmt::format("Counts and goodput [{}]", targets)) + "\n" + t.render(style) + notes;
}

}  // namespace

std::string render_definitions(const DefinitionsReport& report, const TextStyle& style) {
  std::string out;
  for (const Metric& metric : kMetrics)
    out += figures_of(report, metric, style);
  out += whole_run(report, style);
  out +=
      "Every row is computed from the same stored stamps: what each tool's own client would have added is not in it.\n"
      "Chunks without text after the first one (a closing finish_reason) have no stored time and are in no row.\n";
  return out;
}

std::string definitions_json(const DefinitionsReport& report) {
  JsonWriter w;
  w.begin_object().field("schema", "goodput.definitions/1").field("source", report.source).field("label", report.label);
  w.field("targets", to_text(report.targets)).key("tools").begin_object();
  for (const ToolView& v : report.views) {
    w.key(short_name(v.tool)).begin_object().field("percentiles", to_string(percentile_rule(v.tool)));
    w.field("output_tokens", v.output_tokens).field("output_tokens_from", v.tokens_say);
    w.field("duration_s", v.duration_s).field("goodput_rps", v.goodput_rps).field("good_share", v.good_share);
    w.field("goodput_says", v.goodput_says).key("figures").begin_array();
    for (const ToolFigure& f : v.figures) {
      w.begin_object().field("metric", f.row->metric).field("key", f.row->key).field("definition", f.row->tag);
      w.field("says", f.row->says).field("n", f.values.size()).field("mean_ms", f.mean);
      w.field("p50_ms", f.p50).field("p95_ms", f.p95).field("p99_ms", f.p99).end_object();
    }
    w.end_array().end_object();
  }
  return w.end_object().end_object().take();
}

}  // namespace goodput
