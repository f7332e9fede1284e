// Phase 2: where each setting's capacity lies, by simulation, or by a backlog where nothing can be simulated.
#include <algorithm>

#include <fmt/format.h>

#include "base/process.h"
#include "base/random.h"
#include "map/mapper.h"
#include "map/screen.h"
#include "map/target.h"

namespace goodput {
Result<void> Mapper::screen_settings() {
  progress_.phase(2, kMapPhases, "screen", plan_.screen_time);
  ScreenOptions options{.workload = found_.workload,
                        .floor = options_.floor,
                        .seed = mix64(options_.seed, 2),
                        .requests = plan_.screen_requests,
                        .finalists = plan_.measured_settings + 1,
                        .finalist_requests = plan_.finalist_requests,
                        .threads = static_cast<int>(std::max<size_t>(1, allowed_cpus().size()))};
  result_.capacity = TRY(screen(
      plan_.grid, *found_.engine, options,
      [&](double done) { progress_.update(done, fmt::format("{} settings on virtual time", plan_.grid.size())); },
      stop_));
  if (const Capacity& top = result_.capacity.front(); top.predicted)
    progress_.note(fmt::format("predicted best: {} with {:.2f} good requests/s at {:.2f}/s", short_text(top.settings),
                               top.predicted->goodput_rps, top.predicted->rate));
  return {};
}

// Without a step log there is no simulator: the backlog's rate is the upper end of what each setting can sustain.
Result<void> Mapper::bracket_by_backlog() {
  progress_.phase(2, kMapPhases, "backlog", plan_.probe_time);
  std::vector<Settings> settings =
      options_.target == TargetKind::kRemote ? std::vector{options_.grid.base} : plan_.grid;
  if (options_.target == TargetKind::kLaunched) {
    std::vector<std::string> seen;
    std::erase_if(settings, [&](const Settings& s) {
      const auto command = render_launch(options_.launch, 1, s);
      if (!command || std::ranges::find(seen, *command) != seen.end())
        return true;
      seen.push_back(*command);
      return false;
    });
  }
  const double share = 1.0 / double(settings.size());
  for (size_t i = 0; i < settings.size(); ++i) {
    WorkloadSpec workload = found_.workload;
    workload.arrivals = ArrivalKind::kClosed;
    workload.concurrency = std::max(2 * settings[i].max_num_seqs, 16);
    const MeasuredPoint point = TRY(measurer_.run({.phase = "probe",
                                                   .name = "backlog, " + short_text(settings[i]),
                                                   .settings = settings[i],
                                                   .workload = workload,
                                                   .seed = mix64(options_.seed, 2000 + i),
                                                   .warm_up = seconds(1),
                                                   .window = std::max(plan_.measure_window / 3, seconds(2)),
                                                   .concurrency = workload.concurrency},
                                                  double(i) * share, share));
    Capacity c{.settings = settings[i]};
    c.offline_tokens_per_s = point.point.summary.throughput.output_tokens_per_s;
    // Stands in for a predicted capacity when rates are chosen; it is not a capacity and is not reported as one.
    c.predicted = Operating{.rate = point.point.summary.throughput.requests_per_s};
    result_.points.push_back(point.point);
    result_.capacity.push_back(std::move(c));
  }
  std::ranges::stable_sort(result_.capacity, std::greater{}, [](const Capacity& c) { return c.predicted->rate; });
  result_.notes.push_back(
      "The server's own step log is not available, so nothing is simulated: rates are shares of each "
      "setting's backlog throughput, and only measured settings are compared.");
  return {};
}

}  // namespace goodput
