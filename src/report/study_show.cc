#include "report/study_show.h"

#include <algorithm>

#include <fmt/format.h>
#include <simdjson.h>

#include "store/json_writer.h"

namespace goodput {
namespace {

std::string or_dash(const std::optional<double>& value) { return value ? figure(*value) : "-"; }

// The choice's one-line answer out of the stored document; empty when there is none.
std::string chosen_line(const std::string& document) {
  simdjson::dom::parser parser;
  simdjson::dom::element root;
  std::string_view label, flags;
  double goodput = 0;
  if (parser.parse(document).get(root) || root.at_pointer("/chosen/label").get(label) ||
      root.at_pointer("/chosen/flags").get(flags) || root.at_pointer("/chosen/goodput/value").get(goodput))
    return {};
  return fmt::format("Chosen: {}, {} requests/s inside their targets: {}\n", label, figure(goodput), flags);
}

std::string state(const Point& p) {
  if (p.verdict.valid())
    return std::string(to_string(p.summary.regime));
  std::string text = "INVALID";
  for (const std::string& reason : p.verdict.reasons)
    text += " " + reason;
  return text;
}

}  // namespace

Result<StudyShown> read_study(const std::string& file) {
  const auto study = TRY(Study::open(file, false));
  StudyShown shown{file, TRY(study->points()), {}, TRY(study->meta("result"))};
  for (const PointRow& row : shown.points) {
    auto point = point_from_json(row.summary_json);
    if (!point)
      return fail(point.error().code, fmt::format("point \"{}\": {}", row.key, describe(point.error())), file);
    shown.parsed.push_back(std::move(*point));
  }
  return shown;
}

std::string render_study(const StudyShown& shown, const TextStyle& style) {
  TextTable t;
  t.columns = {{"setting", false, 100},     {"phase", false, 90},        {"executor", false, 20},
               {"offered req/s", true, 85}, {"requests", true, 40},      {"goodput req/s", true, 80},
               {"attained", true, 75},      {"95 % interval", true, 35}, {"TTFT p50 ms", true, 60},
               {"TTFT p95 ms", true, 55},   {"TPOT p50 ms", true, 50},   {"output tok/s", true, 30},
               {"state", false, 70}};
  for (const Point& p : shown.parsed) {
    const PointSummary& s = p.summary;
    const auto& a = s.overall.attainment;
    t.rows.push_back({short_text(p.settings), p.phase, p.executor, figure(p.rate), fmt::format("{}", s.requests),
                      figure(s.goodput_rps), a ? percent(a->value) : "-",
                      a && a->low && a->high ? fmt::format("{:.0f}-{:.0f} %", *a->low * 100, *a->high * 100) : "-",
                      or_dash(s.overall.latency.ttft.p50), or_dash(s.overall.latency.ttft.p95),
                      or_dash(s.overall.latency.tpot.p50), figure(s.throughput.output_tokens_per_s), state(p)});
  }
  if (style.plain)
    return t.render(style);
  std::string out = t.render(style);
  out += fmt::format("\n{} point{} in {}\n", t.rows.size(), t.rows.size() == 1 ? "" : "s", shown.file);
  if (shown.result)
    out += chosen_line(*shown.result);
  else
    out += "The study is not finished: goodput map --resume goes on with it.\n";
  return out;
}

std::string study_json(const StudyShown& shown) {
  if (shown.result)
    return *shown.result;
  JsonWriter w;
  w.begin_object().field("schema", "goodput.study/1").field("study_file", shown.file).key("chosen").null();
  w.key("points").begin_array();
  for (const Point& p : shown.parsed)
    w.raw(to_json(p));
  return w.end_array().end_object().take();
}

}  // namespace goodput
