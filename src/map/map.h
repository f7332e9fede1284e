// `goodput map`: probe, screen, measure, confirm. Every measured point is in the study file the moment it is done; the
// result is computed from the file and the options alone, so that a resumed study and an uninterrupted one agree.
#pragma once

#include <atomic>
#include <filesystem>
#include <string>
#include <vector>

#include "base/progress.h"
#include "base/result.h"
#include "map/plan.h"
#include "map/result.h"

namespace goodput {

// The study file of an output folder.
std::filesystem::path study_path(const std::filesystem::path& out);

// Runs what the study file does not hold yet. kUsage: the folder holds a study and `resume` is off, or one made with
// other options; kInterrupted: `stop` was set, the finished points are safe; kUnreachable, kFailed: see the message.
// `arguments` is stored, so that --resume needs none of them again.
Result<MapResult> run_map(const MapOptions&, const std::vector<std::string>& arguments, Progress&,
                          const std::atomic<bool>& stop);

// The arguments that the study in `out` was begun with.
Result<std::vector<std::string>> stored_arguments(const std::filesystem::path& out);
// Stores the finished document beside the points, for `study show`.
Result<void> store_document(const std::filesystem::path& out, const std::string& json);

}  // namespace goodput
