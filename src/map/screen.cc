#include "map/screen.h"

#include <algorithm>
#include <cmath>
#include <mutex>
#include <thread>

#include "map/frontier.h"
#include "map/operating.h"
#include "map/predict.h"

namespace goodput {
namespace {

constexpr double kTolerance = 1.02;  // ratio of the bracket's ends at which a capacity is known well enough
constexpr int kMostSteps = 24;

SimulateOptions options_for(const Settings& settings, const EngineModel& engine) {
  SimulateOptions options;
  options.settings = settings;
  options.capabilities = capabilities_for(engine.capabilities, settings);
  options.cost = engine.cost;
  options.request_overhead = engine.request_overhead;
  options.token_overhead = engine.token_overhead;
  return options;
}

// The first tenth of the arrivals meets an empty server and is not counted.
Window window_of(const Schedule& schedule, double rate) {
  const auto at = [&](size_t i) { return TimePoint(from_seconds(to_seconds(schedule.requests[i].at) / rate)); };
  return {at(schedule.requests.size() / 10), at(schedule.requests.size() - 1) + Nanos(1)};
}

// Output tokens per second of a server that never runs out of work: what an offline throughput chart shows.
Result<double> backlog_tokens_per_s(const Settings& settings, const EngineModel& engine, const Schedule& unit) {
  SimulateOptions options = options_for(settings, engine);
  options.concurrency = 2 * settings.max_num_seqs;
  const SimulateResult result = TRY(simulate(unit, options));
  int64_t tokens = 0;
  for (const auto& r : result.records)
    tokens += r.output_tokens.value_or(Tokens(0)).count();
  const double length = to_seconds(result.end.since_zero());
  return length > 0 ? double(tokens) / length : 0.0;
}

double requests_per_s(const Schedule& unit, double tokens_per_s) {
  int64_t tokens = 0;
  for (const auto& r : unit.requests)
    tokens += r.output.count();
  return tokens_per_s * double(unit.requests.size()) / double(std::max<int64_t>(tokens, 1));
}

bool attains(const AttainmentOnly& there, double floor) {
  return there.unmeasurable == 0 &&
         std::ranges::all_of(there.by_class, [&](const Count& c) { return c.good >= floor * c.scheduled; });
}

WorkloadSpec at_unit_rate(WorkloadSpec workload) {
  workload.arrivals = ArrivalKind::kPoisson;
  workload.rate = 1;
  workload.trace.reset();
  return workload;
}

// Runs `work(i)` for i in [0, n) on `threads` threads; the first error ends it.
Result<void> in_parallel(size_t n, int threads, const std::atomic<bool>& stop,
                         const std::function<Result<void>(size_t)>& work) {
  std::atomic<size_t> next = 0;
  std::mutex mutex;
  Result<void> outcome;
  const auto run = [&] {
    for (size_t i = next++; i < n; i = next++) {
      Result<void> done = stop ? fail(ErrorCode::kInterrupted, "interrupted") : work(i);
      if (done)
        continue;
      std::lock_guard lock(mutex);
      if (outcome)
        outcome = std::move(done);
      next = n;
    }
  };
  {
    std::vector<std::jthread> pool;
    for (int t = 1; t < threads; ++t)
      pool.emplace_back(run);
    run();
  }
  return outcome;
}

}  // namespace

Capabilities capabilities_for(Capabilities c, const Settings& settings) {
  c.max_batch_tokens = settings.max_num_batched_tokens;
  return c;
}

Result<Operating> simulate_at(const Settings& settings, const EngineModel& engine, const Schedule& unit,
                              const WorkloadSpec& workload, double rate) {
  const SimulateResult result = TRY(simulate(at_rate(unit, rate), options_for(settings, engine)));
  return operating_at(rate, result.records, class_rules(workload), window_of(unit, rate));
}

Result<Capacity> find_capacity(const Settings& settings, const EngineModel& engine, const Schedule& unit,
                               const WorkloadSpec& workload, double floor, double guess) {
  Capacity capacity{.settings = settings};
  capacity.offline_tokens_per_s = TRY(backlog_tokens_per_s(settings, engine, unit));
  const double most = requests_per_s(unit, *capacity.offline_tokens_per_s);
  if (most <= 0)
    return capacity;
  const auto rules = class_rules(workload);
  double low = 0, high = 1.05 * most;  // nothing sustains more than the backlog's rate for long
  double rate = guess > 0 ? std::min(guess, high) : 0.6 * most;
  // Below a thousandth of the backlog's rate the server is empty: it misses the targets whatever the rate.
  for (int step = 0; step < kMostSteps && rate > 1e-3 * most && (low == 0 || high / low > kTolerance); ++step) {
    const SimulateResult result = TRY(simulate(at_rate(unit, rate), options_for(settings, engine)));
    const AttainmentOnly there = quick_attainment(result.records, rules, window_of(unit, rate));
    (attains(there, floor) ? low : high) = rate;
    rate = low == 0 ? high / 1.7 : std::sqrt(low * high);
  }
  if (low > 0)
    capacity.predicted = TRY(simulate_at(settings, engine, unit, workload, low));
  return capacity;
}

Result<std::vector<Capacity>> screen(const std::vector<Settings>& grid, const EngineModel& engine,
                                     const ScreenOptions& options, const std::function<void(double)>& progress,
                                     const std::atomic<bool>& stop) {
  const WorkloadSpec unit_workload = at_unit_rate(options.workload);
  const auto schedule_of = [&](int requests) {
    ScheduleOptions o;
    o.seed = options.seed;
    o.requests = static_cast<uint64_t>(requests);
    o.max_model_len = grid.front().max_model_len;
    o.block_size = grid.front().block_size;
    return make_schedule(unit_workload, o, nullptr);
  };
  const Schedule brief = TRY(schedule_of(options.requests));
  std::vector<Capacity> all(grid.size());
  std::atomic<size_t> done = 0;
  // A finalist's run is as long as ten of the others.
  const double weight = double(options.finalist_requests) / options.requests;
  const double total = double(grid.size()) + weight * options.finalists;
  TRY(in_parallel(grid.size(), options.threads, stop, [&](size_t i) -> Result<void> {
    all[i] = TRY(find_capacity(grid[i], engine, brief, options.workload, options.floor, 0));
    progress(double(++done) / total);
    return {};
  }));
  sort_by_goodput(all);

  std::vector<Capacity*> finalists;
  for (auto& c : all)
    if (c.predicted && static_cast<int>(finalists.size()) < options.finalists)
      finalists.push_back(&c);
  for (const Capacity* rule : {largest_batch(all), best_offline(all)})
    if (rule && std::ranges::find(finalists, rule) == finalists.end())
      finalists.push_back(const_cast<Capacity*>(rule));
  const auto best_static =
      std::ranges::find_if(all, [](const Capacity& c) { return c.settings.batching == Batching::kStatic; });
  if (best_static != all.end() && std::ranges::find(finalists, &*best_static) == finalists.end())
    finalists.push_back(&*best_static);
  const Schedule lengthy = TRY(schedule_of(options.finalist_requests));
  std::atomic<size_t> refined = 0;
  TRY(in_parallel(finalists.size(), options.threads, stop, [&](size_t i) -> Result<void> {
    const double guess = finalists[i]->predicted ? finalists[i]->predicted->rate : 0;
    *finalists[i] = TRY(find_capacity(finalists[i]->settings, engine, lengthy, options.workload, options.floor, guess));
    progress((double(grid.size()) + weight * double(++refined) * options.finalists / double(finalists.size())) / total);
    return {};
  }));
  sort_by_goodput(all);
  return all;
}

}  // namespace goodput
