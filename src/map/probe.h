// What the probe's points say: unloaded latencies, targets in milliseconds, the cost of an iteration, and the time a
// request spends outside the engine.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "map/measure.h"
#include "map/screen.h"
#include "plan/step_cost_fit.h"

namespace goodput {

struct ProbeFindings {
  std::map<std::string, std::pair<double, double>> unloaded_ms;  // class → (TTFT p50, TPOT p50)
  WorkloadSpec workload;                                         // targets resolved
  std::optional<StepCostFit> fit;                                // absent without a step log
  std::optional<EngineModel> engine;                             // likewise
};

// `unloaded[c]` is class c's own probe. kFailed when a class produced nothing to measure by.
Result<ProbeFindings> read_probe(const WorkloadSpec&, const std::vector<MeasuredPoint>& unloaded,
                                 const std::vector<MeasuredPoint>& loaded);

}  // namespace goodput
