#include "map/probe.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "metrics/request_metrics.h"

namespace goodput {
namespace {

std::optional<double> median_ms(std::vector<double> values) {
  std::ranges::sort(values);
  return percentile(values, 0.5);
}

// Client-side TTFT less the engine's own part of it: connection, HTTP, tokenization, delivery.
std::vector<double> overheads_ns(const std::vector<MeasuredPoint>& points) {
  std::vector<double> values;
  for (const auto& point : points)
    for (const auto& r : point.records) {
      const auto t = ttft_service(r);
      if (!t || !r.server || !r.server->queued || !r.server->first_token)
        continue;
      values.push_back(double((*t - (*r.server->first_token - *r.server->queued)).count()));
    }
  return values;
}

// Three significant digits, upwards: a target is for people to read and repeat.
double readable(double ms) {
  if (ms <= 0)
    return ms;
  const double unit = std::pow(10.0, std::floor(std::log10(ms)) - 2);
  return std::ceil(ms / unit) * unit;
}

// A relative target becomes milliseconds; one that the user gave in milliseconds stays.
void resolve(ClassSpec& c, double ttft_ms, double tpot_ms, double e2e_ms) {
  const auto set = [&](TargetKey key, const std::optional<double>& times, double unloaded_ms) {
    if (times && !c.targets[key])
      c.targets[key] = from_ms(readable(*times * unloaded_ms));
  };
  set(TargetKey::kTtft, c.ttft_times_unloaded, ttft_ms);
  set(TargetKey::kTpot, c.gap_times_unloaded, tpot_ms);
  set(TargetKey::kE2el, c.e2e_times_unloaded, e2e_ms);
}

}  // namespace

Result<ProbeFindings> read_probe(const WorkloadSpec& workload, const std::vector<MeasuredPoint>& unloaded,
                                 const std::vector<MeasuredPoint>& loaded) {
  ProbeFindings found{.workload = workload};
  for (size_t c = 0; c < workload.classes.size(); ++c) {
    ClassSpec& spec = found.workload.classes[c];
    std::vector<double> ttfts, tpots, e2es;
    for (const auto& r : unloaded.at(c).records) {
      if (r.outcome != Outcome::kOk)
        continue;
      if (const auto t = ttft(r))
        ttfts.push_back(to_ms(*t));
      if (const auto t = tpot_ns(r))
        tpots.push_back(*t * 1e-6);
      if (const auto t = e2e(r))
        e2es.push_back(to_ms(*t));
    }
    const auto ttft_ms = median_ms(ttfts), tpot_ms = median_ms(tpots), e2e_ms = median_ms(e2es);
    if (!ttft_ms || !tpot_ms || !e2e_ms)
      return fail(
          ErrorCode::kFailed,
          fmt::format("the unloaded probe of class '{}' brought no request to its end ({} were sent); is the server "
                      "answering? is its context long enough?",
                      spec.name, unloaded.at(c).records.size()));
    found.unloaded_ms[spec.name] = {*ttft_ms, *tpot_ms};
    resolve(spec, *ttft_ms, *tpot_ms, *e2e_ms);
  }

  std::vector<StepRecord> steps;
  std::optional<Capabilities> capabilities;
  for (const auto* points : {&unloaded, &loaded})
    for (const auto& p : *points) {
      steps.insert(steps.end(), p.steps.begin(), p.steps.end());
      if (p.capabilities)
        capabilities = p.capabilities;
    }
  if (steps.empty() || !capabilities)
    return found;
  found.fit = TRY(fit_step_cost(steps));
  found.engine = EngineModel{.cost = found.fit->cost,
                             .capabilities = *capabilities,
                             .request_overhead = from_ms(median_ms(overheads_ns(unloaded)).value_or(0) * 1e-6),
                             .token_overhead = Nanos(0)};
  return found;
}

}  // namespace goodput
