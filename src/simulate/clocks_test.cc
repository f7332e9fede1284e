// The same workload and seed give the same sequence of batches, at the same logical times, on virtual time and on a
// scaled wall clock: simulate() against the threaded Engine, whose requests are submitted by timestamp from another
// thread.
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "engine/engine.h"
#include "engine/simulated_executor.h"
#include "simulate/queue_load.h"

namespace goodput {
namespace {

// One scheduled sequence of one batch. The batches' logical times are in the step logs.
struct Seen {
  uint64_t step;
  RequestId id;
  Slot slot;
  Tokens first;
  size_t tokens;
  bool operator==(const Seen&) const = default;
};

void note(const Batch& batch, std::vector<Seen>& seen) {
  for (const ScheduledSequence& s : batch.sequences) {
    seen.push_back({batch.step, s.id, s.slot, s.first, s.tokens.size()});
  }
}

// Notes what it is asked to compute.
class Watched final : public Executor {
 public:
  Watched(const SimulatedExecutor::Options& options, std::vector<Seen>& seen) : inner_(options), seen_(seen) {}
  Capabilities capabilities() const override { return inner_.capabilities(); }
  Result<void> open(RequestId id, const SamplingParams& p) override { return inner_.open(id, p); }
  void close(RequestId id) override { inner_.close(id); }
  const StepResult& run(const Batch& batch) override {
    note(batch, seen_);
    return inner_.run(batch);
  }
  std::optional<Tokens> kv_length(Slot slot) const override { return inner_.kv_length(slot); }
  bool modelled_time() const override { return true; }

 private:
  SimulatedExecutor inner_;
  std::vector<Seen>& seen_;
};

class Log final : public StepSink {
 public:
  void write(const StepRecord& record) override { steps.push_back(record); }
  std::vector<StepRecord> steps;
};

// Batches of the engine on a clock `speed` times as fast as real time. Everything is submitted ahead of its arrival; a
// machine too slow for that gets more time ahead.
bool on_wall_clock(const Schedule& schedule, const SimulateOptions& options, double speed, Nanos ahead,
                   std::vector<Seen>& seen, std::vector<StepRecord>& steps) {
  seen.clear();
  Log log;
  SimulatedExecutor::Options executor{.capabilities = options.capabilities, .cost = options.cost};
  auto core = EngineCore::create(options.settings, std::make_unique<Watched>(executor, seen), &log, true);
  EXPECT_TRUE(core.has_value());
  auto engine = std::make_unique<Engine>(std::move(*core), std::make_unique<WallClock>(speed));
  const TimePoint zero = engine->clock().now() + ahead;
  for (const ScheduledRequest& r : schedule.requests) {
    EngineRequest request;
    request.request.arrival = zero + r.at;
    request.request.prompt = r.prompt;
    request.request.max_new = r.output;
    request.request.priority = r.priority;
    EXPECT_TRUE(engine->submit(std::move(request)).has_value());
  }
  const bool in_time = engine->clock().now() < zero + schedule.requests.front().at;
  EXPECT_TRUE(engine->drain(seconds(100'000)));
  EXPECT_GE(engine->clock().now(), log.steps.back().start + log.steps.back().duration) << "the clock paces";
  engine.reset();
  for (StepRecord& s : log.steps)
    s.start = TimePoint(s.start - zero);
  steps = std::move(log.steps);
  return in_time;
}

Schedule load(uint64_t seed) {
  Random random(seed, "clocks");
  Schedule s = queue_load(seed, 300, 60, [](Random& r) { return r.uniform_int(1, 40); });
  for (ScheduledRequest& r : s.requests) {
    r.prompt.assign(static_cast<size_t>(random.uniform_int(1, 200)),
                    static_cast<TokenId>(r.index % 4 + 2));  // prefixes of each other: many share
    r.prompt.back() = static_cast<TokenId>(random.uniform_int(2, 4000));
    r.priority = static_cast<int>(random.uniform_int(0, 2));
  }
  return s;
}

SimulateOptions options_for(Batching batching, SchedulingPolicy policy) {
  SimulateOptions o;
  o.settings.max_num_seqs = 8;
  o.settings.max_num_batched_tokens = Tokens(64);
  o.settings.max_model_len = Tokens(256);
  o.settings.batching = batching;
  o.settings.scheduling_policy = policy;
  o.capabilities.kv = {.block_size = Tokens(16), .total = Blocks(20), .per_slot = Blocks(20), .slots = 16};
  o.capabilities.max_batch_tokens = Tokens(256);
  o.capabilities.max_len = Tokens(256);
  o.cost = {.base_ns = 1.3e6, .prefill_ns = 2.1e4, .decode_ns = 5.7e4, .kv_ns = 33};
  return o;
}

TEST(Clocks, VirtualAndScaledTimeGiveTheSameBatches) {
  uint64_t seed = 1;
  for (const Batching batching : {Batching::kContinuous, Batching::kStatic}) {
    for (const SchedulingPolicy policy : {SchedulingPolicy::kFcfs, SchedulingPolicy::kPriority}) {
      const Schedule schedule = load(seed++);
      SimulateOptions options = options_for(batching, policy);
      std::vector<Seen> expected;
      Log log;
      options.steps = &log;
      options.on_batch = [&](const Batch& batch, TimePoint, TimePoint) { note(batch, expected); };
      const auto simulated = simulate(schedule, options);
      ASSERT_TRUE(simulated.has_value());
      EXPECT_TRUE(batching == Batching::kStatic || simulated->state.preemptions > 0) << "a load that says little";
      std::vector<Seen> seen;
      std::vector<StepRecord> steps;
      Nanos ahead = seconds(10);
      while (!on_wall_clock(schedule, options, 40, ahead, seen, steps))
        ahead = 4 * ahead;
      EXPECT_EQ(seen, expected);
      EXPECT_EQ(steps, log.steps);
    }
  }
}

}  // namespace
}  // namespace goodput
