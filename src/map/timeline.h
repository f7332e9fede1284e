// The small example that shows what iteration-level batching changes: a batch of four in which one sequence ends at
// step 5 and another at step 8, and a fifth request that waits.
#pragma once

#include <vector>

#include "base/result.h"
#include "map/result.h"

namespace goodput {

// Continuous and static, on the real scheduler with the given cost of an iteration.
Result<std::vector<Timeline>> example_timelines(const StepCost&);

}  // namespace goodput
