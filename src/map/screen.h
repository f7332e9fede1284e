// Capacities by simulation: the same scheduler on virtual time, with the costs fitted from this engine's own step log.
// Supplies the numbers that a few minutes of measuring cannot: at a few requests per second a window holds too few
// requests to tell settings apart.
#pragma once

#include <atomic>
#include <functional>
#include <vector>

#include "base/result.h"
#include "map/result.h"
#include "scheduler/capabilities.h"
#include "scheduler/cost.h"
#include "simulate/simulate.h"
#include "workload/spec.h"

namespace goodput {

// What the probe learned of the engine and of the way to it.
struct EngineModel {
  StepCost cost;
  Capabilities capabilities;
  Nanos request_overhead, token_overhead;
};

// The same engine under other settings: the token budget is the executor's batch size, the rest is the model's and the
// cache's.
Capabilities capabilities_for(Capabilities, const Settings&);

struct ScreenOptions {
  WorkloadSpec workload;  // targets resolved
  double floor = 0.90;
  uint64_t seed = 1;
  int requests = 2000;  // per simulated run
  int finalists = 6;    // of the best, simulated again with
  int finalist_requests = 20000;
  int threads = 2;
};

// Simulates one setting at one rate.
Result<Operating> simulate_at(const Settings&, const EngineModel&, const Schedule& at_unit_rate, const WorkloadSpec&,
                              double rate);
// The largest rate at which every class attains the floor, within 2 %; `predicted` absent when even a nearly empty
// server misses it. `guess`: where to look first, or 0.
Result<Capacity> find_capacity(const Settings&, const EngineModel&, const Schedule& at_unit_rate, const WorkloadSpec&,
                               double floor, double guess);
// All settings, then the finalists and `always` (the rules' settings) on longer schedules. By falling goodput.
// `progress` gets the share done in [0, 1], from any thread.
Result<std::vector<Capacity>> screen(const std::vector<Settings>&, const EngineModel&, const ScreenOptions&,
                                     const std::function<void(double)>& progress, const std::atomic<bool>& stop);

}  // namespace goodput
