// The core on virtual time with executors that need no model: what is logged, what faults do, and that times, tokens
// and KV agree between scheduler and executor. Accounting is checked after every step.
#include "engine/engine_core.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <map>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "base/random.h"
#include "engine/faulty_executor.h"
#include "engine/request_times.h"
#include "engine/simulated_executor.h"

namespace goodput {
namespace {

class Log final : public StepSink {
 public:
  void write(const StepRecord& record) override { steps.push_back(record); }
  std::vector<StepRecord> steps;
};

Settings small_settings() {
  Settings s;
  s.max_num_seqs = 4;
  s.max_num_batched_tokens = Tokens(64);
  s.max_model_len = Tokens(512);
  return s;
}

SimulatedExecutor::Options small_executor(int blocks = 256) {
  SimulatedExecutor::Options o;
  o.capabilities.kv.block_size = Tokens(16);
  o.capabilities.kv.total = o.capabilities.kv.per_slot = Blocks(blocks);
  o.capabilities.kv.slots = 8;
  o.capabilities.max_batch_tokens = Tokens(256);
  o.capabilities.max_len = Tokens(512);
  o.cost = {.base_ns = 1e6, .prefill_ns = 1e4, .decode_ns = 2e4, .kv_ns = 10};
  return o;
}

Request request(uint64_t id, int prompt, int output) {
  Request r;
  r.id = RequestId(id);
  r.prompt.resize(static_cast<size_t>(prompt));
  for (size_t i = 0; i < r.prompt.size(); ++i)
    r.prompt[i] = static_cast<TokenId>(mix64(id, i) % 4000);
  r.max_new = Tokens(output);
  return r;
}

struct Heard {
  ServerTimes times;
  std::vector<TokenId> tokens;
  std::optional<FinishReason> ended;
  int ends = 0;
};

// Drives a core until it is idle, as the engine does.
struct Driver {
  std::unique_ptr<EngineCore> core;
  std::map<uint64_t, Heard> heard;
  TimePoint now;

