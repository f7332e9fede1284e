// What a map will do, before it does anything: a plain value made from the options alone. `--dry-run` prints it, the
// phases follow it.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "scheduler/settings.h"
#include "workload/spec.h"

namespace goodput {

// The settings space: every combination of the lists, plus one static batch per max_num_seqs.
struct Grid {
  std::vector<int> max_num_seqs{2, 4, 8, 16, 32};
  std::vector<Tokens> max_num_batched_tokens{Tokens(64), Tokens(256), Tokens(1024)};
  std::vector<SchedulingPolicy> policies{SchedulingPolicy::kFcfs, SchedulingPolicy::kPriority};
  bool with_static = true;
  Settings base;  // everything else
};
// In the order of the lists; combinations that `validate` refuses are left out. kUsage when nothing is left or the grid
// has more than limits::kMaxSettings points.
Result<std::vector<Settings>> settings_of(const Grid&);

enum class TargetKind : uint8_t { kEmbedded, kLaunched, kRemote };
enum class StopAfter : uint8_t { kNone, kProbe, kScreen, kMeasure };

struct MapOptions {
  WorkloadSpec workload;
  Grid grid;
  TargetKind target = TargetKind::kEmbedded;
  std::filesystem::path model;  // embedded: a GGUF file; elsewhere: the vocabulary for exact prompt lengths, or empty
  bool simulate = false;        // embedded: the server runs the simulated executor in real time
  std::string launch;           // launched: a command with {port} and any setting's name in braces
  std::string base_url;         // remote
  std::vector<int> engine_cpus, load_cpus;  // empty: not pinned
  Tokens kv_tokens{16384};  // embedded: KV cells. Unified cells cost every token a look at all that are in
                            // use, so more than the mix needs makes each iteration slower
  std::filesystem::path out = "goodput-study";
  Nanos budget = seconds(300);
  uint64_t seed = 1;
  double floor = 0.90;  // attainment floor of every class
  bool resume = false;
  StopAfter stop_after = StopAfter::kNone;
};

struct MapPlan {
  struct Probe {
    std::string name;  // "unloaded chat", "16 at once, 64 tokens"
    Settings settings;
    int concurrency = 1;
    std::optional<size_t> only_class;  // index; absent: the whole mix
    Nanos length;
  };
  std::vector<Probe> probes;
  std::vector<Settings> grid;
  int screen_requests = 2000, finalist_requests = 20000;
  int measured_settings = 4;
  std::vector<double> fractions;  // of predicted capacity
  Nanos warm_up, measure_window, confirm_window;
  int replicates = 3, background_replicates = 2;
  // Expected wall time of each phase, and of one point beside its window (start, priming, drain, stop).
  Nanos point_overhead, probe_time, screen_time, measure_time, confirm_time;
  Nanos total() const { return probe_time + screen_time + measure_time + confirm_time; }
  int descriptors = 0;  // most that the generator may need at once
};

// kUsage when the budget is too small for even the smallest honest study (it says how much is needed).
Result<MapPlan> make_plan(const MapOptions&);

}  // namespace goodput
