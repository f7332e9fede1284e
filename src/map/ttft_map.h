// TTFT over prompt length × sequences running on arrival: where waiting comes from.
#pragma once

#include <span>
#include <vector>

#include "map/result.h"

namespace goodput {

// Cells with no request are left out. Only `ok` records with prompt length, TTFT and server times count.
std::vector<TtftCell> ttft_cells(std::span<const RequestRecord>);

}  // namespace goodput
