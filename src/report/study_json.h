// The document of `goodput map --json`, schema "goodput.study/1": extended only by new keys. report.html carries the
// same document, so that what a page shows and what a script reads cannot differ.
#pragma once

#include <string>

#include "map/result.h"

namespace goodput {

// One JSON object without line breaks. Absent is null; keys with a unit in their name are in it; shares are 0..1.
std::string to_json(const MapResult&);

}  // namespace goodput
