// Diagnostics on stderr, one line each. Not for results (those go to stdout through `report`) and never on a hot
// path.
#pragma once

#include <string_view>

namespace goodput::log {

enum class Level { kDebug, kInfo, kWarn, kError, kOff };
void set_level(Level);
void debug(std::string_view message);
void info(std::string_view message);
void warn(std::string_view message);
void error(std::string_view message);

}  // namespace goodput::log
