// A map as text: the answer first, what to set, what other rules would have cost, the capacity of the settings, and
// where the rest is. For a terminal, a pipe (no limit of width) or a script (--plain).
#pragma once

#include <string>

#include "map/result.h"
#include "report/table.h"

namespace goodput {

std::string study_text(const MapResult&, const TextStyle&);

}  // namespace goodput
