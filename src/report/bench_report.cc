// The counting behind bench's tables. Pure functions of the records.
#include "report/bench_report.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <fmt/format.h>

#include "base/text.h"
#include "metrics/request_metrics.h"
#include "metrics/targets.h"

namespace goodput {
namespace {

constexpr std::array<BenchMetricRow, kBenchMetrics> kMetricRows = {
    {{BenchMetric::kTtft, "ttft", "TTFT", "Time to First Token"},
     {BenchMetric::kTpot, "tpot", "TPOT", "Time per Output Token (excl. 1st token)"},
     {BenchMetric::kItl, "itl", "ITL", "Inter-token Latency"},
     {BenchMetric::kE2el, "e2el", "E2EL", "End-to-end Latency"},
     {BenchMetric::kClientQueueTime, "client_queue_time", "Client Queue Time", "Client Queue Time"},
     {BenchMetric::kE2elWithQueue, "e2el_including_client_queue", "E2EL incl. client queue",
      "End-to-end Latency incl. client queue"}}};

int64_t most_at_once(const std::vector<RequestRecord>& records) {
  std::vector<std::pair<TimePoint, int>> edges;
  for (const RequestRecord& r : records) {
    if (!r.dispatched || !r.closed)
      continue;
    edges.emplace_back(*r.dispatched, 1);
    edges.emplace_back(*r.closed, -1);
  }
  std::sort(edges.begin(), edges.end());
  int64_t now = 0, most = 0;
  for (const auto& [time, change] : edges)
    most = std::max(most, now += change);
  return most;
}

// vLLM's peaks: seconds counted from the first send of a request that succeeded.
void add_peaks(const std::vector<RequestRecord>& records, BenchTotals& t) {
  std::optional<TimePoint> first, last;
  for (const RequestRecord& r : records) {
    if (r.outcome != Outcome::kOk || !r.dispatched || !r.done)
      continue;
    first = std::min(first.value_or(*r.dispatched), *r.dispatched);
    last = std::max(last.value_or(*r.done), *r.done);
  }
  if (!first || *last < *first)
    return;
  const auto second = [&](TimePoint at) { return static_cast<size_t>(to_seconds(std::max(at, *first) - *first)); };
  std::vector<int64_t> tokens(second(*last) + 1), open(tokens.size());
  for (const RequestRecord& r : records) {
    if (r.outcome != Outcome::kOk || !r.dispatched || !r.done)
      continue;
    for (const TokenEvent& e : r.events)
      ++tokens[std::min(second(r.scheduled + event_time(e)), tokens.size() - 1)];
    for (size_t s = second(*r.dispatched); s <= second(*r.done) && s < open.size(); ++s)
      ++open[s];
  }
  t.peak_concurrent = *std::max_element(open.begin(), open.end());
  if (const int64_t most = *std::max_element(tokens.begin(), tokens.end()); most > 0)
    t.peak_tokens_per_s = static_cast<double>(most);
}

void add_latencies(const RequestRecord& r, BenchTotals& t) {
  const auto add = [&](BenchMetric m, const std::optional<double>& ms) {
    if (ms)
      t.values[static_cast<size_t>(m)].push_back(*ms);
  };
  const auto in_ms = [](const std::optional<Nanos>& v) { return v ? std::optional(to_ms(*v)) : std::nullopt; };
  add(BenchMetric::kTtft, in_ms(ttft_service(r)));
  add(BenchMetric::kTpot, bench_tpot_ms(r));
  for (const double gap : icl_gaps_ns(r))
    add(BenchMetric::kItl, gap * 1e-6);
  add(BenchMetric::kE2el, bench_e2el_ms(r));
  add(BenchMetric::kClientQueueTime, in_ms(dispatch_delay(r)));
  add(BenchMetric::kE2elWithQueue, in_ms(e2e(r)));
}

// vLLM's --goodput: TTFT and E2EL from the send, TPOT 0 for a single token; a value at the limit is good. Targets that
// vLLM does not have keep our meaning.
bool good_as_vllm(const RequestRecord& r, const TargetSet& targets) {
  const auto keeps = [&](TargetKey key, const std::optional<double>& ms) {
    return !targets[key] || (ms && *ms <= to_ms(*targets[key]));
  };
  const auto first = ttft_service(r);
  const bool single = r.output_tokens && r.output_tokens->count() <= 1;
  TargetSet rest = targets;
  rest[TargetKey::kTtft] = rest[TargetKey::kTpot] = rest[TargetKey::kE2el] = std::nullopt;
  return keeps(TargetKey::kTtft, first ? std::optional(to_ms(*first)) : std::nullopt) &&
         keeps(TargetKey::kTpot, single ? std::optional(0.0) : bench_tpot_ms(r)) &&
         keeps(TargetKey::kE2el, bench_e2el_ms(r)) && judge(r, rest).goodness == Goodness::kGood;
}

}  // namespace

std::span<const BenchMetricRow> bench_metric_rows() { return kMetricRows; }

Result<std::vector<BenchMetric>> parse_bench_metrics(std::string_view text) {
  std::vector<BenchMetric> metrics;
  std::vector<std::string_view> keys;
  for (const BenchMetricRow& row : kMetricRows)
    keys.push_back(row.key);
  for (const std::string_view item : split(text, ',')) {
    const auto row = std::ranges::find(kMetricRows, trim(item), &BenchMetricRow::key);
    if (row == kMetricRows.end())
      return fail(ErrorCode::kUsage, fmt::format("'{}' is none of {}", trim(item), fmt::join(keys, ", ")));
    metrics.push_back(row->metric);
  }
  return metrics;
}

Result<std::vector<double>> parse_percents(std::string_view text) {
  std::vector<double> percents;
  for (const std::string_view item : split(text, ',')) {
    const double p = TRY(parse_double(trim(item)));
    if (!(p > 0 && p <= 100))
      return fail(ErrorCode::kUsage, fmt::format("expected percentiles above 0 and up to 100, found {}", trim(item)));
    percents.push_back(p);
  }
  return percents;
}

bool BenchReport::has_targets() const {
  return std::ranges::any_of(rules, [](const ClassRule& c) { return !c.targets.empty(); });
}

std::optional<double> BenchTotals::per_second(double n) const {
  return duration_s > 0 ? std::optional(n / duration_s) : std::nullopt;
}

BenchTotals bench_totals(const BenchReport& report) {
  BenchTotals t;
  std::optional<TimePoint> first, last;
  for (const RequestRecord& r : report.load.records) {
    if (!r.dispatched)
      continue;
    first = std::min(first.value_or(*r.dispatched), *r.dispatched);
    if (r.closed)
      last = std::max(last.value_or(*r.closed), *r.closed);
    if (r.outcome != Outcome::kOk) {
      ++t.failed;
      continue;
    }
    ++t.completed;
    const int asked = r.index < report.asked_prompt.size() ? report.asked_prompt[r.index] : 0;
    t.input_tokens += r.prompt_tokens ? r.prompt_tokens->count() : asked;
    t.output_tokens += r.output_tokens.value_or(Tokens(0)).count();
    t.chunks += r.chunks;
    t.chunked_requests += r.chunks > 0;
    if (r.cls < report.rules.size())
      t.good += good_as_vllm(r, report.rules[r.cls].targets);
    add_latencies(r, t);
  }
  if (first && last)
    t.duration_s = to_seconds(*last - *first);
  t.most_in_flight = most_at_once(report.load.records);
  add_peaks(report.load.records, t);
  for (auto& list : t.values)
    std::sort(list.begin(), list.end());
  return t;
}

std::optional<double> mean_of(std::span<const double> values) {
  if (values.empty())
    return std::nullopt;
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

std::optional<double> deviation_of(std::span<const double> values) {
  const auto mean = mean_of(values);
  if (!mean)
    return std::nullopt;
  double sum = 0;
  for (const double v : values)
    sum += (v - *mean) * (v - *mean);
  return std::sqrt(sum / static_cast<double>(values.size()));
}

std::optional<double> linear_percentile(std::span<const double> sorted, double percent) {
  if (sorted.empty())
    return std::nullopt;
  const double at = percent / 100 * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<size_t>(at);
  const size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (at - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

std::string percent_word(double percent) { return fmt::format("{}", percent); }

std::optional<double> bench_tpot_ms(const RequestRecord& r) {
  if (!r.streamed || r.buffered || !r.done || !r.first_token || !r.output_tokens || r.output_tokens->count() < 2 ||
      *r.done < *r.first_token)
    return std::nullopt;
  return to_ms(*r.done - *r.first_token) / static_cast<double>(r.output_tokens->count() - 1);
}

std::optional<double> bench_e2el_ms(const RequestRecord& r) {
  if (!r.done || !r.dispatched || *r.done < *r.dispatched)
    return std::nullopt;
  return to_ms(*r.done - *r.dispatched);
}

FloorVerdict floor_verdict(const PointSummary& summary, double floor) {
  FloorVerdict all = FloorVerdict::kPass;
  for (const ClassSummary& c : summary.by_class) {
    if (c.scheduled == 0)
      continue;
    if (c.attainment && c.attainment->high && *c.attainment->high < floor)
      return FloorVerdict::kFail;
    if (!c.attainment || !c.attainment->low || *c.attainment->low < floor)
      all = FloorVerdict::kUndecided;
  }
  return summary.requests > 0 ? all : FloorVerdict::kUndecided;
}

std::string_view to_string(FloorVerdict v) {
  return v == FloorVerdict::kPass ? "pass" : v == FloorVerdict::kFail ? "fail" : "undecided";
}

}  // namespace goodput
