// A comparison for a terminal and as JSON (goodput.compare/1).
#pragma once

#include <string>
#include <vector>

#include "report/comparison.h"
#include "report/table.h"

namespace goodput {

struct CompareReport {
  std::vector<std::string> files_a, files_b;
  std::vector<std::string> kinds_a, kinds_b;  // beside each file
  Comparison comparison;
  std::vector<GateOutcome> gates;
  bool strict = false;
};

std::string render_compare(const CompareReport&, const TextStyle&);
std::string compare_json(const CompareReport&);

}  // namespace goodput
