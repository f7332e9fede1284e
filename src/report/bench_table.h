// One benchmark as people know it: vLLM's console table and JSON keys with vLLM's meaning, then what is counted here:
// targets, attainment, goodput, the verdict and its reasons.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "load/load.h"
#include "metrics/summary.h"
#include "report/table.h"

namespace goodput {

struct BenchReport {
  std::string base_url, endpoint;  // endpoint: "completions" or "chat"
  std::optional<double> rate;      // requests/s asked for; absent: infinite (all at once, as the cap allows)
  std::optional<int> concurrency;  // the cap, if any
  uint64_t seed = 0;
  std::string workload_hash, schedule_hash;
  bool exact_prompts = false;                       // prompt lengths are the tokenizer's, not words
  std::optional<double> prompt_asked, prompt_seen;  // mean tokens, over requests whose usage tells
  LoadResult load;
  PointSummary summary;
  Verdict verdict;
  std::vector<ClassRule> rules;
};

// What vLLM's bench counts, over all requests that were sent (its window is the whole run, drain included).
struct BenchTotals {
  uint64_t completed = 0, failed = 0;
  double duration_s = 0;
  int64_t input_tokens = 0, output_tokens = 0;
  uint64_t good = 0;
  int64_t peak_concurrent = 0;
  std::vector<double> ttft_ms, ttft_from_schedule_ms, tpot_ms, itl_ms, e2el_ms;  // sorted; TTFT and E2EL from the send
};
BenchTotals bench_totals(const BenchReport&);

std::string render_bench(const BenchReport&, const TextStyle&);
// One JSON document (no line break at the end): vLLM's flat keys, and our own under "goodput". Absent values are null.
std::string bench_json(const BenchReport&);

}  // namespace goodput
