// Phase 3: a few settings near their capacities, over real HTTP.
#include <algorithm>

#include <fmt/format.h>

#include "base/random.h"
#include "map/frontier.h"
#include "map/mapper.h"
#include "map/operating.h"
#include "map/predict.h"

namespace goodput {
// The best by prediction, the largest batch, the best static batch, then the next best, each once.
std::vector<Capacity*> Mapper::to_measure() {
  std::vector<Capacity*> chosen;
  auto& all = result_.capacity;
  const auto add = [&](const Capacity* c) {
    if (c && c->predicted && c->predicted->rate > 0 && static_cast<int>(chosen.size()) < plan_.measured_settings &&
        std::ranges::find(chosen, c) == chosen.end())
      chosen.push_back(const_cast<Capacity*>(c));
  };
  add(&all.front());
  add(largest_batch(all));
  for (const auto& c : all)
    if (c.settings.batching == Batching::kStatic && plan_.measured_settings > 2) {
      add(&c);
      break;
    }
  for (const auto& c : all)
    add(&c);
  return chosen;
}

void Mapper::add_prediction(const PointRequest& request, const MeasuredPoint& measured) {
  if (!found_.engine)
    return;
  auto predicted = predict(request, *found_.engine);
  if (!predicted) {
    result_.notes.push_back("No prediction for " + measured.point.key + ": " + describe(predicted.error()));
    return;
  }
  if (measured.point.verdict.valid()) {
    PredictionError::Row row{.key = measured.point.key,
                             .settings = measured.point.settings,
                             .rate = measured.point.rate,
                             .slowdown = slowdown(measured.steps, found_.engine->cost, measured.point.summary.window),
                             .as_predicted = relative_errors(predicted->point, measured.point),
                             .at_speed = {}};
    if (row.slowdown)
      if (const auto again = predict(request, slower(*found_.engine, *row.slowdown)))
        row.at_speed = relative_errors(again->point, measured.point);
    errors_.push_back(std::move(row));
  }
  // Its prompts have the same lengths and sharing but no text, so its own hash differs; readers pair the two by this
  // one.
  predicted->point.schedule_hash = measured.point.schedule_hash;
  result_.points.push_back(std::move(predicted->point));
}

// What was measured minutes apart is only alike where the machine was.
void Mapper::note_drift() {
  constexpr double kTolerated = 1.2;
  double least = 1, most = 1;
  for (const auto& row : errors_)
    if (row.slowdown) {
      least = std::min(least, *row.slowdown);
      most = std::max(most, *row.slowdown);
    }
  if (most / least > kTolerated)
    result_.notes.push_back(
        fmt::format("The machine's speed drifted: the same iterations took between {:.2f} and {:.2f} times as long as "
                    "in the probe. "
                    "Differences between settings of that size may be the machine's; repeat on a quiet one.",
                    least, most));
}

Result<void> Mapper::measure() {
  progress_.phase(3, kMapPhases, "measure", plan_.measure_time);
  struct Job {
    Capacity* capacity;
    double rate;
  };
  std::vector<Job> jobs;
  for (Capacity* c : to_measure())
    for (const double fraction : plan_.fractions)
      jobs.push_back({c, fraction * c->predicted->rate});
  // Random order, so that a drift of the machine does not look like a difference between settings.
  Random order(options_.seed, "order of points");
  for (size_t i = jobs.size(); i > 1; --i)
    std::swap(jobs[i - 1], jobs[static_cast<size_t>(order.uniform_int(0, static_cast<int64_t>(i) - 1))]);
  const auto rules = class_rules(found_.workload);
  const double share = jobs.empty() ? 1 : 1.0 / double(jobs.size());
  for (size_t i = 0; i < jobs.size(); ++i) {
    const PointRequest request{.phase = "measure",
                               .name = short_text(jobs[i].capacity->settings),
                               .settings = jobs[i].capacity->settings,
                               .workload = workload_at(jobs[i].rate),
                               .seed = mix64(options_.seed, 3),  // the same requests for every setting
                               .warm_up = plan_.warm_up,
                               .window = plan_.measure_window};
    const MeasuredPoint point = TRY(measurer_.run(request, double(i) * share, share));
    result_.points.push_back(point.point);
    add_prediction(request, point);
    const Operating there = operating_at(jobs[i].rate, point.records, rules, point.point.summary.window);
    auto& measured = jobs[i].capacity->measured;
    if (point.point.verdict.valid() && meets_floor(there, options_.floor) && (!measured || there.rate > measured->rate))
      measured = there;
    if (!point.point.verdict.valid())
      result_.notes.push_back(fmt::format("INVALID at {:.2f}/s with {}: {}", jobs[i].rate, short_text(request.settings),
                                          fmt::join(point.point.verdict.reasons, "; ")));
  }
  return {};
}

}  // namespace goodput
