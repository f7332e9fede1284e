// The step-cost model, evaluated. Pure; may be called for millions of hypothetical iterations.
#include "scheduler/cost.h"

#include <algorithm>
#include <cmath>

namespace goodput {

Nanos StepCost::of(const StepShape& shape) const {
  const double ns = base_ns + prefill_ns * shape.prefill.count() + decode_ns * shape.decodes +
                    kv_ns * static_cast<double>(shape.kv_read.count()) +
                    tile_ns * static_cast<double>(shape.kv_tiled.count()) +
                    scan_ns * static_cast<double>(shape.kv_scanned.count()) +
                    crowd_ns * static_cast<double>(shape.kv_scanned.count()) * shape.decodes +
                    far_ns * static_cast<double>(std::max<int64_t>(0, shape.kv_dense.count() - kFarPairs)) +
                    dense_ns * static_cast<double>(shape.kv_dense.count()) + pass_ns * std::max(0, shape.passes - 1) +
                    swap_ns * shape.swapped.count();
  // A fit may give nonsense; time must still go forward, and a day is longer than any iteration.
  constexpr double kLongest = 86400e9;
  return Nanos(std::isfinite(ns) ? std::llround(std::clamp(ns, 1.0, kLongest)) : 1);
}

StepCost StepCost::operator*(double factor) const {
  StepCost scaled = *this;
  for (double* term :
       {&scaled.base_ns, &scaled.prefill_ns, &scaled.decode_ns, &scaled.kv_ns, &scaled.tile_ns, &scaled.scan_ns,
        &scaled.crowd_ns, &scaled.dense_ns, &scaled.far_ns, &scaled.pass_ns, &scaled.swap_ns})
    *term *= factor;
  return scaled;
}

}  // namespace goodput
