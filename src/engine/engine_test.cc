// The threaded engine on scaled clocks: what owners hear, races of finish and destruction, draining, and bounds.
// Nothing here depends on how fast the machine is: waits are for events, and logical times are exact on a modelled
// executor.
#include "engine/engine.h"

#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "base/limits.h"
#include "engine/faulty_executor.h"
#include "engine/request_times.h"
#include "engine/simulated_executor.h"

namespace goodput {
namespace {

constexpr double kSpeed = 200;

// What the owners of many requests heard, and a way to wait for the ends.
class Heard {
 public:
  struct One {
    ServerTimes times;
    int tokens = 0, ends = 0, after_end = 0;
    FinishReason reason = FinishReason::kNone;
    TimePoint last;
    bool ordered = true;
  };
  std::function<void(const RequestUpdate&)> owner() {
    return [this](const RequestUpdate& u) { hear(u); };
  }
  void hear(const RequestUpdate& u) {
    std::lock_guard lock(mutex_);
    One& one = all_[u.event.id.value()];
    one.after_end += one.ends;
    one.ordered = one.ordered && u.at >= one.last && u.started <= u.at;
    one.last = u.at;
    add_event(one.times, u.event, u.started, u.at);
    one.tokens += u.event.kind == Event::Kind::kToken;
    if (u.event.kind == Event::Kind::kEnded) {
      ++one.ends;
      one.reason = u.event.reason;
      ++ends_;
    }
    changed_.notify_all();
  }
  template <class F>
  void wait(F&& condition) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return condition(*this); });
  }
  void wait_ends(int n) {
    wait([n](const Heard& h) { return h.ends_ >= n; });
  }
  int tokens_of(RequestId id) const {
    const auto it = all_.find(id.value());
    return it == all_.end() ? 0 : it->second.tokens;
  }
  std::map<uint64_t, One> all() {
    std::lock_guard lock(mutex_);
    return all_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<uint64_t, One> all_;
  int ends_ = 0;
};

Settings settings() {
  Settings s;
  s.max_num_seqs = 4;
  s.max_num_batched_tokens = Tokens(64);
  s.max_model_len = Tokens(4096);
  return s;
}

SimulatedExecutor::Options executor(double base_ns = 1e6) {
  SimulatedExecutor::Options o;
  o.capabilities.kv = {.block_size = Tokens(16), .total = Blocks(512), .per_slot = Blocks(512), .slots = 8};
  o.capabilities.max_batch_tokens = Tokens(256);
  o.capabilities.max_len = Tokens(4096);
  o.cost = {.base_ns = base_ns, .prefill_ns = 1e4, .decode_ns = 2e4};
  return o;
}

std::unique_ptr<Engine> engine(const Settings& s, std::unique_ptr<Executor> e, double speed = kSpeed) {
  auto core = EngineCore::create(s, std::move(e), nullptr, true);
  EXPECT_TRUE(core.has_value()) << (core ? "" : describe(core.error()));
  return std::make_unique<Engine>(std::move(*core), std::make_unique<WallClock>(speed));
}
std::unique_ptr<Engine> engine(const Settings& s = settings(), double base_ns = 1e6) {
  return engine(s, std::make_unique<SimulatedExecutor>(executor(base_ns)));
}

EngineRequest request(Heard& heard, int prompt, int output, TimePoint arrival = {}) {
  EngineRequest r;
  r.request.arrival = arrival;
  r.request.prompt.assign(static_cast<size_t>(prompt), 5);
  r.request.max_new = Tokens(output);
  r.on_update = heard.owner();
  return r;
}

void expect_one_end_each(Heard& heard, size_t n) {
  const auto all = heard.all();
  EXPECT_EQ(all.size(), n);
  for (const auto& [id, one] : all) {
    EXPECT_EQ(one.ends, 1) << id;
    EXPECT_EQ(one.after_end, 0) << id;
    EXPECT_TRUE(one.ordered) << id;
  }
}

