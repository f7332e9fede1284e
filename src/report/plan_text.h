// What `goodput map --dry-run` shows: the plan, its time, descriptors and memory.
#pragma once

#include <string>

#include "map/plan.h"

namespace goodput {

std::string plan_text(const MapOptions&, const MapPlan&);
std::string plan_json(const MapOptions&, const MapPlan&);  // one object and a line break

}  // namespace goodput
