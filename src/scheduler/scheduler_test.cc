// The scheduler's front: what it refuses, how requests end, what a fault does. Passes: passes_test.cc; invariants:
// scheduler_property_test.cc.
#include "scheduler/scheduler.h"

#include <gtest/gtest.h>

#include "base/limits.h"
#include "scheduler/toy_executor.h"

namespace goodput {
namespace {

using toy::request;
using toy::Rig;
using Status = SequenceResult::Status;

Settings small() {
  Settings s;
  s.max_num_seqs = 4;
  s.max_num_batched_tokens = Tokens(64);
  s.max_model_len = Tokens(64);
  s.block_size = Tokens(4);
  s.max_num_queued_reqs = 3;
  return s;
}

Capabilities with_kv(int blocks) {
  Capabilities c;
  c.kv.total = Blocks(blocks);
  c.kv.slots = 8;
  return c;
}

Event only_end(std::span<const Event> events) {
  const auto ends = toy::of_kind(events, Event::Kind::kEnded);
  EXPECT_EQ(ends.size(), 1u);
  return ends.empty() ? Event{} : ends[0];
}

// ---------------------------------------------------------------- refusals

TEST(Scheduler, SettingsBeyondTheExecutorAreRefusedByName) {
  Capabilities c;
  c.kv = {.block_size = Tokens(4), .total = Blocks(16), .per_slot = Blocks(16), .slots = 8};
  c.max_batch_tokens = Tokens(64);
  c.max_len = Tokens(64);
  ASSERT_TRUE(Scheduler::create(small(), c));
  const auto refusal = [&](auto change) {
    Settings s = small();
    Capabilities changed = c;
    change(s, changed);
    const auto made = Scheduler::create(s, changed);
    EXPECT_FALSE(made);
    return made ? std::string() : made.error().message;
  };
  EXPECT_EQ(refusal([](Settings& s, Capabilities&) { s.max_num_seqs = 9; }),
            "max_num_seqs is 9, but the executor's number of slots is 8");
  EXPECT_EQ(refusal([](Settings& s, Capabilities&) { s.block_size = Tokens(16); }),
            "block_size is 16, but the executor's block size is 4");
  EXPECT_EQ(refusal([](Settings&, Capabilities& x) { x.max_batch_tokens = Tokens(63); }),
            "max_num_batched_tokens is 64, but the executor's largest batch is 63");
  EXPECT_EQ(refusal([](Settings&, Capabilities& x) { x.max_len = Tokens(63); }),
            "max_model_len is 64, but the executor's longest sequence is 63");
  EXPECT_FALSE(refusal([](Settings&, Capabilities& x) { x.kv.total = Blocks(0); }).empty());
  EXPECT_FALSE(refusal([](Settings&, Capabilities& x) { x.kv.slots = 257; }).empty());
  EXPECT_FALSE(refusal([](Settings& s, Capabilities&) { s.max_num_seqs = 0; }).empty());
}

TEST(Scheduler, RequestsThatCanNeverRunAreRefused) {
  Rig rig(small(), with_kv(8));
  const auto refused = [&](Request r) {
    const auto result = rig.submit(std::move(r));
    EXPECT_FALSE(result);
    EXPECT_TRUE(rig.scheduler->idle()) << "nothing is kept";
    return result ? Error{} : result.error();
  };
  EXPECT_EQ(refused(request(1, 0, 1)).code, ErrorCode::kUsage);
  EXPECT_EQ(refused(request(1, 1, 0)).code, ErrorCode::kUsage);
  EXPECT_EQ(describe(refused(request(1, 60, 5))), "request 1: 60 prompt tokens and 5 new ones exceed max_model_len 64");
  EXPECT_EQ(describe(refused(request(1, 30, 4))),
            "request 1: 30 prompt tokens and 4 new ones need 9 KV blocks of 4 tokens, but there are 8");
  Request greedy = request(1, 3, 1);
  greedy.max_new = Tokens(INT32_MAX);
  EXPECT_EQ(refused(greedy).code, ErrorCode::kUsage);
  EXPECT_TRUE(rig.submit(request(1, 30, 3))) << "the last token needs no KV";
  EXPECT_EQ(rig.submit(request(1, 3, 3)).error().code, ErrorCode::kUsage) << "the id is taken";
  EXPECT_EQ(toy::of_kind(rig.drain(), Event::Kind::kToken).size(), 3u);
  EXPECT_TRUE(rig.submit(request(1, 3, 3))) << "and free again";
}

TEST(Scheduler, AFullQueueIsSaidAndEmptiesAgain) {
  Rig rig(small(), with_kv(64));
  for (uint64_t id = 1; id <= 3; ++id)
    EXPECT_TRUE(rig.submit(request(id, 4, 2)));
  const auto r = rig.submit(request(4, 4, 2));
  ASSERT_FALSE(r);
  EXPECT_EQ(r.error().code, ErrorCode::kExhausted);
  rig.step();
  EXPECT_TRUE(rig.submit(request(4, 4, 2)));
}

TEST(Scheduler, TheLargestQueueIsReached) {
  Settings s = small();
  s.max_num_queued_reqs = limits::kMaxQueuedRequests;
  Rig rig(s, with_kv(64));
  for (int id = 0; id < limits::kMaxQueuedRequests; ++id) {
    ASSERT_TRUE(rig.submit(request(static_cast<uint64_t>(id), 1, 1)));
  }
  EXPECT_EQ(rig.submit(request(9'999, 1, 1)).error().code, ErrorCode::kExhausted);
  EXPECT_EQ(toy::of_kind(rig.drain(), Event::Kind::kEnded).size(), static_cast<size_t>(limits::kMaxQueuedRequests));
}

TEST(Scheduler, AtMostSoManyAreLookedPastForAPrefix) {
  Settings s = small();
  s.max_num_queued_reqs = 100;
  Rig rig(s, with_kv(64));
  for (uint64_t id = 1; id <= 1 + limits::kMaxHeldRequests; ++id)
    ASSERT_TRUE(rig.submit(request(id, 20, 1)));
  ASSERT_TRUE(rig.submit(request(99, 4, 1, 500)));
  rig.step();
  EXPECT_EQ(rig.computed, (std::map<uint64_t, int>{{1, 20}})) << "the bound is reached before 99";
}

// ---------------------------------------------------------------- how requests end

TEST(Scheduler, MaxNewEndsWithLength) {
  Rig rig(small(), with_kv(64));
  const Request r = request(1, 5, 3);
  ASSERT_TRUE(rig.submit(r));
  const auto events = rig.drain();
  EXPECT_EQ(toy::tokens_of(events, 1), toy::expected_output(r));
  EXPECT_EQ(only_end(events).reason, FinishReason::kLength);
  EXPECT_EQ(rig.scheduler->state().used, Blocks(0));
}

TEST(Scheduler, AStopTokenEndsWithStopAndIsNotToldAsText) {
  Rig rig(small(), with_kv(64));
  Request r = request(1, 5, 8);
  const auto output = toy::expected_output(r);
  r.stop_tokens = {-7, output[3]};
  ASSERT_TRUE(rig.submit(r));
  const auto events = rig.drain();
  EXPECT_EQ(toy::tokens_of(events, 1), std::vector<TokenId>(output.begin(), output.begin() + 3));
  EXPECT_EQ(only_end(events).reason, FinishReason::kStop);
  EXPECT_EQ(only_end(events).token, output[3]);
}

TEST(Scheduler, FinishWhileWaitingIsToldByTheNextApply) {
  Rig rig(small(), with_kv(64));
  ASSERT_TRUE(rig.submit(request(1, 5, 8)));
  rig.scheduler->finish(RequestId(1), FinishReason::kAbort);
  EXPECT_FALSE(rig.scheduler->idle()) << "it is not told yet";
  const auto events = rig.step();
  EXPECT_TRUE(rig.computed.empty());
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(only_end(events).reason, FinishReason::kAbort);
  EXPECT_TRUE(rig.scheduler->idle());
  rig.begin();
  EXPECT_TRUE(rig.empty);
}

TEST(Scheduler, FinishBetweenStepsFreesTheSequenceInTheNext) {
  Rig rig(small(), with_kv(64));
  ASSERT_TRUE(rig.submit(request(1, 5, 8)));
  rig.step();
  rig.scheduler->finish(RequestId(1), FinishReason::kStop);
  EXPECT_EQ(rig.scheduler->state().running, 0);
  const auto events = rig.step();
  EXPECT_TRUE(rig.computed.empty());
  EXPECT_EQ(only_end(events).reason, FinishReason::kStop);
  EXPECT_EQ(rig.scheduler->state().used, Blocks(0));
  EXPECT_TRUE(rig.scheduler->idle());
}

TEST(Scheduler, FinishInFlightEndsAtApplyWithoutAToken) {
  Rig rig(small(), with_kv(64));
  ASSERT_TRUE(rig.submit(request(1, 5, 8)));
  ASSERT_TRUE(rig.submit(request(2, 5, 8, 100)));
  rig.begin();
  rig.scheduler->finish(RequestId(1), FinishReason::kAbort);
  rig.scheduler->finish(RequestId(1), FinishReason::kStop);  // too late
  rig.scheduler->finish(RequestId(77), FinishReason::kStop);
  const auto events = rig.end();
  EXPECT_TRUE(toy::tokens_of(events, 1).empty());
  EXPECT_EQ(toy::tokens_of(events, 2).size(), 1u);
  EXPECT_EQ(only_end(events).reason, FinishReason::kAbort);
  rig.step();
  EXPECT_FALSE(rig.computed.contains(1));
}

// ---------------------------------------------------------------- faults

TEST(Scheduler, LostKvIsRecomputedOnceAndTheTokensSurvive) {
  Rig rig(small(), with_kv(64));
  const Request r = request(1, 9, 6), other = request(2, 9, 6, 100);
  ASSERT_TRUE(rig.submit(r));
  ASSERT_TRUE(rig.submit(other));
  std::vector<Event> all;
  const auto keep = [&](const std::vector<Event>& some) { all.insert(all.end(), some.begin(), some.end()); };
  keep(rig.step());
  keep(rig.step());
  const auto lost = rig.step({{RequestId(1), Status::kKvLost}});
  keep(lost);
  ASSERT_EQ(toy::of_kind(lost, Event::Kind::kPreempted).size(), 1u);
  EXPECT_FALSE(toy::of_kind(lost, Event::Kind::kPreempted)[0].in_prefill);
  keep(rig.step());
  EXPECT_EQ(rig.computed, (std::map<uint64_t, int>{{1, 11}, {2, 1}})) << "prompt and two tokens again";
  keep(rig.drain());
  EXPECT_EQ(toy::tokens_of(all, 1), toy::expected_output(r));
  EXPECT_EQ(toy::tokens_of(all, 2), toy::expected_output(other));
}

TEST(Scheduler, ASecondLossFailsTheRequestAndNobodyElse) {
  Rig rig(small(), with_kv(64));
  const Request other = request(2, 9, 6, 100);
  ASSERT_TRUE(rig.submit(request(1, 9, 6)));
  ASSERT_TRUE(rig.submit(other));
  const auto first = rig.step({{RequestId(1), Status::kKvLost}});
  EXPECT_TRUE(toy::of_kind(first, Event::Kind::kPreempted)[0].in_prefill);
  EXPECT_EQ(only_end(rig.step({{RequestId(1), Status::kKvLost}})).reason, FinishReason::kError);
  const auto rest = rig.drain();
  EXPECT_EQ(only_end(rest).id, RequestId(2));
  EXPECT_EQ(only_end(rest).reason, FinishReason::kLength);
}

TEST(Scheduler, AFailureEndsTheRequestAndItsKvIsNotReused) {
  Rig rig(small(), with_kv(64));
  ASSERT_TRUE(rig.submit(request(1, 9, 6)));
  const auto events = rig.step({{RequestId(1), Status::kFailed}});
  EXPECT_EQ(only_end(events).reason, FinishReason::kError);
  ASSERT_TRUE(rig.submit(request(2, 9, 6)));
  rig.step();
  EXPECT_EQ(rig.computed, (std::map<uint64_t, int>{{2, 9}}));
}

TEST(Scheduler, AFailureWhileBeingFinishedIsToldOnce) {
  for (const Status status : {Status::kFailed, Status::kKvLost}) {
    Rig rig(small(), with_kv(64));
    ASSERT_TRUE(rig.submit(request(1, 9, 6)));
    rig.begin();
    rig.scheduler->finish(RequestId(1), FinishReason::kAbort);
    only_end(rig.end({{RequestId(1), status}}));
    rig.drain();
  }
}

// ---------------------------------------------------------------- state

TEST(Scheduler, GaugesFollow) {
  Rig rig(small(), with_kv(64));
  ASSERT_TRUE(rig.submit(request(1, 9, 2)));
  EXPECT_EQ(rig.scheduler->state().waiting, 1);
  rig.step();
  SchedulerState state = rig.scheduler->state();
  EXPECT_EQ(state.running, 1);
  EXPECT_EQ(state.waiting, 0);
  EXPECT_EQ(state.used, Blocks(3));
  EXPECT_EQ(state.total, Blocks(64));
  rig.drain();
  state = rig.scheduler->state();
  EXPECT_EQ(state.used, Blocks(0));
  EXPECT_EQ(state.retained, Blocks(2)) << "10 tokens were computed: two whole blocks";
  EXPECT_EQ(rig.scheduler->kv_length(Slot(0)), Tokens(8));
  EXPECT_EQ(rig.scheduler->kv_length(Slot(99)), Tokens(0));
}

TEST(SchedulerDeath, CallsOutOfTurnAreOurBug) {
  Rig rig(small(), with_kv(64));
  ASSERT_TRUE(rig.submit(request(1, 9, 2)));
  EXPECT_DEATH(rig.scheduler->apply({}, {}), "without a batch");
  rig.begin();
  EXPECT_DEATH(rig.scheduler->next({}), "in flight");
  EXPECT_DEATH(rig.scheduler->apply({}, {}), "parallel");
}

}  // namespace
}  // namespace goodput
