// What `goodput bench` will do, as a plain value made from the flags before anything is sent: the workload, the options
// of the load generator, and the report's first half. --dry-run prints it.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/bench_flags.h"
#include "load/load.h"
#include "report/bench_report.h"
#include "report/bench_tables.h"
#include "workload/schedule.h"
#include "workload/spec.h"

namespace goodput {

struct BenchOutput {
  const BenchTable* table = nullptr;
  bool chinese = false, plain = false, json = false, quiet = false;
  bool save = false, detailed = false, append = false;
  std::filesystem::path directory, file_name;  // empty: here; vLLM's name
  std::string records;                         // empty: not kept
};

struct BenchPlan {
  WorkloadSpec spec;
  ScheduleOptions schedule;
  LoadOptions load;
  BenchReport report;     // what is known before the run
  std::string tokenizer;  // GGUF file; empty: prompts of words
  std::vector<int> cpus;  // empty: as inherited
  uint64_t warmups = 0;   // requests before the window, prompts of their own
  Nanos ready_wait{0};    // how long an unreachable server is waited for
  BenchOutput output;
  std::vector<std::string> notes;  // what the user should know: accepted, but not what vLLM does with it
};

// What the environment holds that no flag may: secrets and the time.
struct BenchEnvironment {
  std::function<std::string(const std::string& name)> variable;  // empty: not set
  std::string date;                                              // YYYYmmdd-HHMMSS
};
BenchEnvironment bench_environment();

// kUsage names the flag and what it should have been; kNotFound, kIo: a workload file that cannot be read.
Result<BenchPlan> bench_plan(const BenchFlags&, const BenchEnvironment&);

// The parts, in files of their own.
Result<void> plan_server(const BenchFlags&, BenchPlan&);    // bench_server.cc
Result<void> plan_workload(const BenchFlags&, BenchPlan&);  // bench_workload.cc
Result<void> plan_arrivals(const BenchFlags&, BenchPlan&);  // bench_workload.cc
// For what a flag asks for and this version cannot do: says so, and what there is instead.
tl::unexpected<Error> not_here(std::string_view flag, std::string_view what, std::string_view instead);
// "Name=Value"; kUsage names the flag otherwise.
Result<std::pair<std::string, std::string>> key_value(std::string_view flag, std::string_view text);

}  // namespace goodput
