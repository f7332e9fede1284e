// Each pass in a scene of its own, played through the scheduler.
#include "scheduler/passes.h"

#include <gtest/gtest.h>

#include "scheduler/toy_executor.h"

namespace goodput {
namespace {

using toy::request;
using toy::Rig;
using Computed = std::map<uint64_t, int>;

Settings small(int seqs, int budget) {
  Settings s;
  s.max_num_seqs = seqs;
  s.max_num_batched_tokens = Tokens(budget);
  s.max_model_len = Tokens(256);
  s.block_size = Tokens(4);
  return s;
}

Capabilities with_kv(int blocks, int slots = 8) {
  Capabilities c;
  c.kv.total = Blocks(blocks);
  c.kv.slots = slots;
  return c;
}

// ---------------------------------------------------------------- prefill and decode under the budget

TEST(PrefillPass, ChunksToTheBudgetAndSamplesWithTheLastChunk) {
  Rig rig(small(4, 16), with_kv(64));
  ASSERT_TRUE(rig.submit(request(1, 40, 3)));
  EXPECT_TRUE(toy::tokens_of(rig.step(), 1).empty());
  EXPECT_EQ(rig.computed, (Computed{{1, 16}}));
  EXPECT_TRUE(toy::tokens_of(rig.step(), 1).empty());
  EXPECT_EQ(toy::tokens_of(rig.step(), 1).size(), 1u);
  EXPECT_EQ(rig.computed, (Computed{{1, 8}}));
  EXPECT_EQ(rig.shape.decodes, 0);
  rig.step();
  EXPECT_EQ(rig.computed, (Computed{{1, 1}}));
  EXPECT_EQ(rig.shape.decodes, 1);
}

TEST(PrefillPass, DecodesComeFirstThenPromptsInOrderOfAdmission) {
  Rig rig(small(4, 16), with_kv(64));
  ASSERT_TRUE(rig.submit(request(1, 8, 20)));
  rig.step();
  ASSERT_TRUE(rig.submit(request(2, 20, 20, 100)));
  ASSERT_TRUE(rig.submit(request(3, 20, 20, 200)));
  rig.step();
  EXPECT_EQ(rig.computed, (Computed{{1, 1}, {2, 15}}));
  rig.step();
  EXPECT_EQ(rig.computed, (Computed{{1, 1}, {2, 5}, {3, 10}}));
  rig.step();
  EXPECT_EQ(rig.computed, (Computed{{1, 1}, {2, 1}, {3, 10}}));
}

TEST(PrefillPass, LongPrefillTokenThresholdLeavesRoomForOthers) {
  Settings s = small(4, 16);
  s.long_prefill_token_threshold = Tokens(6);
  Rig rig(s, with_kv(64));
  ASSERT_TRUE(rig.submit(request(1, 40, 1)));
  ASSERT_TRUE(rig.submit(request(2, 40, 1, 100)));
  ASSERT_TRUE(rig.submit(request(3, 40, 1, 200)));
  rig.step();
  EXPECT_EQ(rig.computed, (Computed{{1, 6}, {2, 6}, {3, 4}}));
}

TEST(PrefillPass, WithoutChunkingPromptsAreComputedWhole) {
  Settings s = small(4, 64);
  s.max_model_len = Tokens(64);
  s.enable_chunked_prefill = false;
  Rig rig(s, with_kv(64));
  ASSERT_TRUE(rig.submit(request(1, 40, 3)));
  ASSERT_TRUE(rig.submit(request(2, 40, 3, 100)));
  rig.step();
  EXPECT_EQ(rig.computed, (Computed{{1, 40}}));
  rig.step();
  EXPECT_EQ(rig.computed, (Computed{{1, 1}, {2, 40}}));
}

TEST(DecodePass, BatchIsInOrderOfSlots) {
  Rig rig(small(4, 64), with_kv(64));
  for (uint64_t id = 1; id <= 3; ++id)
    ASSERT_TRUE(rig.submit(request(id, 3, id == 1 ? 1 : 9, 100 * static_cast<TokenId>(id))));
  rig.step();
  ASSERT_TRUE(rig.submit(request(4, 3, 9, 900)));
  rig.step();
  EXPECT_EQ(rig.order, (std::vector<uint64_t>{4, 2, 3})) << "4 takes the slot that 1 has left";
}

// ---------------------------------------------------------------- preemption

// 12 blocks of 4. 1 and 2 hold 5 each with their prompts of 20 and decode until no block is left.
TEST(DecodePass, FcfsPreemptsTheLastAdmittedInDecodeAndItsTokensSurvive) {
  Settings s = small(4, 64);
  s.enable_prefix_caching = false;
  Rig rig(s, with_kv(12));
  const Request first = request(1, 20, 20), second = request(2, 20, 20, 100);
  ASSERT_TRUE(rig.submit(first));
  ASSERT_TRUE(rig.submit(second));
  const auto events = rig.drain();
  const auto preempted = toy::of_kind(events, Event::Kind::kPreempted);
  ASSERT_EQ(preempted.size(), 1u);
  EXPECT_EQ(preempted[0].id, RequestId(2));
  EXPECT_FALSE(preempted[0].in_prefill);
  EXPECT_EQ(toy::tokens_of(events, 1), toy::expected_output(first));
  EXPECT_EQ(toy::tokens_of(events, 2), toy::expected_output(second));
  EXPECT_EQ(rig.scheduler->state().preemptions, 1u);
  EXPECT_EQ(toy::of_kind(events, Event::Kind::kScheduled).size(), 2u) << "told once each";
}

TEST(DecodePass, PreemptsInPrefill) {
  Settings s = small(4, 8);
  Rig rig(s, with_kv(12));
  const Request first = request(1, 7, 30), second = request(2, 36, 4, 100);
  ASSERT_TRUE(rig.submit(first));
  auto events = rig.step();
  ASSERT_TRUE(rig.submit(second));  // all but one of the remaining blocks, for many iterations
  const auto rest = rig.drain();
  events.insert(events.end(), rest.begin(), rest.end());
  const auto preempted = toy::of_kind(events, Event::Kind::kPreempted);
  ASSERT_FALSE(preempted.empty());
  EXPECT_EQ(preempted[0].id, RequestId(2));
  EXPECT_TRUE(preempted[0].in_prefill);
  EXPECT_EQ(toy::tokens_of(events, 1), toy::expected_output(first));
  EXPECT_EQ(toy::tokens_of(events, 2), toy::expected_output(second));
}

TEST(DecodePass, PriorityPreemptsTheWorstNotTheLast) {
  Settings s = small(4, 64);
  s.scheduling_policy = SchedulingPolicy::kPriority;
  Rig rig(s, with_kv(12));
  Request background = request(1, 20, 20), chat = request(2, 20, 20, 100);
  background.priority = 5;
  ASSERT_TRUE(rig.submit(background));
  rig.step();
  ASSERT_TRUE(rig.submit(chat));
  const auto events = rig.drain();
  const auto preempted = toy::of_kind(events, Event::Kind::kPreempted);
  ASSERT_FALSE(preempted.empty());
  for (const Event& e : preempted)
    EXPECT_EQ(e.id, RequestId(1));
}

TEST(DecodePass, NobodyIsAdmittedInAStepThatPreempted) {
  Rig rig(small(4, 64), with_kv(12));
  ASSERT_TRUE(rig.submit(request(1, 20, 20)));
  ASSERT_TRUE(rig.submit(request(2, 20, 20, 100)));
  rig.step();
  ASSERT_TRUE(rig.submit(request(3, 1, 2, 200)));
  ASSERT_TRUE(rig.submit(request(4, 1, 2, 300)));
  for (int i = 0; i < 30 && rig.scheduler->state().preemptions == 0; ++i) {
    rig.step();
  }
  EXPECT_EQ(rig.scheduler->state().preemptions, 1u);
  EXPECT_FALSE(rig.computed.contains(2)) << "the victim";
  EXPECT_EQ(rig.scheduler->state().running, rig.running_before - 1);
}

TEST(DecodePass, APreemptedSequenceFindsWhatIsLeftOfItsKv) {
  Rig rig(small(4, 64), with_kv(12));
  ASSERT_TRUE(rig.submit(request(1, 20, 8)));
  ASSERT_TRUE(rig.submit(request(2, 20, 8, 100)));
  int recomputed = 0;
  for (int i = 0; i < 100 && !rig.scheduler->idle(); ++i) {
    const bool before = rig.scheduler->state().preemptions > 0;
    rig.step();
    if (before && rig.computed.contains(2) && rig.computed[2] > 1)
      recomputed = rig.computed[2];
  }
  EXPECT_GT(recomputed, 0);
  EXPECT_LE(recomputed, 8) << "of more than 20";
}

// ---------------------------------------------------------------- admission

TEST(AdmitPass, SeatsAreNeverExceeded) {
  Rig rig(small(2, 64), with_kv(64));
  for (uint64_t id = 1; id <= 5; ++id)
    ASSERT_TRUE(rig.submit(request(id, 4, 3, 100 * id)));
  rig.step();
  EXPECT_EQ(rig.scheduler->state().running, 2);
  EXPECT_EQ(rig.scheduler->state().waiting, 3);
  EXPECT_EQ(rig.computed, (Computed{{1, 4}, {2, 4}}));
  EXPECT_EQ(toy::of_kind(rig.drain(), Event::Kind::kEnded).size(), 5u);
}

TEST(AdmitPass, FcfsIsStrictSoALargeRequestIsNotStarved) {
  Rig rig(small(4, 64), with_kv(12));
  ASSERT_TRUE(rig.submit(request(1, 20, 8)));
  rig.step();
  ASSERT_TRUE(rig.submit(request(2, 32, 4, 100)));  // 8 blocks: waits until 1 ends
  for (uint64_t id = 3; id < 20; ++id)
    ASSERT_TRUE(rig.submit(request(id, 1, 2, 200)));
  for (int i = 0; i < 7; ++i) {
    EXPECT_EQ(rig.scheduler->state().running, 1) << "nobody overtakes";
    rig.step();
  }
  rig.step();
  EXPECT_EQ(rig.computed.at(2), 32);
}

TEST(AdmitPass, PriorityThenArrivalDecidesWhoIsServedFirst) {
  Settings s = small(1, 64);
  s.scheduling_policy = SchedulingPolicy::kPriority;
  Rig rig(s, with_kv(64));
  const auto submit = [&](uint64_t id, int priority, int arrival_ms) {
    Request r = request(id, 2, 1, static_cast<TokenId>(100 * id));
    r.priority = priority;
    r.arrival = TimePoint(milliseconds(arrival_ms));
    ASSERT_TRUE(rig.submit(r));
  };
  submit(1, 0, 5);
  submit(2, 0, 3);
  submit(3, -1, 9);
  submit(4, 7, 0);
  submit(5, 0, 3);
  std::vector<uint64_t> order;
  for (const Event& e : toy::of_kind(rig.drain(), Event::Kind::kEnded))
    order.push_back(e.id.value());
  EXPECT_EQ(order, (std::vector<uint64_t>{3, 2, 5, 1, 4}));
}

TEST(AdmitPass, PrefixesOfRunningAndOfEndedRequestsAreReused) {
  Rig rig(small(4, 64), with_kv(64));
  ASSERT_TRUE(rig.submit(request(1, 20, 9)));
  rig.step();
  ASSERT_TRUE(rig.submit(request(2, 20, 2)));
  auto events = rig.step();
  EXPECT_EQ(rig.computed, (Computed{{1, 1}, {2, 4}})) << "16 of 20 are shared, whole blocks only";
  EXPECT_EQ(toy::of_kind(events, Event::Kind::kScheduled)[0].cached, Tokens(16));
  rig.drain();
  ASSERT_TRUE(rig.submit(request(3, 20, 2)));
  events = rig.step();
  EXPECT_EQ(rig.computed, (Computed{{3, 4}}));
  EXPECT_EQ(rig.scheduler->state().prefix_query_tokens, 60u);
  EXPECT_EQ(rig.scheduler->state().prefix_hit_tokens, 32u);
  Request salted = request(4, 20, 2);
  salted.cache_salt = 1;
  ASSERT_TRUE(rig.submit(salted));
  rig.step();
  EXPECT_EQ(rig.computed.at(4), 20) << "not across salts";
}

TEST(AdmitPass, ARequestWaitsForAPrefixInTheMakingAndOthersPassIt) {
  Rig rig(small(4, 64), with_kv(64));
  ASSERT_TRUE(rig.submit(request(1, 40, 3)));
  ASSERT_TRUE(rig.submit(request(2, 41, 3)));
  ASSERT_TRUE(rig.submit(request(3, 10, 3, 200)));
  rig.step();
  EXPECT_EQ(rig.computed, (Computed{{1, 40}, {3, 10}}));
  rig.step();
  EXPECT_EQ(rig.computed, (Computed{{1, 1}, {2, 1}, {3, 1}})) << "40 of 41 were just computed";
}

TEST(AdmitPass, ASmallCommonBeginningIsNotWaitedFor) {
  Rig rig(small(4, 64), with_kv(64));
  Request other = request(2, 30, 3);
  for (size_t i = 4; i < other.prompt.size(); ++i)
    other.prompt[i] += 500;
  ASSERT_TRUE(rig.submit(request(1, 30, 3)));
  ASSERT_TRUE(rig.submit(other));
  rig.step();
  EXPECT_EQ(rig.computed, (Computed{{1, 30}, {2, 30}}));
}

// ---------------------------------------------------------------- static batching

TEST(FormPass, AnIncompleteBatchWaitsForItsOldest) {
  Settings s = small(3, 64);
  s.batching = Batching::kStatic;
  s.static_batch_wait = milliseconds(50);
  Rig rig(s, with_kv(64));
  Request r = request(1, 4, 2);
  r.arrival = TimePoint(milliseconds(10));
  ASSERT_TRUE(rig.submit(r));
  rig.now = TimePoint(milliseconds(20));
  rig.begin();
  EXPECT_TRUE(rig.empty);
  EXPECT_EQ(rig.wake_at, TimePoint(milliseconds(60)));
  rig.now = TimePoint(milliseconds(60));
  rig.step();
  EXPECT_EQ(rig.computed, (Computed{{1, 4}}));
}

TEST(FormPass, AFullBatchStartsAtOnceAndNobodyJoinsUntilAllHaveEnded) {
  Settings s = small(2, 64);
  s.batching = Batching::kStatic;
  Rig rig(s, with_kv(64));
  ASSERT_TRUE(rig.submit(request(1, 4, 2)));
  ASSERT_TRUE(rig.submit(request(2, 4, 5, 100)));
  ASSERT_TRUE(rig.submit(request(3, 4, 1, 200)));
  ASSERT_TRUE(rig.submit(request(4, 4, 1, 300)));
  rig.step();
  EXPECT_EQ(rig.computed, (Computed{{1, 4}, {2, 4}}));
  rig.step();
  EXPECT_EQ(rig.computed, (Computed{{1, 1}, {2, 1}}));
  for (int i = 0; i < 3; ++i) {
    rig.step();
    EXPECT_EQ(rig.computed, (Computed{{2, 1}})) << "a hole where 1 was";
  }
  rig.step();
  EXPECT_EQ(rig.computed, (Computed{{3, 4}, {4, 4}}));
}

TEST(FormPass, TheBatchIsPrefilledTogetherBeforeAnyoneDecodes) {
  Settings s = small(2, 16);
  s.batching = Batching::kStatic;
  Rig rig(s, with_kv(64));
  ASSERT_TRUE(rig.submit(request(1, 12, 3)));
  ASSERT_TRUE(rig.submit(request(2, 24, 3, 100)));
  rig.step();
  EXPECT_EQ(rig.computed, (Computed{{1, 12}, {2, 4}}));
  rig.step();
  EXPECT_EQ(rig.computed, (Computed{{2, 16}}));
  rig.step();
  EXPECT_EQ(rig.computed, (Computed{{2, 4}}));
  rig.step();
  EXPECT_EQ(rig.computed, (Computed{{1, 1}, {2, 1}}));
}

TEST(FormPass, WithoutChunkingTheBatchIsPrefilledWholePromptByWholePrompt) {
  Settings s = small(3, 64);
  s.max_model_len = Tokens(64);
  s.enable_chunked_prefill = false;
  s.batching = Batching::kStatic;
  Rig rig(s, with_kv(64));
  for (uint64_t id = 1; id <= 3; ++id)
    ASSERT_TRUE(rig.submit(request(id, 30, 2, static_cast<TokenId>(100 * id))));
  rig.step();
  EXPECT_EQ(rig.computed, (Computed{{1, 30}, {2, 30}}));
  rig.step();
  EXPECT_EQ(rig.computed, (Computed{{3, 30}}));
  rig.step();
  EXPECT_EQ(rig.computed, (Computed{{1, 1}, {2, 1}, {3, 1}}));
}

TEST(Passes, AChunkIsWithinBudgetAndThresholdOrWhole) {
  const KvGeometry kv{.block_size = Tokens(4), .total = Blocks(8), .per_slot = Blocks(8), .slots = 4};
  Settings s = small(4, 8);
  EXPECT_EQ(next_chunk(Scheduling(s, kv), Tokens(100)), Tokens(8));
  EXPECT_EQ(next_chunk(Scheduling(s, kv), Tokens(5)), Tokens(5));
  s.long_prefill_token_threshold = Tokens(3);
  EXPECT_EQ(next_chunk(Scheduling(s, kv), Tokens(5)), Tokens(3));
  s.enable_chunked_prefill = false;
  EXPECT_EQ(next_chunk(Scheduling(s, kv), Tokens(5)), Tokens(5));
  EXPECT_EQ(next_chunk(Scheduling(s, kv), Tokens(9)), Tokens(0));
}

}  // namespace
}  // namespace goodput
