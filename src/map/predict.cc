#include "map/predict.h"

#include <cmath>

#include "load/job.h"
#include "simulate/simulate.h"

namespace goodput {
namespace {

std::optional<double> relative(std::optional<double> predicted, std::optional<double> measured) {
  if (!predicted || !measured || *measured <= 0)
    return std::nullopt;
  return *predicted / *measured - 1;
}

void widen(std::optional<double>& worst, const std::optional<double>& value) {
  if (value && (!worst || std::abs(*value) > std::abs(*worst)))
    worst = value;
}

void widen(RelativeErrors& worst, const RelativeErrors& row) {
  widen(worst.ttft_p50, row.ttft_p50);
  widen(worst.tpot_p50, row.tpot_p50);
  widen(worst.goodput, row.goodput);
}

}  // namespace

Schedule at_rate(const Schedule& unit, double rate) {
  Schedule schedule = unit;
  for (auto& r : schedule.requests)
    r.at = from_seconds(to_seconds(r.at) / rate);
  return schedule;
}

Result<PredictedPoint> predict(const PointRequest& request, const EngineModel& engine) {
  ScheduleOptions options;
  options.seed = request.seed;
  options.duration = request.warm_up + request.window + LoadJob{}.tail;  // as the load generator's
  options.block_size = request.settings.block_size;
  options.max_model_len = request.settings.max_model_len;
  const Schedule schedule = TRY(make_schedule(request.workload, options, nullptr));
  std::vector<StepRecord> steps;
  struct Collect final : StepSink {
    std::vector<StepRecord>& steps;
    explicit Collect(std::vector<StepRecord>& s) : steps(s) {}
    void write(const StepRecord& s) override { steps.push_back(s); }
  } sink(steps);
  SimulateOptions run;
  run.settings = request.settings;
  run.capabilities = capabilities_for(engine.capabilities, request.settings);
  run.cost = engine.cost;
  run.request_overhead = engine.request_overhead;
  run.token_overhead = engine.token_overhead;
  run.steps = &sink;
  SimulateResult result = TRY(simulate(schedule, run));
  const TimePoint start(request.warm_up);
  const Window window{start, start + request.window};
  PredictedPoint out;
  out.point.phase = request.phase;
  out.point.key = "predicted " + point_key(request);
  out.point.executor = "simulated";
  out.point.settings = request.settings;
  out.point.rate = request.workload.rate;
  out.point.seed = request.seed;
  out.point.schedule_hash = schedule.hash;
  out.point.primed = true;
  out.point.summary = summarize(result.records, class_rules(request.workload), window);
  out.point.observed = observe(steps, engine.capabilities.kv.total, window);
  out.records = std::move(result.records);
  return out;
}

std::optional<double> slowdown(std::span<const StepRecord> steps, const StepCost& cost, Window window) {
  double took = 0, expected = 0;
  for (const StepRecord& s : steps) {
    if (s.start < window.start || s.start >= window.end)
      continue;
    took += static_cast<double>(s.duration.count());
    expected += static_cast<double>(cost.of(s.shape).count());
  }
  if (took <= 0 || expected <= 0)
    return std::nullopt;
  return took / expected;
}

EngineModel slower(EngineModel engine, double factor) {
  engine.cost = engine.cost * factor;
  engine.request_overhead = from_seconds(to_seconds(engine.request_overhead) * factor);
  engine.token_overhead = from_seconds(to_seconds(engine.token_overhead) * factor);
  return engine;
}

RelativeErrors relative_errors(const Point& predicted, const Point& measured) {
  const auto &p = predicted.summary, &m = measured.summary;
  return {.ttft_p50 = relative(p.overall.latency.ttft.p50, m.overall.latency.ttft.p50),
          .tpot_p50 = relative(p.overall.latency.tpot.p50, m.overall.latency.tpot.p50),
          .goodput = relative(p.goodput_rps, m.goodput_rps)};
}

PredictionError prediction_error(std::vector<PredictionError::Row> rows) {
  PredictionError error;
  for (const auto& row : rows) {
    widen(error.as_predicted, row.as_predicted);
    widen(error.at_speed, row.at_speed);
  }
  error.rows = std::move(rows);
  return error;
}

}  // namespace goodput
