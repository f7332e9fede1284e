// What `score`, `explain-definitions` and `compare` share: stored runs with their window and their classes.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/verb.h"
#include "metrics/summary.h"
#include "store/result_file.h"

namespace goodput {

// How the window of a records file is found; a study's points carry theirs.
struct WindowFlags {
  std::string of, warm_up, duration;  // of: bench's JSON of the same run
  bool closed_loop = false;
};
void declare_window_flags(CLI::App&, WindowFlags&);
// Sets the window of every run that has records and none stored. Default: first to last arrival; closed loop: to the
// last end.
Result<void> place_windows(ResultFile&, const WindowFlags&);

// Targets from `--goodput` items or a preset; nullopt: neither was given. Both: kUsage.
Result<std::optional<TargetSet>> targets_of(const std::vector<std::string>& items, const std::string& preset);

// The classes of a run: a study's own workload, else the file of `workload`, else one class per number in the records.
// `targets` replaces those of every class.
Result<std::vector<ClassRule>> rules_of(const ResultRun&, const std::string& workload,
                                        const std::optional<TargetSet>& targets);

}  // namespace goodput
