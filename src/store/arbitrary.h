// For tests of this room: arbitrary but reproducible records, steps and points, extremes included.
#pragma once

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "base/limits.h"
#include "base/random.h"
#include "metrics/record.h"
#include "store/point.h"

namespace goodput::arbitrary {

// Mostly small, sometimes an extreme of the type.
template <class T>
T number(Random& random) {
  switch (random.uniform_int(0, 9)) {
    case 0:
      return std::numeric_limits<T>::max();
    case 1:
      return std::numeric_limits<T>::min();
    case 2:
      return static_cast<T>(random.next());
    default:
      return static_cast<T>(random.uniform_int(0, 100));
  }
}

inline bool coin(Random& random) { return random.uniform_int(0, 1) == 1; }
template <class T>
std::optional<T> maybe(Random& random, T value) {
  return coin(random) ? std::optional<T>(value) : std::nullopt;
}
// Times reach as far as what may be stored.
inline Nanos nanos(Random& random) {
  return Nanos(std::clamp(number<int64_t>(random), -limits::kMaxStoredTime.count(), limits::kMaxStoredTime.count()));
}
inline TimePoint time_point(Random& random) { return TimePoint(nanos(random)); }
template <class E>
E enumerator(Random& random, E last) {
  return static_cast<E>(random.uniform_int(0, static_cast<int64_t>(last)));
}

inline RequestRecord record(Random& random, uint64_t index) {
  RequestRecord r;
  r.index = index;
  r.cls = number<uint16_t>(random);
  r.outcome = enumerator(random, Outcome::kNotSent);
  r.error = enumerator(random, ErrorKind::kLimit);
  r.finish = enumerator(random, FinishReason::kError);
  r.token_source = enumerator(random, TokenSource::kChunks);
  r.http_status = number<int>(random);
  r.attempts = number<int>(random);
  r.scheduled = time_point(random);
  for (auto* t :
       {&r.dispatched, &r.connected, &r.sent, &r.first_chunk, &r.first_token, &r.first_answer, &r.done, &r.closed})
    if (coin(random))
      *t = time_point(random);
  for (auto* n : {&r.prompt_tokens, &r.cached_tokens, &r.output_tokens, &r.hidden_tokens})
    *n = maybe(random, Tokens(number<int32_t>(random)));
  r.asked_output = Tokens(number<int32_t>(random));
  r.streamed = coin(random);
  r.buffered = coin(random);
  r.chunks = number<uint32_t>(random);
  for (int64_t n = random.uniform_int(0, 20); n > 0; --n) {
    TokenEvent& e = r.events.emplace_back();
    e.user = nanos(random);
    if (coin(random))
      e.kernel = nanos(random);
    e.tokens = number<uint16_t>(random);
    e.channel = enumerator(random, Channel::kRefusal);
    e.coalesced = coin(random);
  }
  if (coin(random)) {
    ServerTimes& s = r.server.emplace();
    for (auto* t : {&s.arrived, &s.queued, &s.scheduled, &s.first_token, &s.last_token})
      if (coin(random))
        *t = time_point(random);
    s.preempted_in_prefill = number<int>(random);
    s.preempted_in_decode = number<int>(random);
  }
  return r;
}

inline std::vector<RequestRecord> records(Random& random, int64_t most) {
  std::vector<RequestRecord> all;
  for (int64_t n = random.uniform_int(0, most); n > 0; --n)
    all.push_back(record(random, all.size()));
  return all;
}

inline StepRecord step(Random& random) {
  StepRecord s;
  s.start = time_point(random);
  for (Nanos* n : {&s.duration, &s.decode, &s.sampling, &s.tokenization, &s.host})
    *n = nanos(random);
  s.shape.prefill = Tokens(number<int32_t>(random));
  s.shape.kv_read = KvPairs(number<int64_t>(random));
  s.shape.kv_tiled = KvPairs(number<int64_t>(random));
  s.shape.kv_scanned = KvPairs(number<int64_t>(random));
  s.shape.kv_dense = KvPairs(number<int64_t>(random));
  s.shape.swapped = Tokens(number<int32_t>(random));
  for (int* n : {&s.shape.decodes, &s.shape.passes, &s.running, &s.waiting, &s.preempted})
    *n = number<int>(random);
  s.used = Blocks(number<int32_t>(random));
  s.retained = Blocks(number<int32_t>(random));
  return s;
}

inline std::vector<StepRecord> steps(Random& random, int64_t most) {
  std::vector<StepRecord> all;
  for (int64_t n = random.uniform_int(0, most); n > 0; --n)
    all.push_back(step(random));
  return all;
}

// A finite double of any magnitude.
inline double real(Random& random) {
  switch (random.uniform_int(0, 5)) {
    case 0:
      return 0;
    case 1:
      return std::numeric_limits<double>::max();
    case 2:
      return std::numeric_limits<double>::denorm_min();
    case 3:
      return -random.exponential(1e-9);
    default:
      return random.exponential(100);
  }
}
// Text that must be escaped.
inline std::string text(Random& random) {
  static constexpr std::string_view kPieces[] = {"a", "\"", "\\", "\n", "\x01", "é", "日", "</script>", " "};
  std::string out;
  for (int64_t n = random.uniform_int(0, 12); n > 0; --n)
    out += kPieces[static_cast<size_t>(random.uniform_int(0, std::ssize(kPieces) - 1))];
  return out;
}
inline Percentiles percentiles(Random& random) {
  return {maybe(random, real(random)), maybe(random, real(random)), maybe(random, real(random)),
          maybe(random, real(random)), number<uint32_t>(random)};
}
inline MeanP95Max gauge(Random& random) {
  return {maybe(random, real(random)), maybe(random, real(random)), maybe(random, real(random))};
}
inline ClassSummary class_summary(Random& random, std::string name) {
  ClassSummary c;
  c.name = std::move(name);
  c.scheduled = number<uint64_t>(random);
  c.good = number<uint64_t>(random);
  c.unmeasurable = number<uint64_t>(random);
  c.not_applicable = number<uint64_t>(random);
  if (coin(random))
    c.attainment = Estimate{real(random), maybe(random, real(random)), maybe(random, real(random))};
  LatencyTable& l = c.latency;
  for (Percentiles* p : {&l.ttft, &l.ttft_service, &l.tpot, &l.itl, &l.icl, &l.e2e})
    *p = percentiles(random);
  return c;
}

inline Point point(Random& random) {
  Point p;
  for (std::string* s : {&p.phase, &p.key, &p.executor, &p.schedule_hash})
    *s = text(random);
  p.settings.max_num_seqs = static_cast<int>(random.uniform_int(1, 256));
  p.settings.max_num_batched_tokens = Tokens(random.uniform_int(256, 4096));
  p.settings.enable_prefix_caching = coin(random);
  p.settings.scheduling_policy = enumerator(random, SchedulingPolicy::kPriority);
  p.settings.batching = enumerator(random, Batching::kStatic);
  p.rate = real(random);
  p.seed = number<uint64_t>(random);
  p.primed = coin(random);
  PointSummary& s = p.summary;
  s.window = {time_point(random), time_point(random)};
  s.offered_rate = real(random);
  s.achieved_rate = maybe(random, real(random));
  s.overall = class_summary(random, "overall");
  s.requests = s.overall.scheduled;
  s.regime = enumerator(random, Regime::kUnknown);
  for (int64_t n = random.uniform_int(0, 3); n > 0; --n)
    s.by_class.push_back(class_summary(random, "class " + std::to_string(n)));
  for (double* d : {&s.goodput_rps, &s.token_goodput, &s.interactive_goodput_rps, &s.kernel_stamp_share,
                    &s.throughput.requests_per_s, &s.throughput.input_tokens_per_s, &s.throughput.output_tokens_per_s,
                    &s.throughput.total_tokens_per_s})
    *d = real(random);
  for (uint64_t& n : s.outcomes)
    n = number<uint64_t>(random);
  s.dispatch_delay = percentiles(random);
  s.read_lag = percentiles(random);
  s.wrong_length = number<uint64_t>(random);
  Observed& o = p.observed;
  for (MeanP95Max* g : {&o.running, &o.batched_tokens, &o.queue_depth, &o.kv_usage})
    *g = gauge(random);
  for (auto* n : {&o.preemptions, &o.prefix_query_tokens, &o.prefix_hit_tokens, &o.rejected, &o.peak_rss_bytes})
    *n = maybe(random, number<uint64_t>(random));
  o.prefix_hit_rate = maybe(random, real(random));
  for (int64_t n = random.uniform_int(0, 3); n > 0; --n)
    p.verdict.reasons.push_back(text(random));
  if (coin(random))
    p.audit =
        ClientAudit{real(random), maybe(random, real(random)), maybe(random, real(random)), coin(random), text(random),
                    text(random)};
  return p;
}

}  // namespace goodput::arbitrary
