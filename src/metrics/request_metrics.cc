// Formulas of one request, each a line of docs/method.md. Pure functions; any thread.
#include "metrics/request_metrics.h"

#include <algorithm>

#include "metrics/deliveries.h"
#include "metrics/stats.h"

namespace goodput {
namespace {

std::optional<Nanos> elapsed(std::optional<TimePoint> from, std::optional<TimePoint> to) {
  if (!from || !to || *to < *from)
    return std::nullopt;
  return *to - *from;
}

}  // namespace

Nanos event_time(const TokenEvent& e) { return e.kernel.value_or(e.user); }

std::optional<Nanos> ttft(const RequestRecord& r) {
  if (!r.streamed)
    return std::nullopt;
  return elapsed(r.scheduled, r.first_token);
}

std::optional<Nanos> ttft_service(const RequestRecord& r) {
  if (!r.streamed)
    return std::nullopt;
  return elapsed(r.dispatched, r.first_token);
}

std::optional<Nanos> ttfa(const RequestRecord& r) {
  if (!r.streamed)
    return std::nullopt;
  return elapsed(r.scheduled, r.first_answer);
}

std::optional<Nanos> e2e(const RequestRecord& r) {
  if (r.outcome == Outcome::kUnfinished || r.outcome == Outcome::kNotSent)
    return std::nullopt;
  if (r.outcome == Outcome::kOk)
    return elapsed(r.scheduled, r.done);
  return elapsed(r.scheduled, r.closed ? r.closed : r.done);
}

std::optional<double> tpot_ns(const RequestRecord& r) {
  if (!r.streamed || r.buffered)
    return std::nullopt;
  const auto span = elapsed(r.first_token, r.done);
  const auto divisor = tpot_divisor(r);
  if (!span || !divisor || *divisor == 0)
    return std::nullopt;
  return static_cast<double>(span->count()) / static_cast<double>(*divisor);
}

std::optional<Nanos> dispatch_delay(const RequestRecord& r) { return elapsed(r.scheduled, r.dispatched); }

std::optional<Nanos> censored_ttft(const RequestRecord& r) {
  if (r.outcome != Outcome::kCancelled && r.outcome != Outcome::kTimeout)
    return std::nullopt;
  if (r.first_token)
    return std::nullopt;
  return elapsed(r.scheduled, r.closed);
}

bool first_count_known(const RequestRecord& r) {
  return !r.events.empty() && !first_count_mismatch(r) && (r.events.front().tokens > 0 || inspect(r).ones);
}

bool first_count_mismatch(const RequestRecord& r) {
  const auto n = visible_tokens(r);
  return n && !r.events.empty() && r.events.front().tokens > *n;
}

std::vector<WeightedGap> itl_gaps(const RequestRecord& r) {
  const StreamFacts facts = inspect(r);
  std::vector<WeightedGap> gaps;
  if (!has_gaps(r, facts) || !facts.counted)
    return gaps;
  const bool forward = for_each_gap(
      r, facts, [&](int64_t gap, uint32_t tokens) { gaps.push_back({static_cast<double>(gap) / tokens, tokens}); });
  if (!forward)
    gaps.clear();
  return gaps;
}

std::vector<double> icl_gaps_ns(const RequestRecord& r) {
  const StreamFacts facts = inspect(r);
  std::vector<double> gaps;
  if (!has_gaps(r, facts))
    return gaps;
  const bool forward = for_each_gap(r, facts, [&](int64_t gap, uint32_t) { gaps.push_back(static_cast<double>(gap)); });
  if (!forward)
    gaps.clear();
  return gaps;
}

std::optional<double> itl_mean_ns(const RequestRecord& r) {
  double time = 0, tokens = 0;
  for (const WeightedGap& g : itl_gaps(r))
    time += g.per_token_ns * g.tokens, tokens += g.tokens;
  if (tokens == 0)
    return std::nullopt;
  return time / tokens;
}

std::optional<double> itl_p95_ns(const RequestRecord& r) {
  std::vector<Weighted> values;
  for (const WeightedGap& g : itl_gaps(r))
    values.push_back({g.per_token_ns, static_cast<double>(g.tokens)});
  return weighted_percentile(values, 0.95);
}

std::optional<double> icl_p95_ns(const RequestRecord& r) {
  std::vector<double> gaps = icl_gaps_ns(r);
  std::ranges::sort(gaps);
  return percentile(gaps, 0.95);
}

std::optional<Nanos> max_gap(const RequestRecord& r) {
  const auto gaps = icl_gaps_ns(r);
  if (gaps.empty())
    return std::nullopt;
  return Nanos(static_cast<int64_t>(*std::ranges::max_element(gaps)));
}

std::optional<Nanos> jitter(const RequestRecord& r) {
  std::vector<double> gaps = icl_gaps_ns(r);
  if (gaps.empty())
    return std::nullopt;
  std::ranges::sort(gaps);
  return Nanos(static_cast<int64_t>(*percentile(gaps, 0.99) - *percentile(gaps, 0.5)));
}

std::optional<int> stalls(const RequestRecord& r, Nanos limit) {
  const auto gaps = icl_gaps_ns(r);
  if (gaps.empty())
    return std::nullopt;
  return static_cast<int>(
      std::ranges::count_if(gaps, [&](double gap) { return gap > static_cast<double>(limit.count()); }));
}

bool looks_buffered(const RequestRecord& r) {
  const auto n = visible_tokens(r);
  if (!r.streamed || !n || *n <= 8)
    return false;
  const int64_t reads = inspect(r).deliveries;
  return reads > 0 && reads <= std::max<int64_t>(2, *n / 32);
}

bool confirms_buffering(std::span<const RequestRecord> probe) {
  size_t long_enough = 0, buffered = 0;
  for (const RequestRecord& r : probe) {
    if (r.outcome != Outcome::kOk || !r.streamed || visible_tokens(r).value_or(0) <= 8)
      continue;
    ++long_enough;
    buffered += looks_buffered(r);
  }
  return 2 * buffered > long_enough;
}

void mark_buffered(std::span<RequestRecord> records) {
  for (RequestRecord& r : records)
    if (looks_buffered(r))
      r.buffered = true;
}

ServerIntervals server_intervals(const RequestRecord& r) {
  if (!r.server)
    return {};
  const ServerTimes& s = *r.server;
  return {.tokenization = elapsed(s.arrived, s.queued),
          .queue = elapsed(s.queued, s.scheduled),
          .prefill = elapsed(s.scheduled, s.first_token),
          .decode = elapsed(s.first_token, s.last_token),
          .inference = elapsed(s.scheduled, s.last_token)};
}

}  // namespace goodput
