// What the simulator says about a point that was measured: the same schedule, the same window.
#pragma once

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
// The schedule with its times divided by `rate`: the same requests, closer together.
Schedule at_rate(const Schedule&, double rate);

// Predicted ÷ measured − 1, absent where either is.
PredictionError::Row prediction_row(const Point& measured, const Point& predicted);
PredictionError prediction_error(std::vector<PredictionError::Row>);

}  // namespace goodput
