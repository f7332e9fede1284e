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

// Replicate by replicate over all arms, not arm by arm: a machine that drifts then slows all of them alike, and what is
// compared was measured within the same minute.
Result<void> Mapper::replicate(std::vector<Arm>& arms) {
  int total = 0, most = 0;
  for (const Arm& arm : arms) {
    total += arm.replicates;
    most = std::max(most, arm.replicates);
  }
  int done = 0;
  for (int i = 0; i < most; ++i)
    for (Arm& arm : arms) {
      if (i >= arm.replicates)
        continue;
      const PointRequest request{
          .phase = arm.phase,
          .name = arm.name,
          .settings = arm.settings,
          .workload = arm.workload,
          .seed = mix64(options_.seed, 100 + static_cast<uint64_t>(i)),  // fresh: never the search's
          .warm_up = plan_.warm_up,
          .window = plan_.confirm_window};
      arm.runs.push_back(TRY(measurer_.run(request, double(done) / total, 1.0 / total)));
      ++done;
      result_.points.push_back(arm.runs.back().point);
      if (arm.phase == "confirm")
        add_prediction(request, arm.runs.back());
    }
  return {};
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

// The rule's runs are among the arms, unless its settings are the choice's or have no capacity at all.
Rule Mapper::rule_of(const Capacity& c, const Capacity& best, const std::vector<Arm>& arms) const {
  Rule rule{.settings = c.settings};
  if (c.settings == best.settings) {
    rule.goodput = result_.chosen->goodput;
    rule.regret = Estimate{0, 0.0, 0.0};
    rule.measured = true;
    return rule;
  }
  const auto arm =
      std::ranges::find_if(arms, [&](const Arm& a) { return a.phase == "confirm" && a.settings == c.settings; });
  if (arm == arms.end()) {
    rule.regret.value = 1;
    return rule;
  }
  rule.goodput = goodput_estimate(arm->runs, [](const PointSummary& s) { return s.goodput_rps; });
  rule.regret = regret_estimate(arm->runs, arms.front().runs);
  rule.measured = true;
  return rule;
}

void Mapper::compare_rules(const Capacity& best, const std::vector<Arm>& arms) {
  const Capacity* largest = largest_batch(result_.capacity);
  if (largest)
    result_.largest_batch = rule_of(*largest, best, arms);
  const Capacity* offline = best_offline(result_.capacity);
  if (!offline)
    return;
  if (largest && offline->settings == largest->settings) {
    result_.offline_throughput = result_.largest_batch;
  } else if (offline->settings == best.settings || !found_.engine) {
    result_.offline_throughput = rule_of(*offline, best, arms);
  } else if (offline->predicted && best.predicted) {
    // Simulated on both sides: the minutes go to the choice and to the rule that people follow.
    result_.offline_throughput =
        Rule{.settings = offline->settings,
             .goodput = {.value = offline->predicted->goodput_rps},
             .regret = {.value = 1 - offline->predicted->goodput_rps / best.predicted->goodput_rps}};
  }
}

// The choice first, then the rules that are measured, then the interactive classes alone at their own arrivals per
// second.
std::vector<Mapper::Arm> Mapper::arms_of(const Capacity& best) const {
  std::vector<Arm> arms;
  const auto add = [&](const Capacity* c, const char* name) {
    const bool known = c && std::ranges::any_of(arms, [&](const Arm& a) { return a.settings == c->settings; });
    if (c && !known && confirmation_rate(*c) > 0)
      arms.push_back({"confirm", name, workload_at(confirmation_rate(*c)), c->settings, plan_.replicates, {}});
  };
  add(&best, "the choice");
  add(largest_batch(result_.capacity), "the rule");
  if (!found_.engine)
    add(best_offline(result_.capacity), "the rule");
  auto [quiet, share] = without_background(found_.workload);
  if (!quiet.classes.empty() && share < 1 && plan_.background_replicates > 0) {
    quiet.rate = confirmation_rate(best) * share;
    arms.push_back(
        {"background", "without background", std::move(quiet), best.settings, plan_.background_replicates, {}});
  }
  return arms;
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
  std::vector<Arm> arms = arms_of(*best);
  TRY(replicate(arms));
  const double rate = arms.front().workload.rate;
  const auto& runs = arms.front().runs;
  choose(*best, rate, runs);
  compare_rules(*best, arms);
  if (arms.back().phase == "background")
    result_.background = BackgroundCost{goodput_estimate(runs, interactive_goodput),
                                        goodput_estimate(arms.back().runs, interactive_goodput), true};
  draw_ttft_map(*best, rate, runs);
  return {};
}

}  // namespace goodput
