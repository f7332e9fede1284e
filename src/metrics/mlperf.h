// MLPerf's own verdict on a latency limit: "the 99th percentile is within the limit", accepted only where enough
// queries were seen to say so with 99 % confidence (MLPerf Inference, loadgen, early stopping). Stands beside
// attainment (metrics/targets.h), which asks for both limits of the same request. Pure; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "metrics/record.h"
#include "metrics/targets.h"

namespace goodput {

// The least number of queries within the limit that lets `over` queries beyond it pass: the least h with
// I_p(h, over + 1) <= 1 − confidence, the regularized incomplete beta function. p99 and none over: 459.
uint64_t mlperf_least_within(uint64_t over, double percentile = 0.99, double confidence = 0.99);

struct MlperfLimit {
  double limit_ms = 0;
  uint64_t queries = 0, over = 0;  // every request counts: a failure is over the limit
  uint64_t undefined = 0;          // answers of one token, for which TPOT has no value: MLPerf logs them as errors
  uint64_t needed = 0;             // queries within the limit that `over` asks for
  bool holds = false;
  std::optional<double> p99_ms;  // its percentile: the element at floor(n × 0.99) of the sorted values, from 0
};
struct MlperfVerdict {
  MlperfLimit ttft;
  std::optional<MlperfLimit> tpot;  // absent: the set has no such limit
  bool holds = false;               // both, each on its own
};
// TTFT from the scheduled time, TPOT = (latency − TTFT) ÷ (tokens − 1). The records are the whole run, as in loadgen.
MlperfVerdict mlperf_verdict(std::span<const RequestRecord>, Nanos ttft, std::optional<Nanos> tpot);

}  // namespace goodput
