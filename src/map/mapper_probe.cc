// Phase 1: unloaded latencies, and the cost of an iteration from the step log.
#include <fmt/format.h>

#include "base/random.h"
#include "map/mapper.h"
#include "map/timeline.h"
#include "metrics/targets.h"

namespace goodput {
Result<void> Mapper::probe() {
  progress_.phase(1, kMapPhases, "probe", plan_.probe_time);
  std::vector<MeasuredPoint> unloaded, loaded;
  const double share = 1.0 / double(plan_.probes.size());
  for (size_t i = 0; i < plan_.probes.size(); ++i) {
    const auto& p = plan_.probes[i];
    WorkloadSpec workload = options_.workload;
    if (p.only_class)
      workload.classes = {workload.classes[*p.only_class]};
    workload.arrivals = ArrivalKind::kClosed;
    workload.concurrency = p.concurrency;
    MeasuredPoint point = TRY(measurer_.run({.phase = "probe",
                                             .name = p.name,
                                             .settings = p.settings,
                                             .workload = workload,
                                             .seed = mix64(options_.seed, 1000 + i),
                                             .warm_up = milliseconds(300),
                                             .window = p.length,
                                             .concurrency = p.concurrency},
                                            double(i) * share, share));
    result_.points.push_back(point.point);
    (p.only_class ? unloaded : loaded).push_back(std::move(point));
  }
  found_ = TRY(read_probe(options_.workload, unloaded, loaded));
  result_.workload = found_.workload;
  result_.workload_hash = workload_hash(found_.workload);
  result_.unloaded_ms = found_.unloaded_ms;
  for (const auto& c : found_.workload.classes)
    progress_.note(fmt::format("{}: unloaded TTFT {:.1f} ms, TPOT {:.2f} ms; targets {}", c.name,
                               found_.unloaded_ms.at(c.name).first, found_.unloaded_ms.at(c.name).second,
                               c.targets.empty() ? "none" : to_text(c.targets)));
  if (found_.fit) {
    result_.cost = found_.fit->cost;
    result_.cost_median_error = found_.fit->median_relative_error;
    result_.cost_p90_error = found_.fit->p90_relative_error;
    result_.timelines = TRY(example_timelines(found_.fit->cost));
  }
  return {};
}

}  // namespace goodput
