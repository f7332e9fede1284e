#include "map/frontier.h"

#include <gtest/gtest.h>

namespace goodput {
namespace {

Capacity capacity(int seqs, double goodput, double ttft, double gap) {
  Capacity c;
  c.settings.max_num_seqs = seqs;
  c.predicted = Operating{.rate = goodput,
                          .goodput_rps = goodput,
                          .attainment_by_class = {},
                          .interactive_ttft_p95_ms = ttft,
                          .interactive_gap_p95_ms = gap};
  return c;
}

TEST(Frontier, KeepsWhatNothingBeatsInAllThree) {
  const std::vector<Capacity> all{capacity(1, 10, 100, 10), capacity(2, 9, 90, 10), capacity(3, 8, 95, 11),
                                  capacity(4, 5, 200, 5)};
  const auto front = frontier_of(all);
  ASSERT_EQ(front.size(), 3u);
  EXPECT_EQ(front[0].settings.max_num_seqs, 1);
  EXPECT_EQ(front[1].settings.max_num_seqs, 2);  // 3 is beaten by 2 in all three
  EXPECT_EQ(front[2].settings.max_num_seqs, 4);
}

TEST(Frontier, EqualsBothStay) { EXPECT_EQ(frontier_of({capacity(1, 5, 5, 5), capacity(2, 5, 5, 5)}).size(), 2u); }

TEST(Frontier, WithoutCapacityNotOnIt) {
  Capacity none;
  EXPECT_TRUE(frontier_of({none}).empty());
}

TEST(Frontier, AnAbsentPercentileDoesNotCarry) {
  auto unknown = capacity(1, 5, 0, 0);
  unknown.predicted->interactive_ttft_p95_ms.reset();
  unknown.predicted->interactive_gap_p95_ms.reset();
  const auto front = frontier_of({unknown, capacity(2, 6, 50, 5)});
  ASSERT_EQ(front.size(), 1u);
  EXPECT_EQ(front[0].settings.max_num_seqs, 2);
}

TEST(Rules, LargestBatchIsContinuousFcfsWithMostSequencesThenTokens) {
  std::vector<Capacity> all;
  for (const int seqs : {8, 32})
    for (const int tokens : {64, 1024})
      for (const auto policy : {SchedulingPolicy::kPriority, SchedulingPolicy::kFcfs}) {
        Capacity c;
        c.settings.max_num_seqs = seqs;
        c.settings.max_num_batched_tokens = Tokens(tokens);
        c.settings.scheduling_policy = policy;
        all.push_back(c);
      }
  Capacity fixed;
  fixed.settings.max_num_seqs = 64;
  fixed.settings.batching = Batching::kStatic;
  all.push_back(fixed);
  const Capacity* rule = largest_batch(all);
  ASSERT_NE(rule, nullptr);
  EXPECT_EQ(rule->settings.max_num_seqs, 32);
  EXPECT_EQ(rule->settings.max_num_batched_tokens, Tokens(1024));
  EXPECT_EQ(rule->settings.scheduling_policy, SchedulingPolicy::kFcfs);
  EXPECT_EQ(largest_batch({}), nullptr);
}

TEST(Rules, OfflineIsTheMostTokensPerSecond) {
  auto a = capacity(1, 1, 1, 1), b = capacity(2, 1, 1, 1);
  a.offline_tokens_per_s = 100;
  b.offline_tokens_per_s = 200;
  const std::vector<Capacity> all{a, b, capacity(3, 1, 1, 1)};
  ASSERT_NE(best_offline(all), nullptr);
  EXPECT_EQ(best_offline(all)->settings.max_num_seqs, 2);
  const std::vector<Capacity> unknown{capacity(3, 1, 1, 1)};
  EXPECT_EQ(best_offline(unknown), nullptr);
}

}  // namespace
}  // namespace goodput
