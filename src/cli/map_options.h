// The flags of `goodput map`, and the options they stand for.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "base/result.h"
#include "map/plan.h"

namespace goodput {

struct MapFlags {
  std::string model = "tiny", workload, launch, base_url, out, budget = "5m", stop_after, engine_cpus, load_cpus;
  std::vector<std::string> classes, goodput, set;
  std::vector<int> max_num_seqs{2, 4, 8, 16, 32}, budgets{64, 256, 1024};
  std::vector<std::string> policies{"fcfs", "priority"};
  int kv_tokens = 16384;
  uint64_t seed = 1;
  double floor = 0.90;
  bool no_static = false, resume = false, dry_run = false, json = false, simulate = false, plain = false;
  std::vector<std::string> arguments;  // as given, for --resume
};

void declare_map_flags(CLI::App&, MapFlags&);
// kUsage names the flag and what it should have been; kIo, kFailed: a workload or model file that cannot be used.
Result<MapOptions> map_options(const MapFlags&);

}  // namespace goodput
