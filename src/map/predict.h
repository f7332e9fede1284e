// What the simulator says about a point that was measured: the same schedule, the same window.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "base/result.h"
#include "map/measure.h"
#include "map/screen.h"

namespace goodput {

struct PredictedPoint {
  Point point;
  std::vector<RequestRecord> records;
};
// The request's workload, rate, seed and window on virtual time.
Result<PredictedPoint> predict(const PointRequest&, const EngineModel&);
// How much longer the iterations begun in the window took than their fitted cost says: Σ durations ÷ Σ costs. On a
// shared machine this drifts by tens of percent within minutes, and no model of the engine can know it. Absent without
// iterations.
std::optional<double> slowdown(std::span<const StepRecord>, const StepCost&, Window);
// The engine on a machine that is slower by `factor`: its iterations and what surrounds them.
EngineModel slower(EngineModel, double factor);
// The schedule with its times divided by `rate`: the same requests, closer together.
Schedule at_rate(const Schedule&, double rate);

// Absent where either figure is.
RelativeErrors relative_errors(const Point& predicted, const Point& measured);
PredictionError prediction_error(std::vector<PredictionError::Row>);

}  // namespace goodput
