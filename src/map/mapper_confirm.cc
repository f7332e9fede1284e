// Phase 4: the choice against the rules of thumb and without the background classes, on fresh seeds, in replicates.
#include <algorithm>

#include <fmt/format.h>

#include "base/random.h"
#include "map/choose.h"
#include "map/frontier.h"
#include "map/mapper.h"
#include "map/predict.h"
#include "map/target.h"
#include "map/ttft_map.h"

namespace goodput {
namespace {

double interactive_goodput(const PointSummary& s) { return s.interactive_goodput_rps; }

// The interactive classes alone, and which share of the arrivals they are.
std::pair<WorkloadSpec, double> without_background(const WorkloadSpec& workload) {
  WorkloadSpec quiet = workload;
  double kept = 0, all = 0;
  for (const auto& c : quiet.classes) {
    all += c.share;
    if (c.targets.interactive())
      kept += c.share;
  }
  std::erase_if(quiet.classes, [](const ClassSpec& c) { return !c.targets.interactive(); });
  return {std::move(quiet), kept / all};
}

}  // namespace

Result<std::vector<MeasuredPoint>> Mapper::replicate(const std::string& phase, const std::string& name,
                                                     const WorkloadSpec& workload, const Settings& settings,
                                                     double rate, int n) {
  std::vector<MeasuredPoint> runs;
  for (int i = 0; i < n; ++i) {
    WorkloadSpec spec = workload;
    spec.rate = rate;
    const PointRequest request{
        .phase = phase,
        .name = name,
        .settings = settings,
        .workload = spec,
        .seed = mix64(options_.seed, 100 + static_cast<uint64_t>(i)),  // fresh: never the search's
        .warm_up = plan_.warm_up,
        .window = plan_.confirm_window};
    runs.push_back(TRY(measurer_.run(request, confirmed_, confirm_share_)));
    confirmed_ += confirm_share_;
    result_.points.push_back(runs.back().point);
    if (phase == "confirm")
      add_prediction(request, runs.back().point);
  }
  return runs;
}

void Mapper::choose(const Capacity& best, double rate, const std::vector<MeasuredPoint>& runs) {
  Choice choice;
  choice.settings = best.settings;
  choice.offered_rate = rate;
  choice.goodput = goodput_estimate(runs, [](const PointSummary& s) { return s.goodput_rps; });
  if (found_.engine && best.predicted) {
    choice.capacity_rate = best.predicted->rate;
    choice.headroom = best.predicted->rate / rate - 1;
    choice.not_separable_from = not_separable(result_.capacity, best.settings, 0.05);
  }
  choice.undecided = undecided(runs, options_.floor);
  if (options_.target == TargetKind::kLaunched)
    choice.flags = render_launch(options_.launch, 0, best.settings).value_or("");
  if (options_.target == TargetKind::kEmbedded)
    choice.flags = "goodput serve " + serve_flags(best.settings);
  choice.why = fmt::format(
      "{} sustains the most good requests: every class stays at or above {:.0f} % attainment up to about "
      "{:.2f} requests/s.",
      short_text(best.settings), 100 * options_.floor, choice.capacity_rate.value_or(rate));
  result_.chosen = std::move(choice);
}

Result<Rule> Mapper::measure_rule(const Capacity& c, const Capacity& best, const std::vector<MeasuredPoint>& runs) {
  Rule rule{.settings = c.settings};
  if (c.settings == best.settings) {
    rule.goodput = result_.chosen->goodput;
    rule.regret = Estimate{0, 0.0, 0.0};
    rule.measured = true;
    return rule;
  }
  const double rate = confirmation_rate(c);
  if (rate <= 0) {
    rule.regret.value = 1;  // it has no capacity at all
    return rule;
  }
  const auto rule_runs = TRY(replicate("confirm", "the rule", found_.workload, c.settings, rate, plan_.replicates));
  rule.goodput = goodput_estimate(rule_runs, [](const PointSummary& s) { return s.goodput_rps; });
  rule.regret = regret_estimate(rule_runs, runs);
  rule.measured = true;
  return rule;
}

Result<void> Mapper::compare_rules(const Capacity& best, const std::vector<MeasuredPoint>& runs) {
  const Capacity* largest = largest_batch(result_.capacity);
  if (largest)
    result_.largest_batch = TRY(measure_rule(*largest, best, runs));
  const Capacity* offline = best_offline(result_.capacity);
  if (!offline)
    return {};
  if (largest && offline->settings == largest->settings) {
    result_.offline_throughput = result_.largest_batch;
  } else if (offline->settings == best.settings || !found_.engine) {
    result_.offline_throughput = TRY(measure_rule(*offline, best, runs));
  } else if (offline->predicted && best.predicted) {
    // Simulated on both sides: the minutes go to the choice and to the rule that people follow.
    result_.offline_throughput =
        Rule{.settings = offline->settings,
             .goodput = {.value = offline->predicted->goodput_rps},
             .regret = {.value = 1 - offline->predicted->goodput_rps / best.predicted->goodput_rps}};
  }
  return {};
}

Result<void> Mapper::compare_background(const Capacity& best, double rate, const std::vector<MeasuredPoint>& runs) {
  const auto [quiet, share] = without_background(found_.workload);
  if (quiet.classes.empty() || share >= 1 || plan_.background_replicates == 0)
    return {};
  // The same interactive arrivals per second, alone.
  const auto alone = TRY(
      replicate("background", "without background", quiet, best.settings, rate * share, plan_.background_replicates));
  result_.background =
      BackgroundCost{goodput_estimate(runs, interactive_goodput), goodput_estimate(alone, interactive_goodput), true};
  return {};
}

void Mapper::draw_ttft_map(const Capacity& best, double rate, const std::vector<MeasuredPoint>& runs) {
  std::vector<RequestRecord> records;
  for (const auto& r : runs)
    records.insert(records.end(), r.records.begin(), r.records.end());
  result_.ttft_map = TtftMap{.settings = best.settings, .measured = ttft_cells(records), .predicted = {}};
  if (!found_.engine)
    return;
  const PointRequest longer{.phase = "ttft map",
                            .name = "",
                            .settings = best.settings,
                            .workload = workload_at(rate),
                            .seed = mix64(options_.seed, 5),
                            .warm_up = seconds(2),
                            .window = seconds(120)};
  if (auto predicted = predict(longer, *found_.engine))
    result_.ttft_map->predicted = ttft_cells(predicted->records);
}

Result<void> Mapper::confirm() {
  progress_.phase(4, kMapPhases, "confirm", plan_.confirm_time);
  const Capacity* best = best_measured(result_.capacity);
  if (!best) {
    result_.notes.push_back(
        fmt::format("No measured point kept every class at or above {:.0f} % attainment: there is no choice. "
                    "Loosen the targets or use a faster machine.",
                    100 * options_.floor));
    return {};
  }
  confirm_share_ = 1.0 / double(2 * plan_.replicates + plan_.background_replicates);
  const double rate = confirmation_rate(*best);
  const auto runs = TRY(replicate("confirm", "the choice", found_.workload, best->settings, rate, plan_.replicates));
  choose(*best, rate, runs);
  TRY(compare_rules(*best, runs));
  TRY(compare_background(*best, rate, runs));
  draw_ttft_map(*best, rate, runs);
  return {};
}

}  // namespace goodput
