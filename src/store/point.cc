#include "store/point.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/text.h"
#include "store/json_writer.h"
#include "store/point_fields.h"

namespace goodput {
namespace {

void write(JsonWriter& w, std::string_view key, const Percentiles& p) {
  w.key(key).begin_object();
  w.field("n", p.n).field("p50", p.p50).field("p95", p.p95).field("p99", p.p99).field("max", p.max);
  w.end_object();
}

void write(JsonWriter& w, std::string_view key, const MeanP95Max& m) {
  w.key(key).begin_object().field("mean", m.mean).field("p95", m.p95).field("max", m.max).end_object();
}

void write(JsonWriter& w, std::string_view key, const std::optional<Estimate>& e) {
  w.key(key);
  if (!e) {
    w.null();
    return;
  }
  w.begin_object().field("value", e->value).field("low", e->low).field("high", e->high).end_object();
}

void write(JsonWriter& w, const LatencyTable& latency) {
  for (const auto& row : point_fields::kLatency)
    write(w, row.name, latency.*row.member);
}

void write_counts(JsonWriter& w, const ClassSummary& c) {
  w.field("good", c.good).field("unmeasurable", c.unmeasurable).field("not_applicable", c.not_applicable);
}

void write_attainment(JsonWriter& w, const PointSummary& s) {
  w.key("attainment").begin_object();
  write(w, "overall", s.overall.attainment);
  w.key("by_class").begin_object();
  for (const ClassSummary& c : s.by_class)
    write(w, c.name, c.attainment);
  w.end_object().end_object();
}

void write_by_class(JsonWriter& w, const PointSummary& s) {
  w.key("by_class").begin_object();
  for (const ClassSummary& c : s.by_class) {
    w.key(c.name).begin_object();
    w.field("requests", c.scheduled);
    write_counts(w, c);
    write(w, c.latency);
    w.end_object();
  }
  w.end_object();
}

void write_throughput(JsonWriter& w, const Throughput& t) {
  w.key("throughput").begin_object();
  for (const auto& row : point_fields::kThroughput)
    w.field(row.name, t.*row.member);
  w.end_object();
}

void write_observed(JsonWriter& w, const Observed& o) {
  w.key("observed").begin_object();
  for (const auto& row : point_fields::kGauges)
    write(w, row.name, o.*row.member);
  for (const auto& row : point_fields::kObservedCounts)
    w.field(row.name, o.*row.member);
  w.field("prefix_hit_rate", o.prefix_hit_rate).end_object();
}

void write_audit(JsonWriter& w, const std::optional<ClientAudit>& a) {
  w.key("audit");
  if (!a) {
    w.null();
    return;
  }
  w.begin_object().field("loop_busy_share", a->loop_busy_share).field("wait_share", a->wait_share);
  w.field("server_wait_share", a->server_wait_share).field("clock_stepped", a->clock_stepped);
  w.field("server_before", a->server_before).field("server_after", a->server_after).end_object();
}

void write_verdict(JsonWriter& w, const Verdict& verdict) {
  w.key("verdict").begin_object().field("valid", verdict.valid()).key("reasons").begin_array();
  for (const std::string& reason : verdict.reasons)
    w.value(reason);
  w.end_array().end_object();
}

// A setting is text in the table of settings; in JSON, numbers and booleans are such.
void write_setting(JsonWriter& w, std::string_view name, const std::string& text) {
  w.key(name);
  if (text == "true" || text == "false") {
    w.value(text == "true");
  } else if (const auto number = parse_int(text)) {
    w.value(*number);
  } else {
    w.value(text);
  }
}

}  // namespace

std::string to_json(const Settings& settings) {
  JsonWriter w;
  w.begin_object();
  for (const SettingRow& row : setting_rows())
    write_setting(w, row.name, setting_text(settings, row.name));
  return w.end_object().take();
}

std::string to_json(const Point& p) {
  const PointSummary& s = p.summary;
  JsonWriter w;
  w.begin_object();
  w.field("phase", p.phase).field("key", p.key).field("executor", p.executor);
  w.key("settings").raw(to_json(p.settings));
  w.field("rate", p.rate).field("offered_rate", s.offered_rate).field("achieved_rate", s.achieved_rate);
  w.field("seed", fmt::format("{}", p.seed)).field("schedule_hash", p.schedule_hash).field("primed", p.primed);
  w.key("window").begin_object();
  w.field("start_ns", s.window.start.since_zero().count()).field("end_ns", s.window.end.since_zero().count());
  w.field("seconds", to_seconds(s.window.end - s.window.start)).end_object();
  w.field("requests", s.requests);
  write_counts(w, s.overall);
  w.field("regime", to_string(s.regime));
  write_verdict(w, p.verdict);
  write_attainment(w, s);
  w.field("goodput_rps", s.goodput_rps).field("token_goodput", s.token_goodput);
  w.field("interactive_goodput_rps", s.interactive_goodput_rps);
  write(w, s.overall.latency);
  write_by_class(w, s);
  write_throughput(w, s.throughput);
  write_observed(w, p.observed);
  w.key("outcomes").begin_object();
  for (int i = 0; i < kOutcomes; ++i)
    w.field(to_string(static_cast<Outcome>(i)), s.outcomes[static_cast<size_t>(i)]);
  w.end_object();
  w.field("wrong_length", s.wrong_length).field("kernel_stamp_share", s.kernel_stamp_share);
  write(w, "dispatch_delay_ms", s.dispatch_delay);
  write(w, "read_lag_ms", s.read_lag);
  write_audit(w, p.audit);
  return w.end_object().take();
}

std::string short_text(const Settings& s) {
  if (s.batching == Batching::kStatic)
    return fmt::format("max_num_seqs {}, static", s.max_num_seqs);
  return fmt::format("max_num_seqs {}, {} tokens, {}", s.max_num_seqs, s.max_num_batched_tokens.count(),
                     to_string(s.scheduling_policy));
}

}  // namespace goodput
