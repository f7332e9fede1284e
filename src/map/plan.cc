#include "map/plan.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/limits.h"
#include "base/text.h"

namespace goodput {
namespace {

constexpr Nanos kPointOverhead = milliseconds(1300);  // start, priming, drain and stop of one point on the default mix
constexpr Nanos kShortestWindow = seconds(2);
constexpr Nanos kLongestWindow = seconds(120);

Settings with(Settings s, int seqs, Tokens budget) {
  s.max_num_seqs = seqs;
  s.max_num_batched_tokens = budget;
  return s;
}

// One unloaded probe per class, then closed loops that fill batches of every size and budget of the grid, so that the
// cost model sees the compositions it will be asked about.
std::vector<MapPlan::Probe> probes_for(const MapOptions& options, Nanos time) {
  const auto& grid = options.grid;
  std::vector<MapPlan::Probe> probes;
  const int most = std::ranges::max(grid.max_num_seqs);
  const Tokens budget = std::ranges::max(grid.max_num_batched_tokens);
  for (size_t c = 0; c < options.workload.classes.size(); ++c)
    probes.push_back({"unloaded " + options.workload.classes[c].name, with(grid.base, most, budget), 1, c, Nanos(0)});
  if (options.target != TargetKind::kRemote) {
    for (size_t i = 0; i < grid.max_num_seqs.size(); ++i) {
      const int seqs = grid.max_num_seqs[i];
      const Tokens tokens = std::max(grid.max_num_batched_tokens[i % grid.max_num_batched_tokens.size()], Tokens(seqs));
      probes.push_back({fmt::format("{} at once, {} tokens", seqs, tokens.count()), with(grid.base, seqs, tokens), seqs,
                        std::nullopt, Nanos(0)});
    }
    probes.push_back({fmt::format("backlog, {} tokens", budget.count()), with(grid.base, most, budget), 2 * most,
                      std::nullopt, Nanos(0)});
  } else {
    for (const int at_once : {4, 16, 64})
      probes.push_back({fmt::format("{} at once", at_once), grid.base, at_once, std::nullopt, Nanos(0)});
  }
  const Nanos each = std::max(milliseconds(1000), time / static_cast<int64_t>(probes.size()) - kPointOverhead / 2);
  for (auto& probe : probes)
    probe.length = each;
  return probes;
}

}  // namespace

Result<std::vector<Settings>> settings_of(const Grid& grid) {
  std::vector<Settings> all;
  for (const int seqs : grid.max_num_seqs)
    for (const Tokens budget : grid.max_num_batched_tokens)
      for (const auto policy : grid.policies) {
        Settings s = with(grid.base, seqs, budget);
        s.scheduling_policy = policy;
        s.batching = Batching::kContinuous;
        if (validate(s))
          all.push_back(s);
      }
  if (grid.with_static && !grid.max_num_batched_tokens.empty())
    for (const int seqs : grid.max_num_seqs) {
      Settings s = with(grid.base, seqs, std::ranges::max(grid.max_num_batched_tokens));
      s.batching = Batching::kStatic;
      if (validate(s))
        all.push_back(s);
    }
  if (all.empty())
    return fail(ErrorCode::kUsage, "no combination of the grid's settings is possible");
  if (all.size() > static_cast<size_t>(limits::kMaxSettings))
    return fail(ErrorCode::kUsage, fmt::format("the grid has {} settings; at most {} are mapped in one study",
                                               all.size(), limits::kMaxSettings));
  return all;
}

Result<MapPlan> make_plan(const MapOptions& options) {
  TRY(validate(options.workload));
  if (options.grid.max_num_seqs.empty() || options.grid.max_num_batched_tokens.empty() || options.grid.policies.empty())
    return fail(ErrorCode::kUsage, "the grid needs at least one value of each setting");
  MapPlan plan;
  plan.grid = TRY(settings_of(options.grid));
  plan.point_overhead = kPointOverhead;
  plan.probe_time = std::clamp(options.budget / 10, seconds(8), seconds(60));
  plan.probes = probes_for(options, plan.probe_time);
  plan.screen_time =
      options.target == TargetKind::kEmbedded ? std::clamp(options.budget / 15, seconds(4), seconds(40)) : Nanos(0);

  // The screen takes its share of the budget, down to what still tells settings apart.
  plan.screen_requests = static_cast<int>(std::clamp(2000 * to_seconds(options.budget) / 300, 400.0, 2000.0));
  plan.finalist_requests = 10 * plan.screen_requests;

  // Long enough windows come first: fewer settings and rates rather than points that say nothing.
  const Nanos left = options.budget - plan.probe_time - plan.screen_time - seconds(4);
  struct Shape {
    int settings;
    std::vector<double> fractions;
    int replicates, background;
  };
  const Shape shapes[] = {{4, {0.6, 0.8, 0.95}, 3, 2}, {3, {0.7, 0.95}, 3, 1}, {2, {0.9}, 3, 0}, {2, {0.9}, 2, 0}};
  for (const Shape& shape : shapes) {
    const int measured = shape.settings * static_cast<int>(shape.fractions.size());
    const int confirmed = 2 * shape.replicates + shape.background;
    const Nanos window = left / (measured + confirmed) - kPointOverhead;
    plan.measured_settings = shape.settings;
    plan.fractions = shape.fractions;
    plan.replicates = shape.replicates;
    plan.background_replicates = shape.background;
    plan.warm_up = std::clamp(window / 8, milliseconds(500), seconds(5));
    plan.measure_window = plan.confirm_window = std::min(window - plan.warm_up, kLongestWindow);
    plan.measure_time = (plan.measure_window + plan.warm_up + kPointOverhead) * measured;
    plan.confirm_time = (plan.confirm_window + plan.warm_up + kPointOverhead) * confirmed;
    if (plan.measure_window >= seconds(6))
      break;
  }
  if (plan.measure_window < kShortestWindow)
    return fail(ErrorCode::kUsage,
                fmt::format("a budget of {} is too short: windows would be under {}; give at least 45s",
                            format_duration(options.budget), format_duration(kShortestWindow)),
                "--budget");
  plan.descriptors = 256;
  return plan;
}

}  // namespace goodput
