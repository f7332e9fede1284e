// Which settings are worth considering at all, and which one to take: pure functions over capacities.
#pragma once

#include <vector>

#include "map/result.h"

namespace goodput {

// The capacities that no other beats at once in goodput, interactive p95 TTFT and interactive p95 gap (each at its own
// capacity), by falling goodput. A capacity without a rate is never on it.
std::vector<Capacity> frontier_of(const std::vector<Capacity>&);
// By falling goodput at capacity; those without capacity last, in their order.
void sort_by_goodput(std::vector<Capacity>&);
// The largest-batch rule: most sequences, then most tokens, continuous, first come first served.
const Capacity* largest_batch(const std::vector<Capacity>&);
// The offline rule: most output tokens per second of a backlog.
const Capacity* best_offline(const std::vector<Capacity>&);

}  // namespace goodput