TEST(Engine, ServesRequestsFromManyThreads) {
  Heard heard;
  Settings s = settings();
  s.max_num_queued_reqs = 1000;
  auto e = engine(s);
  std::vector<std::thread> clients;
  for (int c = 0; c < 4; ++c) {
    clients.emplace_back([&] {
      for (int i = 0; i < 50; ++i) {
        e->add_tokenization(microseconds(1));
        ASSERT_TRUE(e->submit(request(heard, 10 + i, 1 + i % 7, e->clock().now())));
        e->state();
      }
    });
  }
  for (std::thread& c : clients)
    c.join();
  EXPECT_TRUE(e->drain(seconds(100'000)));
  expect_one_end_each(heard, 200);
  for (const auto& [id, one] : heard.all())
    EXPECT_EQ(one.reason, FinishReason::kLength);
  EXPECT_EQ(e->state().running, 0);
  EXPECT_EQ(e->submit(request(heard, 1, 1)).error().code, ErrorCode::kFailed);
}

// Runs `scene` with an arrival far enough ahead that everything was submitted before it, however slow the machine is.
template <class F>
void ahead_of_arrival(const Settings& s, F&& scene) {
  for (Nanos ahead = seconds(60);; ahead = 4 * ahead) {
    Heard heard;  // outlives the engine
    auto e = engine(s);
    const TimePoint arrival = e->clock().now() + ahead;
    if (scene(*e, heard, arrival))
      return;
  }
}

TEST(Engine, SimulatedTimeIsLogicalHoweverLateTheThreadWakes) {
  ahead_of_arrival(settings(), [](Engine& e, Heard& heard, TimePoint arrival) {
    const auto id = e.submit(request(heard, 10, 3, arrival));
    EXPECT_TRUE(id.has_value());
    if (e.clock().now() >= arrival)
      return false;
    heard.wait_ends(1);
    const auto one = heard.all()[id->value()];
    EXPECT_EQ(one.times.scheduled, arrival);
    EXPECT_EQ(one.times.first_token, arrival + microseconds(1100));
    EXPECT_EQ(one.times.last_token, arrival + microseconds(1100 + 2 * 1020));
    EXPECT_EQ(one.last, one.times.last_token);
    return true;
  });
}

TEST(Engine, ErrorsAreSynchronousAndTheQueueIsBounded) {
  Heard heard;
  Settings s = settings();
  s.max_num_queued_reqs = 6;
  auto e = engine(s, 1e15);  // a step never ends
  EXPECT_EQ(e->submit(request(heard, 0, 1)).error().code, ErrorCode::kUsage);
  EXPECT_EQ(e->submit(request(heard, 1, 0)).error().code, ErrorCode::kUsage);
  EXPECT_EQ(e->submit(request(heard, 4096, 1)).error().code, ErrorCode::kUsage);
  size_t accepted = 0;
  ErrorCode code = ErrorCode::kFailed;
  for (int i = 0; i < 100; ++i) {
    const auto id = e->submit(request(heard, 8, 8));
    if (id) {
      ++accepted;
    } else {
      code = id.error().code;
    }
  }
  // One to four could be admitted before the first step began; the queue holds six more, waiting and intake together.
  EXPECT_EQ(code, ErrorCode::kExhausted);
  EXPECT_GE(accepted, 6u);
  EXPECT_LE(accepted, 10u);
  e.reset();
  expect_one_end_each(heard, accepted);
  for (const auto& [id, one] : heard.all())
    EXPECT_EQ(one.reason, FinishReason::kAbort);

  SimulatedExecutor::Options tiny = executor();
  tiny.capabilities.kv.total = tiny.capabilities.kv.per_slot = Blocks(4);
  auto small = engine(s, std::make_unique<SimulatedExecutor>(tiny));
  EXPECT_EQ(small->submit(request(heard, 65, 1)).error().code, ErrorCode::kUsage);
  EXPECT_TRUE(small->submit(request(heard, 64, 1)).has_value());
}

TEST(Engine, WhatIsSubmittedAheadIsBoundedToo) {
  Heard heard;
  auto e = engine();
  const TimePoint later = e->clock().now() + seconds(1'000'000'000);
  for (size_t i = 0; i < limits::kMaxAheadRequests; ++i)
    ASSERT_TRUE(e->submit(request(heard, 1, 1, later)));
  EXPECT_EQ(e->submit(request(heard, 1, 1, later)).error().code, ErrorCode::kExhausted);
  EXPECT_TRUE(e->submit(request(heard, 1, 1)).has_value()) << "what has arrived is another matter";
  heard.wait_ends(1);
  e.reset();
  expect_one_end_each(heard, limits::kMaxAheadRequests + 1);
}

TEST(Engine, FinishReachesARequestWhereverItIs) {
  Heard heard;
  auto e = engine();
  const auto running = e->submit(request(heard, 8, 4000));
  ASSERT_TRUE(running);
  heard.wait([&](const Heard& h) { return h.tokens_of(*running) > 3; });
  const auto ahead = e->submit(request(heard, 8, 8, e->clock().now() + seconds(1'000'000)));
  ASSERT_TRUE(ahead);
  e->finish(*ahead, FinishReason::kAbort);
  e->finish(*running, FinishReason::kStop);
  e->finish(*running, FinishReason::kAbort);  // the first counts
  e->finish(RequestId(12345), FinishReason::kAbort);
  heard.wait_ends(2);
  const auto idle_id = e->submit(request(heard, 8, 8, e->clock().now() + seconds(1'000'000)));
  e->finish(*idle_id, FinishReason::kAbort);  // while the engine sleeps
  heard.wait_ends(3);
  expect_one_end_each(heard, 3);
  EXPECT_EQ(heard.all()[running->value()].reason, FinishReason::kStop);
  EXPECT_EQ(heard.all()[ahead->value()].reason, FinishReason::kAbort);
  EXPECT_EQ(heard.all()[ahead->value()].tokens, 0);
}

TEST(Engine, CancelledFromOtherThreadsWhileTheyRunAndEnd) {
  Heard heard;
  Settings s = settings();
  s.max_num_queued_reqs = 1000;
  auto e = engine(s);
  std::vector<RequestId> ids;
  for (int i = 0; i < 200; ++i)
    ids.push_back(*e->submit(request(heard, 5, 1 + i % 20, e->clock().now())));
  std::vector<std::thread> cancellers;
  for (size_t c = 0; c < 3; ++c) {
    cancellers.emplace_back([&, c] {
      for (size_t i = c; i < ids.size(); i += 2)
        e->finish(ids[i], FinishReason::kAbort);
    });
  }
  for (std::thread& c : cancellers)
    c.join();
  heard.wait_ends(200);
  expect_one_end_each(heard, 200);
  EXPECT_TRUE(e->drain(seconds(1)));
}

TEST(Engine, DrainAbortsWhatDoesNotEndInTime) {
  Heard heard;
  auto e = engine();
  for (int i = 0; i < 10; ++i)
    ASSERT_TRUE(e->submit(request(heard, 8, 4000)));
  ASSERT_TRUE(e->submit(request(heard, 8, 8, e->clock().now() + seconds(1'000'000))));
  EXPECT_FALSE(e->drain(milliseconds(20)));
  expect_one_end_each(heard, 11);
  EXPECT_TRUE(e->drain(Nanos(0))) << "nothing is left";
}

TEST(Engine, DestructionEndsEachRequestOnceWhereverItIs) {
  for (int round = 0; round < 20; ++round) {
    Heard heard;
    auto e = engine(settings(), round % 2 == 0 ? 1e6 : 1e15);
    for (int i = 0; i < 8; ++i)
      ASSERT_TRUE(e->submit(request(heard, 8, 3 + 10 * i)));
    ASSERT_TRUE(e->submit(request(heard, 8, 8, e->clock().now() + seconds(1'000'000))));
    if (round % 3 == 0)
      e->finish(RequestId(3), FinishReason::kAbort);
    e.reset();
    expect_one_end_each(heard, 9);
  }
}

TEST(Engine, AFailedStepTakesNobodyElseDown) {
  Heard heard;
  FaultyExecutor::Plan plan;
  plan.kv_lost = 0.05;
  plan.failed = 0.02;
  plan.refused = {RequestId(7)};
  Settings s = settings();
  s.max_num_queued_reqs = 1000;
  auto e = engine(s, std::make_unique<FaultyExecutor>(std::make_unique<SimulatedExecutor>(executor()), plan));
  for (int i = 0; i < 100; ++i)
    ASSERT_TRUE(e->submit(request(heard, 20, 10)));
  heard.wait_ends(100);
  expect_one_end_each(heard, 100);
  int failed = 0;
  for (const auto& [id, one] : heard.all()) {
    failed += one.reason == FinishReason::kError;
    EXPECT_TRUE(one.reason != FinishReason::kLength || one.tokens == 10);
  }
  EXPECT_EQ(heard.all()[7].reason, FinishReason::kError);
  EXPECT_GT(failed, 1);
  EXPECT_LT(failed, 100);
}

// An executor that says its time is real, as LlamaExecutor does.
class RealTime final : public Executor {
 public:
  Capabilities capabilities() const override { return inner_.capabilities(); }
  Result<void> open(RequestId id, const SamplingParams& p) override { return inner_.open(id, p); }
  void close(RequestId id) override { inner_.close(id); }
  const StepResult& run(const Batch& batch) override {
    result_ = inner_.run(batch);
    result_.duration = result_.decode = Nanos(0);  // less than a clock can tell
    return result_;
  }
  std::optional<Tokens> kv_length(Slot slot) const override { return inner_.kv_length(slot); }
  bool modelled_time() const override { return false; }

 private:
  SimulatedExecutor inner_{executor(1)};
  StepResult result_;
};

TEST(Engine, OnRealTimeStepsEndWhenTheClockSays) {
  Heard heard;
  auto e = engine(settings(), std::make_unique<RealTime>(), 1);
  for (int i = 0; i < 20; ++i) {
    const TimePoint before = e->clock().now();
    const auto id = e->submit(request(heard, 30, 5, before));
    ASSERT_TRUE(id);
    heard.wait_ends(i + 1);
    const auto one = heard.all()[id->value()];
    EXPECT_GE(*one.times.scheduled, before);
    EXPECT_LT(*one.times.scheduled, *one.times.first_token);
    EXPECT_LT(*one.times.first_token, *one.times.last_token);
    EXPECT_LE(*one.times.last_token, e->clock().now());
  }
  EXPECT_TRUE(e->drain(seconds(10)));
}

TEST(Engine, StaticBatchingStartsAnIncompleteBatchAtTheExactTime) {
  Settings s = settings();
  s.batching = Batching::kStatic;
  s.static_batch_wait = seconds(3);
  ahead_of_arrival(s, [](Engine& e, Heard& heard, TimePoint arrival) {
    EXPECT_TRUE(e.submit(request(heard, 8, 2, arrival)).has_value());
    EXPECT_TRUE(e.submit(request(heard, 8, 2, arrival + seconds(1))).has_value());
    if (e.clock().now() >= arrival)
      return false;
    heard.wait_ends(2);
    for (const auto& [id, one] : heard.all())
      EXPECT_EQ(one.times.scheduled, arrival + seconds(3));
    return true;
  });
}

}  // namespace
}  // namespace goodput
