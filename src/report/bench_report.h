// One benchmark: how it was asked for, what was measured, and the totals that the usual tools print. Plain values; the
// tables (bench_tables.h) and the JSON (bench_json.h) are made from them.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "load/load.h"
#include "metrics/summary.h"

namespace goodput {

// The latencies that vLLM's --percentile-metrics can name.
enum class BenchMetric : uint8_t { kTtft, kTpot, kItl, kE2el, kClientQueueTime, kE2elWithQueue };
inline constexpr int kBenchMetrics = 6;
struct BenchMetricRow {
  BenchMetric metric;
  std::string_view key, label, title;  // "ttft", "TTFT", "Time to First Token": as vLLM writes them
};
std::span<const BenchMetricRow> bench_metric_rows();
// "ttft,e2el"; kUsage names the unknown one.
Result<std::vector<BenchMetric>> parse_bench_metrics(std::string_view text);
// "50,99.9": each in (0, 100]; kUsage otherwise.
Result<std::vector<double>> parse_percents(std::string_view text);

struct RampReport {
  std::string strategy;  // "linear" or "exponential"
  double start_rps = 0, end_rps = 0;
};

struct BenchReport {
  // As asked for.
  std::string base_url;
  std::string backend = "openai", endpoint;  // vLLM's word; the path
  std::string label, model, tokenizer;       // empty: not given
  std::string date;                          // YYYYmmdd-HHMMSS, local time, of the start
  std::optional<double> rate;                // requests/s asked for; absent: infinite (all at once, as the cap allows)
  double burstiness = 1;                     // may be infinite: constant gaps
  std::optional<RampReport> ramp;
  std::optional<int> concurrency;  // the cap, if any
  uint64_t num_prompts = 0;
  uint64_t seed = 0;
  std::vector<std::pair<std::string, std::string>> metadata;
  std::vector<BenchMetric> metrics = {BenchMetric::kTtft, BenchMetric::kTpot, BenchMetric::kItl};
  std::vector<double> percents = {99};
  std::optional<double> floor;  // attainment that is asked for, 0..1
  std::vector<ClassRule> rules;
  std::string workload_hash, schedule_hash;
  uint64_t distinct_prompts = 0, scheduled = 0;
  std::vector<int> asked_prompt;  // tokens, by index
  bool exact_prompts = false;     // prompt lengths are the tokenizer's, not words
  // Measured.
  std::optional<double> prompt_asked, prompt_seen;  // mean tokens, over requests whose usage tells
  LoadResult load;
  PointSummary summary;
  Verdict verdict;

  bool has_targets() const;
  std::string model_name() const { return model.empty() ? load.model : model; }
};

// What vLLM's bench counts, with its meaning: over all requests that were sent (its window is the whole run, drain
// included), latencies from the send, TPOT divided by n − 1, ITL one value per delivery.
struct BenchTotals {
  uint64_t completed = 0, failed = 0, good = 0;
  double duration_s = 0;  // first dispatch to last end
  int64_t input_tokens = 0, output_tokens = 0;
  int64_t most_in_flight = 0;                 // exact
  std::optional<int64_t> peak_concurrent;     // requests that were open within one second; no more than vLLM knows
  std::optional<double> peak_tokens_per_s;    // token events within one second
  uint64_t chunks = 0, chunked_requests = 0;  // response events, and the ok requests that had some
  std::array<std::vector<double>, kBenchMetrics> values;  // ms, ascending, over ok requests

  const std::vector<double>& of(BenchMetric m) const { return values[static_cast<size_t>(m)]; }
  std::optional<double> per_second(double n) const;
};
BenchTotals bench_totals(const BenchReport&);

// vLLM's statistics (numpy's): population deviation, linear interpolation between neighbours. Absent when empty.
std::optional<double> mean_of(std::span<const double> values);
std::optional<double> deviation_of(std::span<const double> values);
std::optional<double> linear_percentile(std::span<const double> sorted, double percent);  // 0..100
// "99", "99.9": as vLLM forms p99_ttft_ms.
std::string percent_word(double percent);

// The latencies of one ok request as vLLM counts them; absent where they cannot be known.
std::optional<double> bench_tpot_ms(const RequestRecord&);  // (done − first token) ÷ (n − 1)
std::optional<double> bench_e2el_ms(const RequestRecord&);  // done − dispatched

// Whether every class keeps the floor: decided only where the interval of each attainment lies on one side of it.
enum class FloorVerdict : uint8_t { kPass, kFail, kUndecided };
FloorVerdict floor_verdict(const PointSummary&, double floor);
std::string_view to_string(FloorVerdict);

}  // namespace goodput
