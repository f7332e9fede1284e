// What an iteration is believed to cost: a linear model over its shape. `plan` fits one from a step log
// (metrics/record.h, StepRecord); the simulated executor and the scheduler use it.
#pragma once

#include "base/units.h"
#include "metrics/record.h"

namespace goodput {

struct StepCost {
  double base_ns = 0;     // per iteration
  double prefill_ns = 0;  // per prompt token computed
  double decode_ns = 0;   // per decoding sequence
  double kv_ns = 0;       // per unit of StepShape::kv_read
  double scan_ns = 0;     // per unit of StepShape::kv_scanned
  double dense_ns = 0;    // per unit of StepShape::kv_dense
  double pass_ns = 0;     // per forward pass beyond the first
  double swap_ns = 0;     // per token moved

  Nanos of(const StepShape&) const;  // never below 1 ns
  bool operator==(const StepCost&) const = default;
};

}  // namespace goodput
