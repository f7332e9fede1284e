// See presets.h. Pure; any thread.
#include "metrics/presets.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/text.h"

namespace goodput {
namespace {

constexpr Preset kPresets[] = {
    {"first-token-2s", 2000, std::nullopt, false},        {"mlperf-llama2-70b", 2000, 200, true},
    {"mlperf-llama2-70b-interactive", 450, 40, true},     {"mlperf-llama3.1-405b", 6000, 175, true},
    {"mlperf-llama3.1-405b-interactive", 4500, 80, true}, {"mlperf-llama3.1-8b", 2000, 100, true},
    {"mlperf-llama3.1-8b-interactive", 500, 30, true},    {"mlperf-deepseek-r1", 2000, 80, true},
    {"mlperf-deepseek-r1-interactive", 1500, 15, true},   {"mlperf-gpt-oss-120b", 3000, 80, true},
    {"mlperf-gpt-oss-120b-interactive", 2000, 15, true},  {"mlperf-mixtral", 2000, 200, true},
};

}  // namespace

TargetSet Preset::targets() const {
  TargetSet set;
  set[TargetKey::kTtft] = from_ms(ttft_ms);
  if (tpot_ms)
    set[TargetKey::kTpot] = from_ms(*tpot_ms);
  return set;
}

std::span<const Preset> presets() { return kPresets; }

Result<Preset> find_preset(std::string_view name) {
  const auto* const found = std::ranges::find(kPresets, name, &Preset::name);
  if (found != std::end(kPresets))
    return *found;
  std::vector<std::string_view> names;
  for (const Preset& p : kPresets)
    names.push_back(p.name);
  const auto near = nearest(name, names);
  return fail(ErrorCode::kUsage,
              fmt::format("there is no preset '{}'{}; the presets are {}", name,
                          near ? fmt::format(", did you mean '{}'?", *near) : "", fmt::join(names, ", ")));
}

}  // namespace goodput
