// The engine loop on virtual time over a schedule: same scheduler, modelled durations. Tens of thousands of requests a
// second of real time.
//
// Time zero is the schedule's start. Its priming requests run before it, one after the other, and leave nothing behind
// but the cache. Logical time alone decides: arrivals enter at the first step boundary at or after their time, a step
// ends at start + duration exactly; Engine keeps the same rule on real and scaled clocks and so makes the same batches.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "base/result.h"
#include "engine/engine_core.h"
#include "metrics/record.h"
#include "scheduler/cost.h"
#include "workload/schedule.h"

namespace goodput {

struct SimulateOptions {
  Settings settings;
  Capabilities capabilities;
  StepCost cost;
  Nanos request_overhead{0};  // outside the engine: client, HTTP, tokenizing; added to each request's TTFT and E2E
  Nanos token_overhead{0};    // delivery delay of each token
  StepSink* steps = nullptr;  // optional
  // Called for each batch in flight with its times; optional (timelines, comparisons of clocks).
  std::function<void(const Batch&, TimePoint start, TimePoint end)> on_batch;
  int concurrency = 0;  // > 0: closed loop over the schedule's order instead of its times
  Nanos think_time{0};  // closed loop: between an end and the next request in its place
};

struct SimulateResult {
  std::vector<RequestRecord> records;  // by index
  uint64_t steps = 0;
  uint64_t sequence_steps = 0;  // Σ over steps of scheduled sequences
  SchedulerState state;         // at the end
  TimePoint end;                // when the last request ended
};

// Runs the schedule to its end (every request ended). `max_steps` bounds a run that cannot finish in time: requests
// that had arrived by then are `unfinished`, later ones `not_sent`. Request i has RequestId i + 1, priming ones follow.
// kUsage: impossible settings, or a request that can never run; kFailed: priming does not come to an end.
Result<SimulateResult> simulate(const Schedule&, const SimulateOptions&, uint64_t max_steps = UINT64_MAX);

}  // namespace goodput
