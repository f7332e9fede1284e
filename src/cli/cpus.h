// Lists of processors, as --cpus and its kin take them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace goodput {

// "0" or "0,1". Empty text: an empty list. kUsage, naming `flag`, for anything that is not a processor this process may
// use.
Result<std::vector<int>> parse_cpus(const std::string& text, std::string_view flag);

}  // namespace goodput
