// One measured (or simulated) point: everything a report says about it, computed from its records. The same function
// scores the load generator's records and the simulator's. Pure functions; any thread.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "metrics/record.h"
#include "metrics/stats.h"
#include "metrics/targets.h"

namespace goodput {

struct ClassRule {
  std::string name;
  TargetSet targets;
  std::optional<Nanos> stall_limit = std::nullopt;  // gaps above it are counted as stalls; absent: not counted
};

// The window [start, end): fixed before the run. Attainment and goodput count the cohort scheduled in it, throughput
// what was delivered in it.
struct Window {
  TimePoint start, end;

  bool contains(TimePoint t) const { return start <= t && t < end; }
  double length_s() const { return to_seconds(end - start); }
  bool operator==(const Window&) const = default;
};

enum class Regime : uint8_t { kSteady, kSaturated, kUnknown };

struct LatencyTable {  // milliseconds, over ok requests of the cohort; itl and icl are token-level, the rest
                       // request-level
  Percentiles ttft, ttft_service, tpot, itl, icl, e2e;
  Percentiles ttfa, max_gap;

  bool operator==(const LatencyTable&) const = default;
};

struct ClassSummary {
  std::string name;
  uint64_t scheduled = 0, good = 0;
  uint64_t unmeasurable = 0;           // ok requests without streaming whose targets need tokens' times
  uint64_t not_applicable = 0;         // targets of ok requests that had nothing to divide
  std::optional<Estimate> attainment;  // absent: nothing scheduled, or not measurable
  LatencyTable latency;
  uint64_t ttft_censored = 0;      // given up before a token: their TTFT is only known to be longer than the wait
  std::optional<uint64_t> stalls;  // gaps above the class's stall limit; absent: no limit given
};

// Per second of the window. Tokens of requests that failed are a line of their own.
struct Throughput {
  double requests_per_s = 0, input_tokens_per_s = 0, output_tokens_per_s = 0, total_tokens_per_s = 0;
  double failed_output_tokens_per_s = 0;
};

struct PointSummary {
  Window window;
  double offered_rate = 0;              // scheduled ÷ window
  std::optional<double> achieved_rate;  // (dispatched − 1) ÷ (last − first dispatch)
  uint64_t requests = 0;                // scheduled in the window
  Regime regime = Regime::kUnknown;
  ClassSummary overall;                // name "overall"
  std::vector<ClassSummary> by_class;  // in the workload's order
  double goodput_rps = 0, token_goodput = 0;
  double interactive_goodput_rps = 0;  // of the classes with a target on tokens' times
  Throughput throughput;
  std::array<uint64_t, kOutcomes> outcomes{};
  Percentiles dispatch_delay;                            // ms
  Percentiles read_lag;                                  // ms, user-space stamp − kernel stamp, per token event
  double kernel_stamp_share = 0;                         // of token events: those whose delivery has a kernel stamp
  uint64_t wrong_length = 0;                             // ok records whose output length is not the asked one
  uint64_t length_checked = 0;                           // ok records whose output length is known and was asked for
  std::optional<double> asked_output_mean, output_mean;  // tokens, over those
  uint64_t first_count_unknown = 0;                      // ok streams where TPOT took n₁ = 1
  uint64_t first_count_mismatch = 0;  // ... because the first event claimed more tokens than the answer has
};

PointSummary summarize(std::span<const RequestRecord>, std::span<const ClassRule>, Window, bool strict = false);

// The part of summarize() that a search needs, many times faster: no percentiles.
struct AttainmentOnly {
  Count overall{0, 0};
  std::vector<Count> by_class;  // in the workload's order
  uint64_t unmeasurable = 0;    // > 0: attainment is not measurable
  double goodput_rps = 0, token_goodput = 0, interactive_goodput_rps = 0;
  Regime regime = Regime::kUnknown;
};
AttainmentOnly quick_attainment(std::span<const RequestRecord>, std::span<const ClassRule>, Window,
                                bool strict = false);

// Whether in-flight requests grow over the last half of the window: a one-sided Student test at 5 % on its increments
// over ten equal parts, and at least three requests of growth. Unknown below 20 arrivals in that half.
Regime regime_of(std::span<const RequestRecord>, Window);

// All requests that arrived before the first one ended, and at least those of the warm-up time. They meet an empty
// server and each other; a window that begins before `end` is biased by them.
struct OpeningWave {
  uint64_t requests = 0;
  TimePoint end;  // requests scheduled before it belong to the wave
};
OpeningWave opening_wave(std::span<const RequestRecord>, Nanos warm_up);

// Gauges of the server over the window, from its step log (time-weighted). Absent: no step log.
struct Observed {
  MeanP95Max running, batched_tokens, queue_depth, kv_usage;  // kv_usage: 0..1; batched_tokens: while iterating
  std::optional<uint64_t> preemptions, prefix_query_tokens, prefix_hit_tokens, rejected, peak_rss_bytes;
  std::optional<double> prefix_hit_rate;
};
// A step's values hold until the next step starts. A pause after a step of more than a quarter of it (and than 1 ms) is
// idle time: nothing runs, no KV is in use, and it counts as 0. Steps in any order.
Observed observe(std::span<const StepRecord>, Blocks total, Window);

// Why a point may not be used to recommend; empty: VALID. Names as in docs/method.md, "Regime and verdict".
struct Verdict {
  std::vector<std::string> reasons;
  std::vector<std::string> evidence;  // beside each reason: the figures that led to it, one sentence

  bool valid() const { return reasons.empty(); }
};
struct ClientAudit {                        // what the generator knows of itself
  double loop_busy_share = 0;               // 0..1
  std::optional<double> wait_share;         // share of the window its thread was runnable but not running
  std::optional<double> server_wait_share;  // the same of a local server's busiest thread, beyond what its siblings ran
  bool clock_stepped = false;
  std::string server_before, server_after;  // model and version as the server reports them
};
struct VerdictRules {
  bool open_loop = true;
  std::optional<double> expected_hit_rate;           // prefix hits that the schedule implies, 0..1; absent: not judged
  std::optional<uint64_t> scheduled = std::nullopt;  // requests of the whole schedule; absent: not judged
};
Verdict judge_point(std::span<const RequestRecord>, const PointSummary&, const Observed&, const ClientAudit&,
                    std::span<const ClassRule>, const VerdictRules&);

std::string_view to_string(Regime);

}  // namespace goodput
