#include "map/choose.h"

#include <cmath>

#include <gtest/gtest.h>

namespace goodput {
namespace {

MeasuredPoint replicate(double goodput, double good, double scheduled) {
  MeasuredPoint p;
  p.point.summary.goodput_rps = goodput;
  ClassSummary c;
  c.good = static_cast<uint64_t>(good);
  c.scheduled = static_cast<uint64_t>(scheduled);
  p.point.summary.by_class.push_back(c);
  return p;
}

Capacity measured(int seqs, double goodput) {
  Capacity c;
  c.settings.max_num_seqs = seqs;
  c.measured = Operating{.rate = goodput,
                         .goodput_rps = goodput,
                         .attainment_by_class = {},
                         .interactive_ttft_p95_ms = {},
                         .interactive_gap_p95_ms = {}};
  return c;
}

TEST(Choose, MostGoodputAmongMeasuredThenTheSmallerBatch) {
  const std::vector<Capacity> all{measured(32, 9), measured(8, 10), measured(4, 10), Capacity{}};
  ASSERT_NE(best_measured(all), nullptr);
  EXPECT_EQ(best_measured(all)->settings.max_num_seqs, 4);
  const std::vector<Capacity> none{Capacity{}};
  EXPECT_EQ(best_measured(none), nullptr);
}

TEST(Choose, ConfirmsAMeasuredRateAsItIsAndAPredictedOneALittleBelow) {
  Capacity c = measured(4, 10);
  EXPECT_DOUBLE_EQ(confirmation_rate(c), 10);
  c.predicted = c.measured;
  c.predicted->rate = 20;
  c.measured.reset();
  EXPECT_DOUBLE_EQ(confirmation_rate(c), 19);
  EXPECT_DOUBLE_EQ(confirmation_rate(Capacity{}), 0);
}

TEST(Choose, RegretIsSignedAndPaired) {
  const std::vector<MeasuredPoint> choice{replicate(10, 9, 10), replicate(20, 9, 10)};
  const std::vector<MeasuredPoint> worse{replicate(8, 9, 10), replicate(16, 9, 10)};
  EXPECT_NEAR(regret_estimate(worse, choice).value, 0.2, 1e-12);
  const std::vector<MeasuredPoint> better{replicate(11, 9, 10), replicate(22, 9, 10)};
  EXPECT_NEAR(regret_estimate(better, choice).value, -0.1, 1e-12);
}

TEST(Choose, GoodputOfOneReplicateHasNoInterval) {
  const auto goodput = [](const PointSummary& s) { return s.goodput_rps; };
  const Estimate one = goodput_estimate({replicate(10, 9, 10)}, goodput);
  EXPECT_DOUBLE_EQ(one.value, 10);
  EXPECT_FALSE(one.low || one.high);
  const Estimate three = goodput_estimate({replicate(9, 9, 10), replicate(10, 9, 10), replicate(11, 9, 10)}, goodput);
  EXPECT_DOUBLE_EQ(three.value, 10);
  EXPECT_NEAR(*three.low, 10 - 4.3027 / std::sqrt(3.0), 1e-3);  // t(0.975, 2) = 4.3027, deviation 1
}

TEST(Choose, UndecidedWhereAnIntervalStraddlesTheFloor) {
  EXPECT_TRUE(undecided({replicate(1, 90, 100), replicate(1, 91, 100), replicate(1, 89, 100)}, 0.9));
  EXPECT_FALSE(undecided({replicate(1, 1000, 1000), replicate(1, 1000, 1000), replicate(1, 999, 1000)}, 0.9));
  EXPECT_TRUE(undecided({}, 0.9));
}

TEST(Choose, NotSeparableAreThoseWithinTheMargin) {
  std::vector<Capacity> all{measured(1, 100), measured(2, 96), measured(3, 80)};
  for (auto& c : all)
    c.predicted = c.measured;
  const auto close = not_separable(all, all[0].settings, 0.05);
  ASSERT_EQ(close.size(), 1u);
  EXPECT_EQ(close[0].max_num_seqs, 2);
}

}  // namespace
}  // namespace goodput
