// A benchmark as JSON: vLLM's keys, units and meaning at the top, everything of ours under "goodput". The same document
// is `--json` and `--save-result`.
#pragma once

#include <string>

#include "report/bench_report.h"

namespace goodput {

// One document without a line break. Absent values are null. `detailed`: vLLM's arrays per request, in seconds and in
// the schedule's order.
std::string bench_json(const BenchReport&, bool detailed);

// vLLM's name of a result file: {label}-{rate}qps[-concurrencyN]-{model}-{date}.json, the model without its
// organisation.
std::string bench_file_name(const BenchReport&);

}  // namespace goodput