  void hear(std::span<const Event> events, TimePoint start, TimePoint end) {
    for (const Event& e : events) {
      Heard& h = heard[e.id.value()];
      EXPECT_EQ(h.ends, 0) << "an event after the end";
      add_event(h.times, e, start, end);
      if (e.kind == Event::Kind::kToken)
        h.tokens.push_back(e.token);
      if (e.kind == Event::Kind::kEnded) {
        h.ended = e.reason;
        ++h.ends;
      }
    }
  }
  bool step() {
    const EngineCore::Step s = core->begin(now);
    hear(core->take_events(), now, now);
    if (!s.ran)
      return false;
    now = *s.until;
    hear(core->end(now), core->step_start(), now);
    return true;
  }
  int run(int limit = 100'000) {
    int steps = 0;
    while (steps < limit && step())
      ++steps;
    return steps;
  }
};

Driver make(std::unique_ptr<Executor> executor, const Settings& settings, StepSink* log = nullptr) {
  auto core = EngineCore::create(settings, std::move(executor), log, true);
  EXPECT_TRUE(core.has_value()) << (core ? "" : describe(core.error()));
  return Driver{std::move(*core), {}, {}};
}

TEST(EngineCore, TokensAreTheHashOfRequestAndPosition) {
  Driver d = make(std::make_unique<SimulatedExecutor>(small_executor()), small_settings());
  ASSERT_TRUE(d.core->submit(request(7, 100, 20), {}));
  EXPECT_FALSE(d.core->idle());
  d.run();
  EXPECT_TRUE(d.core->idle());
  ASSERT_EQ(d.heard[7].tokens.size(), 20u);
  for (int i = 0; i < 20; ++i) {
    const TokenId token = d.heard[7].tokens[static_cast<size_t>(i)];
    EXPECT_EQ(token, simulated_token(RequestId(7), Tokens(100 + i), 3, 4096));
    EXPECT_GE(token, 3);
    EXPECT_LT(token, 4096);
  }
  EXPECT_EQ(d.heard[7].ended, FinishReason::kLength);
}

TEST(EngineCore, LogsWhatEachStepComputedAndHowLongItTook) {
  Log log;
  Driver d = make(std::make_unique<SimulatedExecutor>(small_executor()), small_settings(), &log);
  ASSERT_TRUE(d.core->submit(request(1, 100, 3), {}));
  ASSERT_TRUE(d.core->submit(request(2, 20, 2), {}));
  d.core->add_tokenization(microseconds(5));
  d.core->add_tokenization(microseconds(7));
  const int steps = d.run();
  ASSERT_EQ(log.steps.size(), static_cast<size_t>(steps));
  EXPECT_EQ(log.steps[0].tokenization, microseconds(12));
  EXPECT_EQ(log.steps[1].tokenization, Nanos(0));
  EXPECT_EQ(log.steps[0].shape.prefill, Tokens(64));  // the budget
  EXPECT_EQ(log.steps[1].shape.prefill, Tokens(56));  // the rest of both prompts
  int decodes = 0, prefill = 0;
  TimePoint at;
  for (const StepRecord& s : log.steps) {
    EXPECT_EQ(s.start, at);
    EXPECT_EQ(s.duration, small_executor().cost.of(s.shape));
    EXPECT_EQ(s.decode + s.sampling + s.host, s.duration);
    at += s.duration;
    decodes += s.shape.decodes;
    prefill += s.shape.prefill.count();
    EXPECT_LE(s.running, 4);
    EXPECT_GT(s.used, Blocks(0));
  }
  EXPECT_EQ(at, d.now);
  EXPECT_EQ(prefill, 120);
  EXPECT_EQ(decodes, 2 + 1);  // a request's first token comes from its prefill
}

TEST(EngineCore, ARealStepLastsUntilTheCallerSaysSo) {
  Log log;
  Driver d = make(std::make_unique<SimulatedExecutor>(small_executor()), small_settings(), &log);
  ASSERT_TRUE(d.core->submit(request(1, 10, 1), {}));
  const EngineCore::Step s = d.core->begin(TimePoint(Nanos(1000)));
  ASSERT_TRUE(s.ran);
  EXPECT_EQ(d.core->batch().sequences.size(), 1u);
  d.core->end(*s.until + microseconds(3));
  ASSERT_EQ(log.steps.size(), 1u);
  EXPECT_EQ(log.steps[0].host, microseconds(3));
}

TEST(EngineCore, FinishIsHeardWhateverTheRequestWasDoing) {
  Driver d = make(std::make_unique<SimulatedExecutor>(small_executor()), small_settings());
  for (uint64_t id = 1; id <= 6; ++id)
    ASSERT_TRUE(d.core->submit(request(id, 20, 50), {}));
  d.core->finish(RequestId(6), FinishReason::kAbort);  // waits
  ASSERT_TRUE(d.step());
  EXPECT_EQ(d.heard[6].ended, FinishReason::kAbort);
  d.core->finish(RequestId(1), FinishReason::kStop);  // runs, between steps
  const EngineCore::Step s = d.core->begin(d.now);
  ASSERT_TRUE(s.ran);
  d.core->finish(RequestId(2), FinishReason::kAbort);  // in flight
  d.core->finish(RequestId(2), FinishReason::kStop);   // again: the first counts
  d.core->finish(RequestId(99), FinishReason::kAbort);
  d.hear(d.core->take_events(), d.now, d.now);
  d.now = *s.until;
  d.hear(d.core->end(d.now), d.core->step_start(), d.now);
  EXPECT_EQ(d.heard[1].ended, FinishReason::kStop);
  EXPECT_EQ(d.heard[2].ended, FinishReason::kAbort);
  for (uint64_t id = 3; id <= 5; ++id)
    d.core->finish(RequestId(id), FinishReason::kAbort);
  EXPECT_FALSE(d.step()) << "nothing is left to compute";
  for (uint64_t id = 1; id <= 6; ++id)
    EXPECT_EQ(d.heard[id].ends, 1);
  EXPECT_TRUE(d.core->idle());
}

TEST(EngineCore, WhatCannotRunIsRefusedAndLeavesNothing) {
  FaultyExecutor::Plan plan;
  plan.refused = {RequestId(3)};
  Driver d = make(std::make_unique<FaultyExecutor>(std::make_unique<SimulatedExecutor>(small_executor()), plan),
                  small_settings());
  EXPECT_EQ(d.core->submit(request(1, 0, 1), {}).error().code, ErrorCode::kUsage);
  EXPECT_EQ(d.core->submit(request(2, 512, 1), {}).error().code, ErrorCode::kUsage);
  EXPECT_EQ(d.core->submit(request(3, 10, 1), {}).error().code, ErrorCode::kFailed);
  EXPECT_TRUE(d.core->idle());
  Settings impossible = small_settings();
  impossible.max_num_seqs = 100;  // more than slots
  impossible.max_num_batched_tokens = Tokens(100);
  const auto core = EngineCore::create(impossible, std::make_unique<SimulatedExecutor>(small_executor()), nullptr);
  ASSERT_FALSE(core.has_value());
  EXPECT_EQ(core.error().code, ErrorCode::kUsage);
}

TEST(EngineCore, LostKvIsRecomputedOnceThenFails) {
  FaultyExecutor::Plan plan;
  // Runs 0 to 2: prefill, then two decodes. Request 1 loses its KV twice, the other is not touched.
  plan.script = {{.run = 1, .kind = Fault::Kind::kKvLost, .sequence = 0},
                 {.run = 4, .kind = Fault::Kind::kKvLost, .sequence = 0},
                 {.run = 2, .kind = Fault::Kind::kSlow, .extra = milliseconds(9)}};
  Log log;
  Driver d = make(std::make_unique<FaultyExecutor>(std::make_unique<SimulatedExecutor>(small_executor()), plan),
                  small_settings(), &log);
  ASSERT_TRUE(d.core->submit(request(1, 20, 30), {}));
  ASSERT_TRUE(d.core->submit(request(2, 20, 30), {}));
  d.run();
  EXPECT_EQ(d.heard[1].ended, FinishReason::kError);
  EXPECT_EQ(d.heard[1].times.preempted_in_decode, 1);
  EXPECT_EQ(d.heard[2].ended, FinishReason::kLength);
  EXPECT_EQ(d.heard[2].tokens.size(), 30u);
  EXPECT_GT(log.steps[2].duration, milliseconds(10));
  EXPECT_TRUE(d.core->idle());
}

TEST(EngineCore, PreemptionInPrefillAndInDecodeLiesInsideTheRequestsIntervals) {
  // 12 blocks of 16 tokens. Two requests decode and hold four blocks each; a third takes the last four for its prompt
  // and is still in prefill when the first two need a fifth. Later the first two alone exceed the cache while decoding.
  Log log;
  Settings settings = small_settings();
  settings.max_num_batched_tokens = Tokens(16);
  settings.enable_prefix_caching = false;
  Driver d = make(std::make_unique<SimulatedExecutor>(small_executor(12)), settings, &log);
  ASSERT_TRUE(d.core->submit(request(1, 16, 140), {}));
  ASSERT_TRUE(d.core->submit(request(2, 16, 100), {}));
  for (int i = 0; i < 45; ++i)
    ASSERT_TRUE(d.step());
  ASSERT_TRUE(d.core->submit(request(3, 64, 8), {}));
  const TimePoint arrived = d.now;
  d.run();
  int in_prefill = 0, in_decode = 0, logged = 0;
  for (auto& [id, h] : d.heard) {
    EXPECT_EQ(h.ended, FinishReason::kLength) << id;
    in_prefill += h.times.preempted_in_prefill;
    in_decode += h.times.preempted_in_decode;
    ASSERT_TRUE(h.times.scheduled && h.times.first_token && h.times.last_token);
    EXPECT_LT(*h.times.scheduled, *h.times.first_token);
    EXPECT_LE(*h.times.first_token, *h.times.last_token);
  }
  for (const StepRecord& s : log.steps)
    logged += s.preempted;
  EXPECT_EQ(static_cast<uint64_t>(logged), d.core->state().preemptions);
  EXPECT_EQ(in_prefill + in_decode, logged);
  EXPECT_GT(in_decode, 0);
  EXPECT_GT(d.heard[3].times.preempted_in_prefill, 0);
  EXPECT_GE(*d.heard[3].times.scheduled, arrived);
  // Recomputed tokens are the same tokens.
  for (int i = 0; i < 140; ++i) {
    EXPECT_EQ(d.heard[1].tokens[static_cast<size_t>(i)], simulated_token(RequestId(1), Tokens(16 + i), 3, 4096));
  }
}

TEST(EngineCore, EveryRequestEndsOnceWhateverFails) {
  EXPECT_TRUE(rc::check("random loads, faults and cancels on a small cache", [](uint64_t seed) {
    Random random(seed, "core");
    FaultyExecutor::Plan plan;
    plan.seed = seed;
    plan.kv_lost = 0.02;
    plan.failed = 0.01;
    plan.slow = 0.05;
    plan.slow_by = milliseconds(50);
    Settings settings = small_settings();
    settings.batching = random.uniform() < 0.25 ? Batching::kStatic : Batching::kContinuous;
    settings.scheduling_policy = random.uniform() < 0.5 ? SchedulingPolicy::kPriority : SchedulingPolicy::kFcfs;
    settings.enable_prefix_caching = random.uniform() < 0.7;
    settings.max_num_queued_reqs = 20;
    Log log;
    const int blocks = static_cast<int>(random.uniform_int(16, 40));
    Driver d = make(std::make_unique<FaultyExecutor>(std::make_unique<SimulatedExecutor>(small_executor(blocks)), plan),
                    settings, &log);
    uint64_t next_id = 1, accepted = 0;
    for (int i = 0; i < 300; ++i) {
      if (random.uniform() < 0.3) {
        Request r = request(next_id++, static_cast<int>(random.uniform_int(1, 150)),
                            static_cast<int>(random.uniform_int(1, 100)));
        r.arrival = d.now;
        r.priority = static_cast<int>(random.uniform_int(0, 2));
        if (random.uniform() < 0.5) {  // a document that many share
          for (size_t t = 0; t < std::min<size_t>(r.prompt.size(), 64); ++t)
            r.prompt[t] = static_cast<TokenId>(t);
        }
        accepted += d.core->submit(std::move(r), {}).has_value();
      }
      const auto cancel = [&] {
        if (random.uniform() < 0.05) {
          d.core->finish(RequestId(static_cast<uint64_t>(random.uniform_int(1, static_cast<int64_t>(next_id)))),
                         FinishReason::kAbort);
        }
      };
      cancel();
      const EngineCore::Step s = d.core->begin(d.now);
      d.hear(d.core->take_events(), d.now, d.now);
      if (s.until)
        d.now = *s.until;
      if (!s.ran)
        continue;
      cancel();
      d.hear(d.core->end(d.now), d.core->step_start(), d.now);
    }
    for (int i = 0; i < 100'000 && !d.core->idle(); ++i) {
      if (!d.step())
        d.now += milliseconds(100);  // static batching waits for company
    }
    RC_ASSERT(d.core->idle());
    RC_ASSERT(d.heard.size() == accepted);
    for (const auto& [id, h] : d.heard)
      RC_ASSERT(h.ends == 1);
    const Nanos busy = std::accumulate(log.steps.begin(), log.steps.end(), Nanos(0),
                                       [](Nanos sum, const StepRecord& s) { return sum + s.duration; });
    RC_ASSERT(busy <= d.now - TimePoint());
  }));
}

}  // namespace
}  // namespace goodput
