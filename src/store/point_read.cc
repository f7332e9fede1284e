// Reads a point back from its JSON (point.cc writes it). Each reader names the path of what is missing or of another
// type.
#include <charconv>
#include <limits>

#include <fmt/format.h>
#include <simdjson.h>

#include "base/limits.h"
#include "store/point.h"
#include "store/point_fields.h"

namespace goodput {
namespace {

namespace dom = simdjson::dom;

// An element with the path that leads to it, for messages.
struct Node {
  dom::element element;
  std::string path;

  tl::unexpected<Error> wrong(std::string_view expected) const {
    return fail(ErrorCode::kUsage, fmt::format("`{}` of a point: expected {}", path, expected));
  }
};

Result<Node> child(const Node& parent, std::string_view key) {
  std::string path = parent.path.empty() ? std::string(key) : fmt::format("{}.{}", parent.path, key);
  dom::object object;
  if (parent.element.get(object))
    return parent.wrong("an object");
  dom::element found;
  if (object.at_key(key).get(found))
    return fail(ErrorCode::kUsage, fmt::format("`{}` of a point is missing", path));
  return Node{found, std::move(path)};
}

Result<void> read(const Node& n, double& out) {
  if (n.element.is_null()) {  // what was not finite
    out = std::numeric_limits<double>::quiet_NaN();
    return {};
  }
  if (n.element.get(out))
    return n.wrong("a number");
  return {};
}
Result<void> read(const Node& n, uint64_t& out) {
  if (n.element.get(out))
    return n.wrong("a whole number, 0 or above");
  return {};
}
Result<void> read(const Node& n, bool& out) {
  if (n.element.get(out))
    return n.wrong("true or false");
  return {};
}
Result<void> read(const Node& n, std::string& out) {
  std::string_view text;
  if (n.element.get(text))
    return n.wrong("text");
  out = text;
  return {};
}
Result<void> read(const Node& n, TimePoint& out) {
  int64_t nanos = 0;
  if (n.element.get(nanos))
    return n.wrong("whole nanoseconds");
  out = TimePoint(Nanos(nanos));
  return {};
}
template <class T>
Result<void> read(const Node& n, std::optional<T>& out) {
  if (n.element.is_null()) {
    out.reset();
    return {};
  }
  return read(n, out.emplace());
}

template <class T>
Result<void> field(const Node& parent, std::string_view key, T& out) {
  return read(TRY(child(parent, key)), out);
}

Result<void> read(const Node& n, Percentiles& out) {
  uint64_t count = 0;
  TRY(field(n, "n", count));
  out.n = count;
  TRY(field(n, "p50", out.p50));
  TRY(field(n, "p95", out.p95));
  TRY(field(n, "p99", out.p99));
  return field(n, "max", out.max);
}

Result<void> read(const Node& n, MeanP95Max& out) {
  TRY(field(n, "mean", out.mean));
  TRY(field(n, "p95", out.p95));
  return field(n, "max", out.max);
}

Result<void> read(const Node& n, Estimate& out) {
  TRY(field(n, "value", out.value));
  TRY(field(n, "low", out.low));
  return field(n, "high", out.high);
}

Result<void> read(const Node& n, LatencyTable& out) {
  for (const auto& row : point_fields::kLatency)
    TRY(field(n, row.name, out.*row.member));
  return {};
}

Result<void> read_counts(const Node& n, ClassSummary& out) {
  TRY(field(n, "requests", out.scheduled));
  TRY(field(n, "good", out.good));
  TRY(field(n, "unmeasurable", out.unmeasurable));
  TRY(field(n, "not_applicable", out.not_applicable));
  return read(n, out.latency);
}

Result<void> read_classes(const Node& root, PointSummary& out) {
  const Node attainment = TRY(child(root, "attainment"));
  TRY(field(attainment, "overall", out.overall.attainment));
  const Node attainment_by_class = TRY(child(attainment, "by_class"));
  const Node by_class = TRY(child(root, "by_class"));
  dom::object classes;
  if (by_class.element.get(classes))
    return by_class.wrong("an object");
  for (const auto [key, value] : classes) {
    ClassSummary& c = out.by_class.emplace_back();
    c.name = key;
    TRY(read_counts({value, fmt::format("by_class.{}", key)}, c));
    TRY(field(attainment_by_class, key, c.attainment));
  }
  return {};
}

Result<void> read(const Node& n, Settings& out) {
  for (const SettingRow& row : setting_rows()) {
    const Node value = TRY(child(n, row.name));
    std::string_view text;
    const std::string spelled = value.element.get(text) ? simdjson::minify(value.element) : std::string(text);
    if (auto set = set_setting(out, row.name, spelled); !set)
      return fail(ErrorCode::kUsage, set.error().message, fmt::format("`{}` of a point", value.path));
  }
  return {};
}

Result<void> read(const Node& n, Regime& out) {
  std::string text;
  TRY(read(n, text));
  for (const Regime r : {Regime::kSteady, Regime::kSaturated, Regime::kUnknown})
    if (text == to_string(r)) {
      out = r;
      return {};
    }
  return n.wrong("steady, saturated or unknown");
}

Result<void> read(const Node& n, Verdict& out) {
  const Node reasons = TRY(child(n, "reasons"));
  dom::array array;
  if (reasons.element.get(array))
    return reasons.wrong("a list");
  for (const dom::element reason : array)
    TRY(read({reason, "verdict.reasons[]"}, out.reasons.emplace_back()));
  return {};
}

Result<void> read(const Node& n, Observed& out) {
  for (const auto& row : point_fields::kGauges)
    TRY(field(n, row.name, out.*row.member));
  for (const auto& row : point_fields::kObservedCounts)
    TRY(field(n, row.name, out.*row.member));
  return field(n, "prefix_hit_rate", out.prefix_hit_rate);
}

Result<void> read(const Node& n, Throughput& out) {
  for (const auto& row : point_fields::kThroughput)
    TRY(field(n, row.name, out.*row.member));
  return {};
}

Result<void> read(const Node& n, ClientAudit& out) {
  TRY(field(n, "loop_busy_share", out.loop_busy_share));
  TRY(field(n, "wait_share", out.wait_share));
  TRY(field(n, "server_wait_share", out.server_wait_share));
  TRY(field(n, "clock_stepped", out.clock_stepped));
  TRY(field(n, "server_before", out.server_before));
  return field(n, "server_after", out.server_after);
}

Result<void> read(const Node& root, PointSummary& s) {
  const Node window = TRY(child(root, "window"));
  TRY(field(window, "start_ns", s.window.start));
  TRY(field(window, "end_ns", s.window.end));
  TRY(field(root, "offered_rate", s.offered_rate));
  TRY(field(root, "achieved_rate", s.achieved_rate));
  TRY(field(root, "requests", s.requests));
  TRY(field(root, "regime", s.regime));
  s.overall.name = "overall";
  TRY(read_counts(root, s.overall));
  TRY(read_classes(root, s));
  TRY(field(root, "goodput_rps", s.goodput_rps));
  TRY(field(root, "token_goodput", s.token_goodput));
  TRY(field(root, "interactive_goodput_rps", s.interactive_goodput_rps));
  TRY(field(root, "throughput", s.throughput));
  const Node outcomes = TRY(child(root, "outcomes"));
  for (int i = 0; i < kOutcomes; ++i)
    TRY(field(outcomes, to_string(static_cast<Outcome>(i)), s.outcomes[static_cast<size_t>(i)]));
  TRY(field(root, "wrong_length", s.wrong_length));
  TRY(field(root, "kernel_stamp_share", s.kernel_stamp_share));
  TRY(field(root, "dispatch_delay_ms", s.dispatch_delay));
  return field(root, "read_lag_ms", s.read_lag);
}

Result<void> read(const Node& root, Point& p) {
  TRY(field(root, "phase", p.phase));
  TRY(field(root, "key", p.key));
  TRY(field(root, "executor", p.executor));
  TRY(field(root, "settings", p.settings));
  TRY(field(root, "rate", p.rate));
  TRY(field(root, "schedule_hash", p.schedule_hash));
  TRY(field(root, "primed", p.primed));
  const Node seed = TRY(child(root, "seed"));
  std::string digits;
  TRY(read(seed, digits));
  if (std::from_chars(digits.data(), digits.data() + digits.size(), p.seed).ptr != digits.data() + digits.size())
    return seed.wrong("digits");
  TRY(read(root, p.summary));
  TRY(field(root, "observed", p.observed));
  TRY(field(root, "verdict", p.verdict));
  return field(root, "audit", p.audit);
}

}  // namespace

Result<Point> point_from_json(std::string_view json) {
  dom::parser parser;
  dom::element element;
  if (const auto error = parser.allocate(json.size() + 1, limits::kMaxJsonDepth))
    return fail(ErrorCode::kFailed, simdjson::error_message(error));
  if (const auto error = parser.parse(json.data(), json.size()).get(element))
    return fail(ErrorCode::kUsage, fmt::format("a point's JSON does not parse: {}", simdjson::error_message(error)));
  Point p;
  TRY(read(Node{element, ""}, p));
  return p;
}

}  // namespace goodput
