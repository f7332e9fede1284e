// A planned benchmark from schedule to report, and what is kept of it.
#pragma once

#include <atomic>
#include <string>

#include "base/progress.h"
#include "base/result.h"
#include "cli/bench_plan.h"

namespace goodput {

// The schedule of the plan with its text and its warm-up requests. kUsage and kFailed as make_schedule and Model::load.
Result<Schedule> bench_schedule(const BenchPlan&);
// Sends it and scores it. Errors as run_load.
Result<BenchReport> run_bench(const BenchPlan&, const Schedule&, Progress&, const std::atomic<bool>& stop);
// Writes the result file, in one piece, and the records, as the plan says; returns the paths that were written.
Result<std::vector<std::string>> save_bench(const BenchPlan&, const BenchReport&);
// What --dry-run prints: requests, time, descriptors against the limit, memory.
struct BenchForecast {
  std::string text, json;
  bool possible = true;  // false: descriptors do not suffice
};
BenchForecast forecast(const BenchPlan&, const Schedule&);

}  // namespace goodput
