// report.html: one self-contained page (style, script and plots inside, no request leaves it) that shows a map to a
// person.
#pragma once

#include <string>

#include "map/result.h"

namespace goodput {

// The whole page. The data stand in it as the JSON of `map --json`; everything visible is made from them by
// web/report.js.
std::string report_html(const MapResult&);

}  // namespace goodput
