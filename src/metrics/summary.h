// One measured (or simulated) point: everything a report says about it, computed from its records. The same function
// scores the load generator's records and the simulator's.
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
};

// The window [start, end): fixed before the run. Attainment and goodput count the cohort scheduled in it, throughput what
// was delivered in it.
struct Window { TimePoint start, end; };

enum class Regime : uint8_t { kSteady, kSaturated, kUnknown };

struct LatencyTable {  // milliseconds
  Percentiles ttft, ttft_service, tpot, itl, icl, e2e;
};

struct ClassSummary {
  std::string name;
  uint64_t scheduled = 0, good = 0, unmeasurable = 0, not_applicable = 0;
  std::optional<Estimate> attainment;   // absent: nothing scheduled, or not measurable
  LatencyTable latency;
};

struct Throughput { double requests_per_s = 0, input_tokens_per_s = 0, output_tokens_per_s = 0, total_tokens_per_s = 0; };

struct PointSummary {
  Window window;
  double offered_rate = 0;                 // scheduled ÷ window
  std::optional<double> achieved_rate;     // (dispatched − 1) ÷ (last − first dispatch)
  uint64_t requests = 0;                   // scheduled in the window
  Regime regime = Regime::kUnknown;
  ClassSummary overall;                    // name "overall"
  std::vector<ClassSummary> by_class;      // in the workload's order
  double goodput_rps = 0, token_goodput = 0;
  double interactive_goodput_rps = 0;      // of the classes with a target on tokens' times
  Throughput throughput;
  std::array<uint64_t, kOutcomes> outcomes{};
  Percentiles dispatch_delay;              // ms
  Percentiles read_lag;                    // ms, user-space stamp − kernel stamp
  double kernel_stamp_share = 0;           // of token events
  uint64_t wrong_length = 0;               // ok records whose output length is not the asked one
};

PointSummary summarize(std::span<const RequestRecord>, std::span<const ClassRule>, Window, bool strict = false);

// Gauges of the server over the window, from its step log (time-weighted).
struct Observed {
  MeanP95Max running, batched_tokens, queue_depth, kv_usage;
  std::optional<uint64_t> preemptions, prefix_query_tokens, prefix_hit_tokens, rejected, peak_rss_bytes;
  std::optional<double> prefix_hit_rate;
};
Observed observe(std::span<const StepRecord>, Blocks total, Window);

// Why a point may not be used to recommend; empty: VALID. Names as in docs/method.md, "Regime and verdict".
struct Verdict {
  std::vector<std::string> reasons;
  bool valid() const { return reasons.empty(); }
};
struct ClientAudit {                       // what the generator knows of itself
  double loop_busy_share = 0;              // 0..1
  std::optional<double> wait_share;        // share of the window its thread was runnable but not running
  std::optional<double> server_wait_share; // the same of the server's threads, where it is local
  bool clock_stepped = false;
  std::string server_before, server_after; // model and version as the server reports them
};
struct VerdictRules {
  bool open_loop = true;
  std::optional<double> expected_hit_rate; // prefix hits that the schedule implies, 0..1
};
Verdict judge_point(std::span<const RequestRecord>, const PointSummary&, const Observed&, const ClientAudit&,
                    std::span<const ClassRule>, const VerdictRules&);

std::string_view to_string(Regime);

}  // namespace goodput
