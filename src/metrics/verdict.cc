// Whether a measured point may be used to recommend, and every reason against it. A reason is a name that scripts can
// match; the evidence beside it is for people. Pure functions; any thread.
#include <algorithm>
#include <cmath>
#include <unordered_set>

#include <fmt/format.h>

#include "metrics/deliveries.h"
#include "metrics/summary.h"

namespace goodput {
namespace {

constexpr double kMaxLoopBusy = 0.80;     // share of time
constexpr double kMaxReadLag = 0.05;      // of the ITL target, at p99, where user stamps are used
constexpr double kMaxWait = 0.02;         // of the window, runnable but not running
constexpr Nanos kLate = milliseconds(5);  // a dispatch later than this, or than ...
constexpr double kLateOfTtft = 0.05;      // ... this share of the TTFT target, is late
constexpr double kMaxLateShare = 0.01;
constexpr double kMaxLateCount = 2;
constexpr double kHitMargin = 0.01;       // of prompt tokens
constexpr double kMinRightLength = 0.95;  // of outputs
constexpr Nanos kStampTolerance =
    milliseconds(1);  // the two clocks of a read may disagree by the slewing of one second

class Findings {
 public:
  template <class... Args>
  void add(std::string reason, fmt::format_string<Args...> evidence, Args&&... args) {
    verdict_.reasons.push_back(std::move(reason));
    verdict_.evidence.push_back(fmt::format(evidence, std::forward<Args>(args)...));
  }
  Verdict take() { return std::move(verdict_); }

