#include "cli/stored_runs.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/text.h"
#include "metrics/presets.h"
#include "workload/spec.h"

namespace goodput {

void declare_window_flags(CLI::App& app, WindowFlags& f) {
  app.add_option("--window-of", f.of, "bench's JSON of the same run: its window is taken");
  app.add_option("--warm-up", f.warm_up, "of a records file: left out at its start, e.g. 2s");
  app.add_option("--duration", f.duration, "of a records file: length of the window behind the warm-up");
  app.add_flag("--closed-loop", f.closed_loop,
               "of a records file: the window lasts to the last end, not the last arrival");
}

Result<void> place_windows(ResultFile& file, const WindowFlags& f) {
  for (ResultRun& run : file.runs) {
    if (run.window || run.records.empty())
      continue;
    if (!f.of.empty()) {
      run.window = TRY(window_of_bench_json(f.of));
    } else {
      const auto [first, last] = std::ranges::minmax(run.records, {}, &RequestRecord::scheduled);
      Window w{first.scheduled, last.scheduled + Nanos(1)};
      if (f.closed_loop)
        for (const RequestRecord& r : run.records)
          w.end = std::max(w.end, r.closed.value_or(w.end) + Nanos(1));
      if (!f.warm_up.empty())
        w.start += TRY(parse_duration(f.warm_up));
      if (!f.duration.empty())
        w.end = w.start + TRY(parse_duration(f.duration));
      run.window = w;
    }
    const bool any =
        std::ranges::any_of(run.records, [&](const RequestRecord& r) { return run.window->contains(r.scheduled); });
    if (!any)
      return fail(
          ErrorCode::kUsage,
          "no request was scheduled in the window: is --window-of of the same run, and the warm-up shorter than it?",
          file.path);
  }
  return {};
}

Result<std::optional<TargetSet>> targets_of(const std::vector<std::string>& items, const std::string& preset) {
  if (!items.empty() && !preset.empty())
    return fail(ErrorCode::kUsage, "--goodput and --preset exclude each other: a preset is a set of targets");
  if (!preset.empty())
    return std::optional(TRY(find_preset(preset)).targets());
  if (items.empty())
    return std::optional<TargetSet>();
  return std::optional(TRY(parse_targets(items)));
}

Result<std::vector<ClassRule>> rules_of(const ResultRun& run, const std::string& workload,
                                        const std::optional<TargetSet>& targets) {
  std::vector<ClassRule> rules;
  if (!workload.empty())
    rules = class_rules(TRY(load_workload(workload)));
  else if (run.workload_toml)
    rules = class_rules(TRY(parse_workload(*run.workload_toml, "the study's workload")));
  size_t classes = 1;
  for (const RequestRecord& r : run.records)
    classes = std::max<size_t>(classes, r.cls + size_t{1});
  while (rules.size() < classes)
    rules.push_back({.name = classes == 1 ? "all" : fmt::format("class {}", rules.size()), .targets = {}});
  if (targets)
    for (ClassRule& rule : rules)
      rule.targets = *targets;
  return rules;
}

}  // namespace goodput
