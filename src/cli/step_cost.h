// The cost of a simulated step, as --cost and --cost-file give it.
#pragma once

#include <string>

#include "base/result.h"
#include "scheduler/cost.h"

namespace goodput {

// `list`: "base_ns=2e6,decode_ns=1e5"; `file`: a JSON object with the same names; the list wins where both name one.
// Neither: about the tiny model on one core. kUsage names an unknown cost or a value that is none.
Result<StepCost> parse_step_cost(const std::string& list, const std::string& file);

}  // namespace goodput
