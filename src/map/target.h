// What is measured: a server of our own, one launched from a command, or one that already runs. Each point gets a fresh
// server where we can start it, so that every point begins from the same cold state.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/process.h"
#include "base/result.h"
#include "map/plan.h"
#include "metrics/record.h"
#include "scheduler/capabilities.h"

namespace goodput {

// A server that answers. Ended on destruction if we started it.
struct RunningServer {
  std::string base_url;
  std::optional<Child> child;
  std::string step_log, stderr_log;          // paths; empty: none
  std::optional<Capabilities> capabilities;  // our own server says them

  std::optional<pid_t> pid() const { return child ? std::optional(child->pid()) : std::nullopt; }
  // Stops it and returns its step log (empty where there is none).
  Result<std::vector<StepRecord>> stop();
  // Why it is gone: wait status and the end of its stderr. nullopt while it runs or if it is not ours.
  std::optional<Error> death();
};

// Starts (or finds) the server for these settings and waits until it answers. kFailed with the end of its own output
// when it dies first; kUnreachable when it does not answer in time.
Result<RunningServer> start_server(const MapOptions&, const Settings&, const std::string& scratch_dir,
                                   const std::atomic<bool>& stop);

// The launch command with its placeholders filled in. kUsage for an unknown placeholder (with the nearest known one) or
// when {port} is missing.
Result<std::string> render_launch(std::string_view launch, int port, const Settings&);
// The flags of `goodput serve` for these settings; only those that differ from the defaults.
std::string serve_flags(const Settings&);

}  // namespace goodput
