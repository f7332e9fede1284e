// How fast the simulator is: sequence-steps per second on one core (one sequence-step = one sequence in one iteration),
// on the default mix at about its capacity, as `map` screens it. The schedule is made before the clock starts; priming,
// records and token events are inside. Run a Release build.
#include <algorithm>
#include <cstdio>

#include "base/clock.h"
#include "simulate/simulate.h"
#include "workload/schedule.h"
#include "workload/spec.h"

namespace goodput {
namespace {

constexpr double kBar = 2e6;
constexpr uint64_t kRequests = 20'000;  // as for a finalist of the screen
constexpr int kRepeats = 5;

SimulateOptions default_options() {
  SimulateOptions o;
  o.settings.max_num_seqs = 32;
  o.settings.max_num_batched_tokens = Tokens(256);
  o.capabilities.kv = {.block_size = Tokens(16), .total = Blocks(2048), .per_slot = Blocks(2048), .slots = 64};
  o.capabilities.max_batch_tokens = Tokens(4096);
  o.capabilities.max_len = Tokens(4096);
  o.cost = {.base_ns = 4e5, .prefill_ns = 2.5e4, .decode_ns = 6e4, .kv_ns = 40};  // a tiny model on one core
  return o;
}

// Requests per second that keep about `max_num_seqs` sequences running without an ever growing queue.
double capacity(const Schedule& unit, SimulateOptions options) {
  options.settings.max_num_queued_reqs = static_cast<int>(unit.requests.size());
  Schedule backlog = unit;
  for (ScheduledRequest& r : backlog.requests)
    r.at = Nanos(0);
  const auto done = simulate(backlog, options);
  return done ? static_cast<double>(unit.requests.size()) / to_seconds(done->end - TimePoint()) : 0;
}

Result<Schedule> default_schedule(uint64_t requests, double rate) {
  WorkloadSpec spec = default_workload();
  spec.rate = rate;
  ScheduleOptions o;
  o.seed = 1;
  o.requests = requests;
  return make_schedule(spec, o, nullptr);
}

Result<int> run() {
  const SimulateOptions options = default_options();
  const double rate = 0.95 * capacity(TRY(default_schedule(2'000, 1)), options);
  const Schedule schedule = TRY(default_schedule(kRequests, rate));
  double best = 0;
  for (int i = 0; i < kRepeats; ++i) {
    const TimePoint start = monotonic_now();
    const SimulateResult r = TRY(simulate(schedule, options));
    const double took = to_seconds(monotonic_now() - start);
    const double speed = static_cast<double>(r.sequence_steps) / took;
    std::printf("%zu requests at %.1f/s: %llu steps, %llu sequence-steps (%.1f a step) in %.3f s: %.2f M/s\n",
                r.records.size(), rate, static_cast<unsigned long long>(r.steps),
                static_cast<unsigned long long>(r.sequence_steps),
                static_cast<double>(r.sequence_steps) / static_cast<double>(r.steps), took, speed * 1e-6);
    best = std::max(best, speed);
  }
  std::printf(
      "{\"name\":\"simulate-speed\",\"value\":%.0f,\"unit\":\"sequence-steps/s\",\"bar\":%.0f,\"ok\":%s,"
      "\"better\":\"higher\"}\n",
      best, kBar, best >= kBar ? "true" : "false");
  return best >= kBar ? 0 : 1;
}

}  // namespace
}  // namespace goodput

int main() {
  const auto code = goodput::run();
  if (code)
    return *code;
  std::fprintf(stderr, "simulate-speed: %s\n", goodput::describe(code.error()).c_str());
  return 1;
}
