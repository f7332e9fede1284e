#include "metrics/compare.h"

#include <cmath>

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "base/random.h"

namespace goodput {
namespace {

TEST(Welch, ByHand) {
  // Variances of the means 1/3 and 4/3; df = (5/3)² / ((1/3)²/2 + (4/3)²/2) = 50/17.
  const std::vector<double> a = {1, 2, 3}, b = {4, 6, 8};
  const auto i = welch(a, b);
  ASSERT_TRUE(i);
  const double half = student_factor(50.0 / 17, 0.95) * std::sqrt(5.0 / 3);
  EXPECT_NEAR(i->low, 4 - half, 1e-9);
  EXPECT_NEAR(i->high, 4 + half, 1e-9);
  EXPECT_NEAR(student_factor(2, 0.95), 4.302653, 1e-6);
  EXPECT_FALSE(welch(std::vector<double>{1}, b));
  EXPECT_DOUBLE_EQ(welch(std::vector<double>{1, 1}, std::vector<double>{3, 3})->low, 2);
}

TEST(ReplicateInterval, CoversStudentsAndRespectsWhatIsPossible) {
  EXPECT_TRUE(rc::check([](uint64_t seed) {
    Random random(seed, "replicates");
    std::vector<double> latencies, shares;
    for (int64_t i = random.uniform_int(2, 8); i > 0; --i) {
      latencies.push_back(random.lognormal(100, 1));
      shares.push_back(random.uniform_int(0, 3) == 0 ? 1.0 : random.uniform());
    }
    const auto positive = replicate_interval(latencies, FigureScale::kPositive);
    const auto plain = student(latencies);
    RC_ASSERT(positive->low >= 0 && positive->high >= plain->high && positive->low <= std::max(plain->low, 0.0));
    const auto share = replicate_interval(shares, FigureScale::kShare);
    RC_ASSERT(share->low >= 0 && share->high <= 1 && share->low <= share->high);
  }));
  EXPECT_FALSE(replicate_interval(std::vector<double>{1}, FigureScale::kPositive));
  EXPECT_TRUE(replicate_interval(std::vector<double>{0, 1, 2}, FigureScale::kPositive));  // no logarithm of 0
}

TEST(Compare, PairsRemoveWhatBothSidesShare) {
  const std::vector<double> a = {100, 300, 200}, b = {111, 329, 221};  // schedules differ far more than the sides
  const Difference paired = compare_replicates(a, b, true), unpaired = compare_replicates(a, b, false);
  EXPECT_EQ(paired.basis, Basis::kPairedReplicates);
  EXPECT_EQ(unpaired.basis, Basis::kReplicates);
  EXPECT_NEAR(paired.change, 61.0 / 3, 1e-9);
  EXPECT_NEAR(*paired.ratio, 661.0 / 600 - 1, 1e-9);
  EXPECT_TRUE(*compare_replicates(a, std::vector<double>{110, 330, 220}, true).differs() ||
              compare_replicates(a, std::vector<double>{110, 330, 220}, true).ratio_interval->low > 0);
  EXPECT_FALSE(*unpaired.differs());
}

TEST(Compare, OneFigureASideHasNoInterval) {
  const Difference d = compare_replicates(std::vector<double>{10}, std::vector<double>{12}, false);
  EXPECT_EQ(d.basis, Basis::kNone);
  EXPECT_FALSE(d.change_interval);
  EXPECT_FALSE(d.differs());
  EXPECT_DOUBLE_EQ(d.change, 2);
  EXPECT_NEAR(*d.ratio, 0.2, 1e-12);
  EXPECT_FALSE(compare_replicates(std::vector<double>{0}, std::vector<double>{12}, false).ratio);
}

TEST(Compare, PartsOfOneRun) {
  std::vector<double> a, b;
  Random random(7, "parts");
  for (size_t i = 0; i < kParts * kMinPart; ++i) {
    const double v = random.lognormal(100, 0.5);
    a.push_back(v);
    b.push_back(1.5 * v);
  }
  a[3] = NAN;  // a failure has no latency
  const auto d = compare_runs(a, b, true, percentile_of, 0.95);
  ASSERT_TRUE(d);
  EXPECT_EQ(d->basis, Basis::kPairedParts);
  EXPECT_NEAR(*d->ratio, 0.5, 0.01);
  EXPECT_TRUE(*d->differs());
  a.pop_back();  // a part is too short now
  const auto short_run = compare_runs(a, b, false, percentile_of, 0.95);
  ASSERT_TRUE(short_run);
  EXPECT_EQ(short_run->basis, Basis::kNone);
  EXPECT_FALSE(compare_runs(std::vector<double>{1, 2}, b, false, percentile_of, 0.95));  // no p95 of two
  EXPECT_FALSE(compare_runs({}, {}, true, mean_of, 0));
}

}  // namespace
}  // namespace goodput
