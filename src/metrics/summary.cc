// Everything a report says about one point, from its records. Latencies are pooled per class once and read twice: for
// the class and, over all pools, for the whole; sums are whole numbers, so that the order of records cannot show in a
// figure. Pure functions; any thread.
#include "metrics/summary.h"

#include <algorithm>

#include "metrics/deliveries.h"
#include "metrics/order_statistics.h"
#include "metrics/request_metrics.h"
#include "metrics/score.h"

namespace goodput {
namespace {

struct Gap {
  double ns;
  uint32_t tokens;  // 0: unknown
};

// What the ok requests of one class contribute to its tables; milliseconds, but gaps in nanoseconds: there are a
// million.
struct Pool {
  std::vector<double> ttft, ttft_service, ttfa, tpot, e2e, max_gap;
  std::vector<Gap> gaps;
  size_t gap_requests = 0, counted_requests = 0;
  bool single = true;  // every gap delivered one known token: ITL and ICL are the same numbers
  uint64_t stalls = 0, censored = 0;
};

void append(std::vector<double>& values, std::optional<Nanos> time) {
  if (time)
    values.push_back(to_ms(*time));
}

void add_gaps(Pool& pool, const RequestRecord& r, std::optional<Nanos> stall_limit) {
  const StreamFacts facts = inspect(r);
  if (!has_gaps(r, facts))
    return;
  const size_t before = pool.gaps.size();
  int64_t longest = 0;
  uint64_t stalled = 0;
  bool single = facts.counted;
  const int64_t limit = stall_limit ? stall_limit->count() : INT64_MAX;
  const bool forward = for_each_gap(r, facts, [&](int64_t gap, uint32_t tokens) {
    pool.gaps.push_back({static_cast<double>(gap), facts.counted ? tokens : 0});
    longest = std::max(longest, gap);
    stalled += gap > limit;
    single &= tokens == 1;
  });
  if (!forward) {
    pool.gaps.resize(before);
    return;
  }
  ++pool.gap_requests;
  pool.counted_requests += facts.counted;
  pool.single &= single;
  pool.stalls += stalled;
  pool.max_gap.push_back(to_ms(Nanos(longest)));
}

void add_ok(Pool& pool, const RequestRecord& r, std::optional<Nanos> stall_limit) {
  append(pool.ttft, ttft(r));
  append(pool.ttft_service, ttft_service(r));
  append(pool.ttfa, ttfa(r));
  append(pool.e2e, e2e(r));
  if (const auto tpot = tpot_ns(r))
    pool.tpot.push_back(*tpot * 1e-6);
  add_gaps(pool, r, stall_limit);
}

// Percentiles of one request-level quantity over several pools.
Percentiles over(std::span<const Pool> pools, std::vector<double> Pool::* member) {
  size_t n = 0;
  for (const Pool& p : pools)
    n += (p.*member).size();
  return pooled_percentiles(
      [&](auto visit) {
        for (const Pool& p : pools)
          for (const double v : p.*member)
            visit(v, 1.0);
      },
      n);
}

Percentiles in_ms(Percentiles ns) {
  for (auto* value : {&ns.p50, &ns.p95, &ns.p99, &ns.max})
    if (*value)
      **value *= 1e-6;
  return ns;
}

LatencyTable latency_of(std::span<const Pool> pools) {
  LatencyTable t;
  t.ttft = over(pools, &Pool::ttft);
  t.ttft_service = over(pools, &Pool::ttft_service);
  t.ttfa = over(pools, &Pool::ttfa);
  t.tpot = over(pools, &Pool::tpot);
  t.e2e = over(pools, &Pool::e2e);
  t.max_gap = over(pools, &Pool::max_gap);
  size_t gap_requests = 0, counted_requests = 0;
  bool single = true;
  for (const Pool& p : pools) {
    gap_requests += p.gap_requests;
    counted_requests += p.counted_requests;
    single &= p.single;
  }
  t.icl = in_ms(pooled_percentiles(
      [&](auto visit) {
        for (const Pool& p : pools)
          for (const Gap& g : p.gaps)
            visit(g.ns, 1.0);
      },
      gap_requests));
  if (single) {
    t.itl = t.icl;
    return t;
  }
  t.itl = in_ms(pooled_percentiles(
      [&](auto visit) {
        for (const Pool& p : pools)
          for (const Gap& g : p.gaps)
            if (g.tokens > 0)
              visit(g.ns / g.tokens, static_cast<double>(g.tokens));
      },
      counted_requests));
  return t;
}

ClassSummary class_summary(std::string name, const ClassScore& s, std::span<const Pool> pools) {
  ClassSummary c;
  c.name = std::move(name);
  c.scheduled = s.scheduled;
  c.good = s.good;
  c.unmeasurable = s.unmeasurable;
  c.not_applicable = s.not_applicable;
  if (s.scheduled > 0 && s.unmeasurable == 0) {
    const Count count{static_cast<double>(s.good), static_cast<double>(s.scheduled)};
    c.attainment = attainment_estimate({&count, 1});
  }
  for (const Pool& p : pools)
    c.ttft_censored += p.censored;
  c.latency = latency_of(pools);
  return c;
}

// Output tokens of a request that came inside the window. Where tokens per event are unknown they are spread evenly
// over the events; without events they came with the end.
int64_t tokens_in(const RequestRecord& r, Window window) {
  const int64_t n = r.output_tokens ? r.output_tokens->count() : static_cast<int64_t>(r.events.size());
  const auto inside = [&](const TokenEvent& e) { return window.contains(r.scheduled + event_time(e)); };
  if (r.events.empty()) {
    const auto end = r.done ? r.done : r.closed;
    return end && window.contains(*end) ? n : 0;
  }
  if (inside(r.events.front()) && inside(r.events.back()))
    return n;
  int64_t known = 0, events = 0, sum = 0;
  bool counted = true;
  for (const TokenEvent& e : r.events) {
    counted &= e.tokens > 0;
    sum += e.tokens;
    if (!inside(e))
      continue;
    known += e.tokens;
    ++events;
  }
  if (events == 0)
    return 0;
  if (counted && sum == n)
    return known;
  return n * events / static_cast<int64_t>(r.events.size());
}

Throughput throughput_of(std::span<const RequestRecord> records, Window window) {
  int64_t requests = 0, input = 0, output = 0, failed = 0;
  for (const RequestRecord& r : records) {
    // Nothing of it can lie in the window.
    if (r.scheduled >= window.end || (r.closed && *r.closed < window.start))
      continue;
    if (r.outcome != Outcome::kOk) {
      failed += tokens_in(r, window);
      continue;
    }
    requests += r.done && window.contains(*r.done);
    const auto answered = r.first_token ? r.first_token : r.done;
    if (answered && window.contains(*answered))
      input += r.prompt_tokens.value_or(Tokens{0}).count();
    output += tokens_in(r, window);
  }
  const auto rate = [&](int64_t count) { return per_second(static_cast<double>(count), window); };
  return {rate(requests), rate(input), rate(output), rate(input + output), rate(failed)};
}

void describe_length(PointSummary& s, const RequestRecord& r, int64_t& asked, int64_t& got) {
  if (!r.output_tokens || r.asked_output.count() <= 0)
    return;
  ++s.length_checked;
  s.wrong_length += *r.output_tokens != r.asked_output;
  asked += r.asked_output.count();
  got += r.output_tokens->count();
}

// Dispatch, lengths and token counts of the cohort.
void describe_cohort(PointSummary& s, std::span<const RequestRecord> records) {
  std::optional<TimePoint> first, last;
  std::vector<double> delays;
  int64_t asked = 0, got = 0;
  for (const RequestRecord& r : records) {
    if (!s.window.contains(r.scheduled))
      continue;
    ++s.outcomes[static_cast<size_t>(r.outcome)];
    if (r.dispatched) {
      first = std::min(first.value_or(*r.dispatched), *r.dispatched);
      last = std::max(last.value_or(*r.dispatched), *r.dispatched);
    }
    append(delays, dispatch_delay(r));
    if (r.outcome != Outcome::kOk)
      continue;
    describe_length(s, r, asked, got);
    if (r.streamed && !r.events.empty())
      s.first_count_unknown += !first_count_known(r);
    s.first_count_mismatch += first_count_mismatch(r);
  }
  const auto dispatched = static_cast<double>(std::ranges::count_if(
      records, [&](const RequestRecord& r) { return s.window.contains(r.scheduled) && r.dispatched; }));
  if (dispatched >= 2 && *last > *first)
    s.achieved_rate = (dispatched - 1) / to_seconds(*last - *first);
  s.dispatch_delay = percentiles(delays);
  if (s.length_checked > 0) {
    s.asked_output_mean = static_cast<double>(asked) / static_cast<double>(s.length_checked);
    s.output_mean = static_cast<double>(got) / static_cast<double>(s.length_checked);
  }
}

// How late this client read what the kernel had: its own saturation gauge.
void describe_stamps(PointSummary& s, std::span<const RequestRecord> records) {
  uint64_t events = 0, stamped = 0;
  std::vector<double> lags;
  for (const RequestRecord& r : records) {
    if (!s.window.contains(r.scheduled))
      continue;
    bool read_stamped = false;  // one stamp stamps every event of its read
    size_t read_events = 0;
    for (size_t i = 0; i < r.events.size(); ++i) {
      const TokenEvent& e = r.events[i];
      ++read_events;
      read_stamped |= e.kernel.has_value();
      if (e.kernel && e.user >= *e.kernel)
        lags.push_back(to_ms(e.user - *e.kernel));
      if (i + 1 < r.events.size() && r.events[i + 1].user == e.user)
        continue;
      events += read_events;
      if (read_stamped)
        stamped += read_events;
      read_stamped = false;
      read_events = 0;
    }
  }
  if (events > 0)
    s.kernel_stamp_share = static_cast<double>(stamped) / static_cast<double>(events);
  s.read_lag = percentiles(lags);
}

std::vector<Pool> fill_pools(std::span<const RequestRecord> records, std::span<const ClassRule> classes,
                             Window window) {
  std::vector<Pool> pools(classes.size() + 1);
  const auto at = [&](const RequestRecord& r) { return std::min<size_t>(r.cls, classes.size()); };
  std::vector<size_t> events(pools.size());
  for (const RequestRecord& r : records)
    if (window.contains(r.scheduled))
      events[at(r)] += r.events.size();
  for (size_t c = 0; c < pools.size(); ++c)
    pools[c].gaps.reserve(events[c]);
  for (const RequestRecord& r : records) {
    if (!window.contains(r.scheduled))
      continue;
    const size_t c = at(r);
    pools[c].censored += censored_ttft(r).has_value();
    if (r.outcome == Outcome::kOk)
      add_ok(pools[c], r, c < classes.size() ? classes[c].stall_limit : std::nullopt);
  }
  return pools;
}

}  // namespace

PointSummary summarize(std::span<const RequestRecord> records, std::span<const ClassRule> classes, Window window,
                       bool strict) {
  const std::vector<ClassScore> scores = score(records, classes, window, strict);
  const std::vector<Pool> pools = fill_pools(records, classes, window);
  const ClassScore all = total(scores);
  PointSummary s;
  s.window = window;
  s.requests = all.scheduled;
  s.offered_rate = per_second(static_cast<double>(all.scheduled), window);
  s.overall = class_summary("overall", all, pools);
  for (size_t c = 0; c < classes.size(); ++c) {
    s.by_class.push_back(class_summary(classes[c].name, scores[c], {&pools[c], 1}));
    if (!classes[c].stall_limit)
      continue;
    s.by_class.back().stalls = pools[c].stalls;
    s.overall.stalls = s.overall.stalls.value_or(0) + pools[c].stalls;
  }
  s.goodput_rps = per_second(static_cast<double>(all.good), window);
  s.token_goodput = per_second(static_cast<double>(all.good_tokens), window);
  s.interactive_goodput_rps = interactive_goodput(scores, classes, window);
  s.throughput = throughput_of(records, window);
  describe_cohort(s, records);
  describe_stamps(s, records);
  s.regime = regime_of(records, window);
  return s;
}

}  // namespace goodput
