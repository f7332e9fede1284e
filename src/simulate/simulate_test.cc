// Identities that hold on every path (Little's law, conservation of requests and tokens, invariance), the records that
// a load generator would have written, and the closed loop.
#include "simulate/simulate.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "base/check.h"
#include "metrics/request_metrics.h"
#include "simulate/queue_load.h"

namespace goodput {
namespace {

class Log final : public StepSink {
 public:
  void write(const StepRecord& record) override { steps.push_back(record); }
  std::vector<StepRecord> steps;
};

SimulateOptions engine_options(int blocks = 512) {
  SimulateOptions o;
  o.settings.max_num_seqs = 8;
  o.settings.max_num_batched_tokens = Tokens(64);
  o.settings.max_model_len = Tokens(1024);
  o.capabilities.kv = {.block_size = Tokens(16), .total = Blocks(blocks), .per_slot = Blocks(blocks), .slots = 16};
  o.capabilities.max_batch_tokens = Tokens(1024);
  o.capabilities.max_len = Tokens(1024);
  o.cost = {.base_ns = 1e6, .prefill_ns = 2e4, .decode_ns = 5e4, .kv_ns = 20};
  return o;
}

// Chats and long prompts over two documents, as the default mix has them but smaller.
Schedule mixed_load(uint64_t seed, size_t n, double rate) {
  Random random(seed, "mixed load");
  Schedule s;
  s.seed = seed;
  double at = 0;
  for (size_t i = 0; i < n; ++i) {
    at += random.exponential(1 / rate);
    ScheduledRequest& r = s.requests.emplace_back();
    r.index = i;
    r.at = from_seconds(at);
    r.cls = random.uniform() < 0.7 ? 0 : 1;
    const int64_t document = random.uniform_int(1, 2), length = r.cls == 0 ? 0 : 200;
    for (int64_t t = 0; t < length; ++t)
      r.prompt.push_back(static_cast<TokenId>(mix64(document, t) % 4000));
    const int64_t own = random.uniform_int(1, 60);
    for (int64_t t = 0; t < own; ++t)
      r.prompt.push_back(static_cast<TokenId>(random.uniform_int(3, 4000)));
    r.output = Tokens(random.uniform_int(1, 60));
    r.priority = r.cls;
  }
  return s;
}

SimulateResult run(const Schedule& schedule, const SimulateOptions& options, uint64_t max_steps = UINT64_MAX) {
  auto result = simulate(schedule, options, max_steps);
  CHECK(result.has_value(), "a run that must succeed");
  return std::move(*result);
}

TEST(Simulate, RecordsAreThoseOfAClientThatSendsAndReceivesAtOnce) {
  Schedule schedule;
  ScheduledRequest& request = schedule.requests.emplace_back();
  request.index = 0;
  request.cls = 3;
  request.at = milliseconds(5);
  request.prompt.assign(10, 7);
  request.output = Tokens(3);
  SimulateOptions options = engine_options();
  options.cost = {.base_ns = 1e6, .prefill_ns = 1e5, .decode_ns = 2e5};
  options.request_overhead = microseconds(300);
  options.token_overhead = microseconds(40);
  const SimulateResult result = run(schedule, options);
  ASSERT_EQ(result.records.size(), 1u);
  const RequestRecord& r = result.records[0];
  const TimePoint at(milliseconds(5));
  const Nanos prefill = milliseconds(2), decode = microseconds(1200), overhead = microseconds(340);
  EXPECT_EQ(r.outcome, Outcome::kOk);
  EXPECT_EQ(r.finish, FinishReason::kLength);
  EXPECT_EQ(r.cls, 3);
  EXPECT_EQ(r.http_status, 200);
  EXPECT_EQ(r.scheduled, at);
  EXPECT_EQ(r.dispatched, at);
  EXPECT_EQ(r.sent, at);
  EXPECT_EQ(r.first_token, at + prefill + overhead);
  EXPECT_EQ(r.done, at + prefill + decode + decode + overhead);
  EXPECT_EQ(r.closed, r.done);
  EXPECT_EQ(r.prompt_tokens, Tokens(10));
  EXPECT_EQ(r.cached_tokens, Tokens(0));
  EXPECT_EQ(r.output_tokens, Tokens(3));
  EXPECT_EQ(r.asked_output, Tokens(3));
  ASSERT_EQ(r.events.size(), 3u);
  EXPECT_EQ(r.events[1].user, prefill + decode + overhead);
  EXPECT_EQ(r.events[1].tokens, 1);
  ASSERT_TRUE(r.server);
  EXPECT_EQ(r.server->scheduled, at);
  EXPECT_EQ(r.server->first_token, at + prefill);
  EXPECT_EQ(r.server->last_token, at + prefill + decode + decode);
  EXPECT_EQ(result.end, at + prefill + decode + decode);
  EXPECT_EQ(result.steps, 3u);
  EXPECT_EQ(result.sequence_steps, 3u);
  EXPECT_EQ(ttft(r), prefill + overhead);
  EXPECT_DOUBLE_EQ(*tpot_ns(r), 1.2e6);
}

// ∫N dt = ΣT, and the same from the step log: nothing is lost between the log and the records.
TEST(Simulate, LittlesLawIsExact) {
  Log log;
  SimulateOptions options = queue_options(4, 1e6, 1e5);
  options.steps = &log;
  const SimulateResult result = run(queue_load(5, 2'000, 40, [](Random& r) { return geometric(r, 20); }), options);
  std::vector<std::pair<TimePoint, int>> changes;
  Nanos sum;
  for (const RequestRecord& r : result.records) {
    changes.emplace_back(r.scheduled, 1);
    changes.emplace_back(*r.done, -1);
    sum += *r.done - r.scheduled;
  }
  std::sort(changes.begin(), changes.end());
  Nanos integral;
  int64_t inside = 0;
  for (size_t i = 0; i < changes.size(); ++i) {
    if (i > 0)
      integral += inside * (changes[i].first - changes[i - 1].first);
    inside += changes[i].second;
  }
  EXPECT_EQ(inside, 0);
  EXPECT_EQ(integral, sum);
  // While anyone is inside, a step runs: the engine is never idle with work.
  Nanos busy, occupied;
  for (const StepRecord& s : log.steps)
    busy += s.duration;
  inside = 0;
  for (size_t i = 0; i < changes.size(); ++i) {
    if (i > 0 && inside > 0)
      occupied += changes[i].first - changes[i - 1].first;
    inside += changes[i].second;
  }
  EXPECT_EQ(busy, occupied);
}

// What every run must conserve, whatever the settings.
void check_conservation(const Schedule& schedule, const SimulateOptions& options, const Log& log,
                        const SimulateResult& result) {
  int64_t prompts = 0, cached = 0, outputs = 0, computed = 0, preempted = 0;
  for (const RequestRecord& r : result.records) {
    RC_ASSERT(r.outcome == Outcome::kOk || r.outcome == Outcome::kRejected);
    RC_ASSERT(r.outcome == Outcome::kRejected || r.output_tokens == r.asked_output);
    if (r.outcome == Outcome::kRejected)
      continue;
    prompts += r.prompt_tokens->count();
    cached += r.cached_tokens->count();
    outputs += r.output_tokens->count();
    preempted += r.server->preempted_in_prefill + r.server->preempted_in_decode;
    RC_ASSERT(r.scheduled <= *r.server->scheduled && *r.server->scheduled < *r.server->first_token);
    RC_ASSERT(*r.server->first_token <= *r.server->last_token && *r.first_token <= *r.done);
    RC_ASSERT(std::is_sorted(r.events.begin(), r.events.end(), [](auto& a, auto& b) { return a.user < b.user; }));
  }
  TimePoint last(-seconds(100'000));
  for (const StepRecord& s : log.steps) {
    RC_ASSERT(s.start >= last);
    last = s.start + s.duration;
    RC_ASSERT(s.used + s.retained <= options.capabilities.kv.total);
    RC_ASSERT(s.running <= options.settings.max_num_seqs);
    RC_ASSERT(s.shape.prefill.count() + s.shape.decodes <= options.settings.max_num_batched_tokens.count());
    computed += s.shape.prefill.count() + s.shape.decodes;
  }
  RC_ASSERT(static_cast<uint64_t>(preempted) == result.state.preemptions);
  // The last token of a request is never computed; recomputation only adds.
  const int64_t ok = std::count_if(result.records.begin(), result.records.end(),
                                   [](const RequestRecord& r) { return r.outcome == Outcome::kOk; });
  const int64_t needed = prompts - cached + outputs - ok;
  RC_ASSERT((preempted == 0 ? computed == needed : computed >= needed));
  RC_ASSERT(result.records.size() == schedule.requests.size());
}

TEST(Simulate, RequestsAndTokensAreConserved) {
  EXPECT_TRUE(rc::check("mixed loads over policies, caches and queues", [](uint64_t seed) {
    Random random(seed, "settings");
    SimulateOptions options = engine_options(static_cast<int>(random.uniform_int(24, 200)));
    options.settings.max_num_seqs = static_cast<int>(random.uniform_int(1, 16));
    options.settings.max_num_batched_tokens = Tokens(random.uniform_int(16, 256));
    options.settings.enable_prefix_caching = random.uniform() < 0.7;
    options.settings.max_model_len = Tokens(384);
    options.settings.scheduling_policy = random.uniform() < 0.5 ? SchedulingPolicy::kPriority : SchedulingPolicy::kFcfs;
    options.settings.batching = random.uniform() < 0.3 ? Batching::kStatic : Batching::kContinuous;
    options.settings.max_num_queued_reqs = random.uniform() < 0.5 ? 8 : 1000;
    if (random.uniform() < 0.3)
      options.concurrency = static_cast<int>(random.uniform_int(1, 20));
    Log log;
    options.steps = &log;
    const Schedule schedule = mixed_load(seed, 200, 10 + 90 * random.uniform());
    auto result = simulate(schedule, options);
    RC_ASSERT(result.has_value());
    check_conservation(schedule, options, log, *result);
    options.steps = nullptr;
    RC_ASSERT(simulate(schedule, options)->records == result->records);  // the same again
  }));
}

TEST(Simulate, TwiceAsSlowIsTwiceAsLong) {
  const Schedule schedule = mixed_load(3, 300, 40);
  Schedule slow = schedule;
  for (ScheduledRequest& r : slow.requests)
    r.at = 2 * r.at;
  SimulateOptions options = engine_options();
  const SimulateResult once = run(schedule, options);
  options.cost = {.base_ns = 2e6, .prefill_ns = 4e4, .decode_ns = 1e5, .kv_ns = 40};
  const SimulateResult twice = run(slow, options);
  EXPECT_EQ(once.steps, twice.steps);
  EXPECT_EQ(once.sequence_steps, twice.sequence_steps);
  for (size_t i = 0; i < schedule.requests.size(); ++i) {
    EXPECT_EQ(2 * (*once.records[i].first_token).since_zero(), (*twice.records[i].first_token).since_zero());
    EXPECT_EQ(2 * (*once.records[i].done).since_zero(), (*twice.records[i].done).since_zero());
  }
}

TEST(Simulate, PrimedDocumentsAreHitsAndPrimingIsBeforeTimeZero) {
  Schedule schedule = mixed_load(3, 100, 5);
  SimulateOptions options = engine_options(4096);
  options.capabilities.kv.slots = 256;  // nothing is evicted
  std::vector<TimePoint> starts;
  options.on_batch = [&](const Batch&, TimePoint start, TimePoint) { starts.push_back(start); };
  const auto misses = [](const SimulateResult& result) {
    return std::count_if(result.records.begin(), result.records.end(),
                         [](const RequestRecord& r) { return r.cls == 1 && *r.cached_tokens < Tokens(192); });
  };
  EXPECT_EQ(misses(run(schedule, options)), 2);
  for (int64_t document = 1; document <= 2; ++document) {
    ScheduledRequest& r = schedule.priming.emplace_back();
    for (int64_t t = 0; t < 201; ++t)
      r.prompt.push_back(static_cast<TokenId>(mix64(document, t) % 4000));
    r.output = Tokens(1);
  }
  starts.clear();
  const SimulateResult primed = run(schedule, options);
  EXPECT_EQ(misses(primed), 0);
  EXPECT_EQ(primed.records.size(), 100u);
  EXPECT_EQ(starts.size(), primed.steps);
  EXPECT_GE(starts.front(), TimePoint());
  options.cost.base_ns = 1e14;  // a day and more per step
  EXPECT_EQ(simulate(schedule, options).error().code, ErrorCode::kFailed);
}

TEST(Simulate, AFullQueueRejectsAndWhatCannotRunIsAnError) {
  Schedule schedule = queue_load(1, 50, 1e6, [](Random&) { return 10; });
  schedule.requests[7].prompt.clear();
  SimulateOptions options = engine_options();
  options.settings.max_num_queued_reqs = 5;
  options.settings.max_num_seqs = 2;
  options.request_overhead = microseconds(50);
  const SimulateResult result = run(schedule, options);
  size_t rejected = 0, ok = 0;
  for (const RequestRecord& r : result.records) {
    if (r.outcome == Outcome::kRejected) {
      ++rejected;
      EXPECT_EQ(r.http_status, 503);
      EXPECT_EQ(r.closed, r.scheduled + microseconds(50));
      EXPECT_FALSE(r.first_token || r.done || r.output_tokens || r.server);
    }
    ok += r.outcome == Outcome::kOk;
  }
  EXPECT_EQ(result.records[7].outcome, Outcome::kError);
  EXPECT_EQ(result.records[7].http_status, 400);
  EXPECT_GT(rejected, 20u);
  EXPECT_EQ(rejected + ok + 1, 50u);

  options.settings.max_num_seqs = 1000;
  EXPECT_EQ(simulate(schedule, options).error().code, ErrorCode::kUsage);
}

TEST(Simulate, ABoundedRunSaysWhatItDidNotFinish) {
  const SimulateResult result = run(mixed_load(3, 100, 20), engine_options(), 50);
  EXPECT_EQ(result.steps, 50u);
  size_t ok = 0, unfinished = 0, not_sent = 0;
  for (const RequestRecord& r : result.records) {
    ok += r.outcome == Outcome::kOk;
    unfinished += r.outcome == Outcome::kUnfinished;
    not_sent += r.outcome == Outcome::kNotSent;
    EXPECT_EQ(r.dispatched.has_value(), r.outcome != Outcome::kNotSent);
  }
  EXPECT_EQ(ok + unfinished + not_sent, 100u);
  EXPECT_GT(unfinished, 0u);
  EXPECT_GT(not_sent, 0u);
  EXPECT_TRUE(run(Schedule{}, engine_options()).records.empty());
}

// Closed loop of C fixed requests within the cap: a deterministic cycle, X = C ÷ (T + Z).
TEST(Simulate, AClosedLoopCycles) {
  SimulateOptions options = queue_options(8, 1e6, 1e5);
  options.concurrency = 4;
  options.think_time = milliseconds(15);
  options.request_overhead = milliseconds(1);
  const SimulateResult result = run(queue_load(1, 400, 1, [](Random&) { return 10; }), options);
  const Nanos cycle = 10 * microseconds(1400) + milliseconds(16);
  for (size_t i = 0; i < result.records.size(); ++i) {
    EXPECT_EQ(result.records[i].outcome, Outcome::kOk);
    EXPECT_EQ(result.records[i].scheduled, TimePoint(static_cast<int64_t>(i / 4) * cycle));
  }
}

}  // namespace
}  // namespace goodput
