// What an iteration is believed to cost: a linear model over its shape. `plan` fits one from a step log
// (metrics/record.h, StepRecord); the simulated executor and the scheduler use it.
#pragma once

#include "base/units.h"
#include "metrics/record.h"

namespace goodput {

inline constexpr int64_t kFarPairs = 2'500'000;

struct StepCost {
  double base_ns = 0;     // per iteration
  double prefill_ns = 0;  // per prompt token computed
  double decode_ns = 0;   // per decoding sequence
  double kv_ns = 0;       // per unit of StepShape::kv_read
  double tile_ns = 0;     // per unit of StepShape::kv_tiled
  double scan_ns = 0;     // per unit of StepShape::kv_scanned
  double crowd_ns = 0;    // per unit of kv_scanned × decodes: rows of many sequences push each other out of the caches
  double dense_ns = 0;    // per unit of StepShape::kv_dense
  double far_ns = 0;  // more of it per unit beyond kFarPairs, where the mask (6 bytes a pair) no longer fits the caches
  double pass_ns = 0;  // per forward pass beyond the first
  double swap_ns = 0;  // per token moved

  Nanos of(const StepShape&) const;         // never below 1 ns
  StepCost operator*(double factor) const;  // every term: the same engine on a machine slower by `factor`
  bool operator==(const StepCost&) const = default;
};

}  // namespace goodput
