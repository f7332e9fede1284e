// Fits StepCost to a step log by non-negative, relatively weighted least squares, and says how well it fits.
#pragma once

#include <span>

#include "base/result.h"
#include "metrics/record.h"
#include "scheduler/cost.h"

namespace goodput {

struct StepCostFit {
  StepCost cost;
  size_t steps = 0;                  // used
  double median_relative_error = 0;  // |predicted − seen| ÷ seen
  double p90_relative_error = 0;
  double bias = 0;  // Σ predicted ÷ Σ seen − 1
};

// kFailed when the log has too few distinct shapes to identify the coefficients (it says which).
Result<StepCostFit> fit_step_cost(std::span<const StepRecord>);

}  // namespace goodput
