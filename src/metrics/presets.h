// Target sets with a name, so that a run can be judged by limits that other people know. One table; flags, help and
// documentation derive from it. Pure; any thread.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "base/result.h"
#include "metrics/targets.h"

namespace goodput {

struct Preset {
  std::string_view name;
  double ttft_ms;
  std::optional<double> tpot_ms;
  bool mlperf;  // MLPerf's rule for it is a 99th percentile of each limit with early stopping (metrics/mlperf.h)

  TargetSet targets() const;
};

// first-token-2s, and per model the limits of MLPerf Inference (datacenter, server scenario; loadgen's user.conf).
std::span<const Preset> presets();
// kUsage with a suggestion when there is no such preset.
Result<Preset> find_preset(std::string_view name);

}  // namespace goodput