 private:
  Verdict verdict_;
};

// The tightest target on the time between tokens.
std::optional<Nanos> tightest_itl(std::span<const ClassRule> classes) {
  std::optional<Nanos> tightest;
  for (const ClassRule& c : classes)
    for (const TargetKey key : {TargetKey::kItl, TargetKey::kIcl})
      if (const auto limit = c.targets[key])
        tightest = std::min(tightest.value_or(*limit), *limit);
  return tightest;
}

void check_client(Findings& f, const PointSummary& s, const ClientAudit& audit, std::span<const ClassRule> classes) {
  if (audit.loop_busy_share > kMaxLoopBusy) {
    f.add("client_bound", "the load generator's loop was busy {:.0f} % of the time, more than {:.0f} %",
          100 * audit.loop_busy_share, 100 * kMaxLoopBusy);
    return;
  }
  const auto itl = tightest_itl(classes);
  if (s.kernel_stamp_share >= 1 || !itl || !s.read_lag.p99)
    return;
  if (*s.read_lag.p99 > kMaxReadLag * to_ms(*itl))
    f.add("client_bound",
          "user-space stamps are in use and come {:.3g} ms late at p99, more than {:.0f} % of the ITL "
          "target of {:.3g} ms",
          *s.read_lag.p99, 100 * kMaxReadLag, to_ms(*itl));
}

void check_contention(Findings& f, const ClientAudit& audit) {
  const double client = audit.wait_share.value_or(0), server = audit.server_wait_share.value_or(0);
  if (client > kMaxWait || server > kMaxWait)
    f.add("contended",
          "waiting for a processor took {:.1f} % of the window in the client and {:.1f} % in the server, "
          "more than {:.0f} %",
          100 * client, 100 * server, 100 * kMaxWait);
}

void check_delivery(Findings& f, std::span<const RequestRecord> records, Window window,
                    std::span<const ClassRule> classes) {
  uint64_t scheduled = 0, late = 0;
  for (const RequestRecord& r : records) {
    if (!window.contains(r.scheduled))
      continue;
    ++scheduled;
    Nanos limit = kLate;
    if (r.cls < classes.size())
      if (const auto target = classes[r.cls].targets[TargetKey::kTtft])
        limit = std::max(limit, from_seconds(kLateOfTtft * to_seconds(*target)));
    late += !r.dispatched || *r.dispatched - r.scheduled > limit;
  }
  if (static_cast<double>(late) > std::max(kMaxLateCount, kMaxLateShare * static_cast<double>(scheduled)))
    f.add("load_not_delivered", "{} of {} requests were dispatched late or never", late, scheduled);
}

// The server's own counters where it has them, else what usage says of each request.
std::optional<double> hit_rate(std::span<const RequestRecord> records, const Observed& seen, Window window) {
  if (seen.prefix_hit_rate)
    return seen.prefix_hit_rate;
  double hits = 0, queries = 0;
  if (seen.prefix_query_tokens && seen.prefix_hit_tokens) {
    hits = static_cast<double>(*seen.prefix_hit_tokens);
    queries = static_cast<double>(*seen.prefix_query_tokens);
  } else {
    for (const RequestRecord& r : records) {
      if (!window.contains(r.scheduled) || !r.prompt_tokens || !r.cached_tokens)
        continue;
      hits += r.cached_tokens->count();
      queries += r.prompt_tokens->count();
    }
  }
  if (queries <= 0)
    return std::nullopt;
  return hits / queries;
}

void check_cache(Findings& f, std::span<const RequestRecord> records, const Observed& seen, Window window,
                 const VerdictRules& rules) {
  const auto rate = hit_rate(records, seen, window);
  if (!rate || !rules.expected_hit_rate)
    return;
  if (*rate > *rules.expected_hit_rate + kHitMargin)
    f.add("warm_cache", "{:.1f} % of prompt tokens came from the prefix cache, the schedule implies {:.1f} %",
          100 * *rate, 100 * *rules.expected_hit_rate);
}

void check_accounts(Findings& f, std::span<const RequestRecord> records, const VerdictRules& rules) {
  if (!rules.scheduled)
    return;
  std::unordered_set<uint64_t> seen;
  seen.reserve(records.size());
  for (const RequestRecord& r : records)
    seen.insert(r.index);
  if (seen.size() == *rules.scheduled && records.size() == *rules.scheduled)
    return;
  f.add("unaccounted", "{} requests were scheduled, {} records account for {} of them", *rules.scheduled,
        records.size(), seen.size());
}

void check_lengths(Findings& f, const PointSummary& s) {
  if (s.length_checked == 0)
    return;
  const auto right = static_cast<double>(s.length_checked - s.wrong_length);
  const double share = right / static_cast<double>(s.length_checked);
  if (share < kMinRightLength)
    f.add("wrong_length",
          "{:.1f} % of outputs have the asked length, less than {:.0f} %: asked {:.1f} tokens on "
          "average, got {:.1f}",
          100 * share, 100 * kMinRightLength, s.asked_output_mean.value_or(0), s.output_mean.value_or(0));
}

void check_buffering(Findings& f, std::span<const RequestRecord> records, Window window) {
  const auto buffered = std::ranges::count_if(
      records, [&](const RequestRecord& r) { return r.buffered && window.contains(r.scheduled); });
  if (buffered > 0)
    f.add("buffered",
          "{} streams came in a few large pieces, and an unloaded probe showed the same: the times of "
          "their tokens say nothing",
          buffered);
}

// The first event that precedes its cause, in words; empty: none. Causes and effects are compared where both are
// stamped by this client in the order of its own actions; `sent` is stamped after its write returns, so an answer may
// beat it.
std::string_view disorder(const RequestRecord& r) {
  const auto before = [](std::optional<TimePoint> effect, std::optional<TimePoint> cause) {
    return effect && cause && *effect < *cause;
  };
  const std::optional<TimePoint> scheduled = r.scheduled;
  if (before(r.dispatched, scheduled))
    return "dispatched before it was scheduled";
  const auto start = r.dispatched ? r.dispatched : scheduled;
  if (before(r.connected, start))
    return "connected before it was dispatched";
  if (before(r.sent, start))
    return "sent before it was dispatched";
  if (before(r.first_chunk, start))
    return "answered before it was dispatched";
  if (before(r.first_token, start))
    return "its first token precedes its dispatch";
  if (before(r.first_token, r.first_chunk))
    return "its first token precedes its first chunk";
  if (before(r.first_answer, r.first_token))
    return "its first answer token precedes its first token";
  if (before(r.done, r.first_token))
    return "its last token precedes its first";
  if (before(r.done, start))
    return "done before it was dispatched";
  if (before(r.closed, r.done))
    return "closed before it was done";
  if (before(r.closed, start))
    return "closed before it was dispatched";
  for (size_t i = 0; i < r.events.size(); ++i) {
    const TokenEvent& e = r.events[i];
    if (e.user < Nanos(0) || (e.kernel && *e.kernel < Nanos(0)))
      return "a token precedes its request";
    if (i > 0 && e.user < r.events[i - 1].user)
      return "a token precedes the one before it";
    if (e.kernel && *e.kernel - e.user > kStampTolerance)
      return "a token was read before it arrived";
  }
  const StreamFacts facts = inspect(r);
  if (!for_each_gap(r, facts, [](int64_t, uint32_t) {}))
    return "a token precedes the one before it";
  return {};
}

void check_clock(Findings& f, std::span<const RequestRecord> records, const ClientAudit& audit) {
  if (audit.clock_stepped) {
    f.add("clock", "a clock was stepped during the run");
    return;
  }
  for (const RequestRecord& r : records)
    if (const auto what = disorder(r); !what.empty()) {
      f.add("clock", "request {}: {}", r.index, what);
      return;
    }
}

}  // namespace

Verdict judge_point(std::span<const RequestRecord> records, const PointSummary& s, const Observed& seen,
                    const ClientAudit& audit, std::span<const ClassRule> classes, const VerdictRules& rules) {
  Findings f;
  check_client(f, s, audit, classes);
  check_contention(f, audit);
  if (rules.open_loop)
    check_delivery(f, records, s.window, classes);
  check_cache(f, records, seen, s.window, rules);
  check_accounts(f, records, rules);
  check_lengths(f, s);
  check_buffering(f, records, s.window);
  if (audit.server_before != audit.server_after)
    f.add("server_changed", "the server said '{}' before the run and '{}' after it", audit.server_before,
          audit.server_after);
  check_clock(f, records, audit);
  return f.take();
}

}  // namespace goodput
