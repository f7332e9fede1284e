// `goodput explain-definitions`: one run under the definitions of the field's tools, side by side.
#pragma once

#include <string>
#include <vector>

#include "metrics/definitions.h"
#include "report/table.h"

namespace goodput {

struct DefinitionsReport {
  std::string source, label;
  TargetSet targets;  // empty: no goodput lines
  std::vector<ToolView> views;
};

std::string render_definitions(const DefinitionsReport&, const TextStyle&);
std::string definitions_json(const DefinitionsReport&);  // goodput.definitions/1

}  // namespace goodput
