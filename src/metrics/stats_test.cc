// Percentiles and intervals against known answers, closed forms and simulated coverage.
#include "metrics/stats.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "base/random.h"

namespace goodput {
namespace {

std::vector<double> one_to(int n) {
  std::vector<double> values(static_cast<size_t>(n));
  std::iota(values.begin(), values.end(), 1.0);
  return values;
}

TEST(Stats, NearestRank) {
  EXPECT_FALSE(percentile({}, 0.5));
  const auto ten = one_to(10);
  EXPECT_EQ(percentile(ten, 0.5), 5);
  EXPECT_EQ(percentile(ten, 0.51), 6);
  EXPECT_EQ(percentile(ten, 0.9), 9);
  EXPECT_EQ(percentile(ten, 0.95), 10);
  EXPECT_EQ(percentile(ten, 1.0), 10);
  EXPECT_EQ(percentile(ten, 1e-9), 1);
  EXPECT_EQ(percentile(one_to(100), 0.07), 7);  // 0.07 × 100 is above 7 in binary
  EXPECT_EQ(percentile(one_to(100), 0.99), 99);
  EXPECT_EQ(percentile(one_to(1'000'000), 0.999), 999'000);
}

TEST(Stats, WeightedPercentile) {
  EXPECT_FALSE(weighted_percentile({}, 0.5));
  EXPECT_FALSE(weighted_percentile({{5, 0}, {6, -1}}, 0.5));
  EXPECT_EQ(weighted_percentile({{30, 1}, {10, 8}, {20, 1}}, 0.5), 10);
  EXPECT_EQ(weighted_percentile({{30, 1}, {10, 8}, {20, 1}}, 0.9), 20);
  EXPECT_EQ(weighted_percentile({{30, 1}, {10, 8}, {20, 1}}, 0.91), 30);
}

TEST(Stats, SelectionEqualsSorting) {
  EXPECT_TRUE(rc::check("weighted selection over large and small pools", [] {
    Random random(*rc::gen::arbitrary<uint64_t>(), "pool");
    const int n = *rc::gen::element(1, 2, 17, 1024, 1025, 5000);
    const int kind = *rc::gen::inRange(0, 4);
    std::vector<Weighted> pool;
    for (int i = 0; i < n; ++i) {
      const double v = kind == 0   ? random.lognormal(1e7, 1)
                       : kind == 1 ? static_cast<double>(random.uniform_int(0, 3))
                       : kind == 2 ? random.normal() * std::pow(10.0, static_cast<double>(random.uniform_int(-9, 9)))
                                   : 1e7 + random.uniform();
      pool.push_back({v, static_cast<double>(random.uniform_int(1, 4))});
    }
    auto sorted = pool;
    std::ranges::sort(sorted, {}, &Weighted::value);
    double total = 0;
    for (const Weighted& w : pool)
      total += w.weight;
    for (const double p : {0.01, 0.5, 0.95, 0.99, 1.0}) {
      double sum = 0, expected = 0;
      for (const Weighted& w : sorted) {
        expected = w.value;
        sum += w.weight;
        if (sum >= share_of(total, p))
          break;
      }
      RC_ASSERT(weighted_percentile(pool, p) == expected);
    }
  }));
}

TEST(Stats, PercentileIsAlwaysAnElement) {
  EXPECT_TRUE(rc::check([] {
    auto values = *rc::gen::nonEmpty(rc::gen::container<std::vector<double>>(
        rc::gen::map(rc::gen::arbitrary<int32_t>(), [](int32_t v) { return v / 7.0; })));
    const double p = *rc::gen::inRange(1, 1001) / 1000.0;
    const Percentiles reported = percentiles(values);
    std::ranges::sort(values);
    const double v = *percentile(values, p);
    RC_ASSERT(std::ranges::binary_search(values, v));
    // At least p of the sample is at or below it, and less than p strictly below.
    const auto below = std::ranges::lower_bound(values, v) - values.begin();
    const auto upto = std::ranges::upper_bound(values, v) - values.begin();
    const auto n = static_cast<double>(values.size());
    RC_ASSERT(static_cast<double>(upto) >= share_of(n, p));
    RC_ASSERT(static_cast<double>(below) < p * n);
    RC_ASSERT(*reported.max == values.back());
    for (const auto& [value, q] : {std::pair{reported.p50, 0.5}, {reported.p95, 0.95}, {reported.p99, 0.99}})
      RC_ASSERT(value == (values.size() >= min_samples(q) ? percentile(values, q) : std::nullopt));
  }));
}

TEST(Stats, MinSamples) {
  EXPECT_EQ(min_samples(0.5), 5u);
  EXPECT_EQ(min_samples(0.9), 29u);
  EXPECT_EQ(min_samples(0.95), 59u);
  EXPECT_EQ(min_samples(0.99), 299u);
  for (const double p : {0.5, 0.9, 0.95, 0.99, 0.999}) {
    const auto n = static_cast<double>(min_samples(p));
    EXPECT_GE(1 - std::pow(p, n), 0.95);
    EXPECT_LT(1 - std::pow(p, n - 1), 0.95);
  }
}

TEST(Stats, PercentilesThatCannotBeBoundedAreAbsent) {
  const auto reported = [](int n) { return percentiles(one_to(n)); };
  EXPECT_FALSE(reported(0).max);
  EXPECT_EQ(reported(0).n, 0u);
  EXPECT_EQ(reported(1).max, 1);
  EXPECT_FALSE(reported(4).p50);
  EXPECT_EQ(reported(5).p50, 3);
  EXPECT_FALSE(reported(58).p95);
  EXPECT_EQ(reported(59).p95, 57);
  EXPECT_FALSE(reported(298).p99);
  EXPECT_EQ(reported(299).p99, 297);
  // Token-level: the number of requests decides, since the tokens of one request are not independent.
  std::vector<Weighted> tokens;
  for (int i = 1; i <= 1000; ++i)
    tokens.push_back({static_cast<double>(i), 1});
  EXPECT_FALSE(weighted_percentiles(tokens, 298).p99);
  EXPECT_EQ(weighted_percentiles(tokens, 299).p99, 990);
  EXPECT_EQ(weighted_percentiles(tokens, 299).n, 299u);
}

TEST(Stats, QuantileInterval) {
  // n = 10, median: ranks 2 and 9 cover with 0.9785 (Conover, Practical Nonparametric Statistics, 3.2).
  const auto median = quantile_interval(one_to(10), 0.5);
  ASSERT_TRUE(median);
  EXPECT_EQ(median->low, 2);
  EXPECT_EQ(median->high, 9);
  EXPECT_FALSE(quantile_interval(one_to(5), 0.5));
  EXPECT_TRUE(quantile_interval(one_to(6), 0.5));
  EXPECT_FALSE(quantile_interval({}, 0.5));
  // Two-sided p99 needs 1 − 0.99ⁿ >= 0.975: n = 368.
  EXPECT_FALSE(quantile_interval(one_to(367), 0.99));
  EXPECT_TRUE(quantile_interval(one_to(368), 0.99));
}

TEST(Stats, QuantileIntervalCovers) {
  Random random(7, "coverage");
  for (const double p : {0.5, 0.9}) {
    const double truth = -std::log(1 - p);
    int covered = 0;
    constexpr int kTrials = 4000;
    for (int t = 0; t < kTrials; ++t) {
      std::vector<double> sample(60);
      for (double& v : sample)
        v = random.exponential(1);
      std::ranges::sort(sample);
      const auto i = quantile_interval(sample, p);
      ASSERT_TRUE(i);
      covered += i->low <= truth && truth <= i->high;
    }
    EXPECT_GE(covered, 0.945 * kTrials);
  }
}

TEST(Stats, WilsonKnownValues) {
  // Newcombe, Statistics in Medicine 17 (1998), table I: 81/263 and 0/20.
  Interval i = wilson(81, 263);
  EXPECT_NEAR(i.low, 0.2553, 5e-5);
  EXPECT_NEAR(i.high, 0.3662, 5e-5);
  i = wilson(0, 20);
  EXPECT_EQ(i.low, 0);
  EXPECT_NEAR(i.high, 0.1611, 5e-5);
  i = wilson(0, 0);
  EXPECT_EQ(i.low, 0);
  EXPECT_EQ(i.high, 1);
}

TEST(Stats, WilsonStaysInsideAndContainsTheShare) {
  EXPECT_TRUE(rc::check([] {
    const int n = *rc::gen::inRange(1, 100'000);
    const int k = *rc::gen::inRange(0, n + 1);
    const Interval i = wilson(k, n);
    RC_ASSERT(0 <= i.low && i.low <= static_cast<double>(k) / n);
    RC_ASSERT(static_cast<double>(k) / n <= i.high && i.high <= 1);
    RC_ASSERT(i.low < i.high);
  }));
}

TEST(Stats, StudentKnownValues) {
  EXPECT_FALSE(student({}));
  const double one[] = {3};
  EXPECT_FALSE(student(one));
  const double three[] = {1, 2, 3};  // t(0.975, 2) = 4.302653; s = 1
  const auto i = student(three);
  ASSERT_TRUE(i);
  EXPECT_NEAR(i->low, 2 - 4.302653 / std::sqrt(3.0), 1e-6);
  EXPECT_NEAR(i->high, 2 + 4.302653 / std::sqrt(3.0), 1e-6);
}

TEST(Stats, AttainmentIsPooledAndNeverNarrowerThanWilson) {
  const Count even[] = {{90, 100}, {90, 100}, {90, 100}};
  Estimate e = attainment_estimate(even);
  const Interval w = wilson(270, 300);
  EXPECT_DOUBLE_EQ(e.value, 0.9);
  EXPECT_DOUBLE_EQ(*e.low, w.low);
  EXPECT_DOUBLE_EQ(*e.high, w.high);
  const Count apart[] = {{100, 100}, {60, 100}, {20, 20}};
  e = attainment_estimate(apart);
  EXPECT_DOUBLE_EQ(e.value, 180.0 / 220.0);  // a ratio of sums
  EXPECT_LT(*e.low, wilson(180, 220).low);
  EXPECT_EQ(*e.high, 1);
  EXPECT_GE(*e.low, 0);
  const Count with_empty[] = {{9, 10}, {0, 0}};
  EXPECT_DOUBLE_EQ(attainment_estimate(with_empty).value, 0.9);
  EXPECT_EQ(*attainment_estimate({}).low, 0);
  EXPECT_EQ(*attainment_estimate({}).high, 1);
}

TEST(Stats, AttainmentIntervalCoversThroughReplicatesThatDiffer) {
  // Runs share their luck: the success rate of a run is itself random around 0.9 (correlation inside a run).
  Random random(11, "replicates");
  for (const double between : {0.0, 0.02, 0.05}) {
    int covered = 0;
    constexpr int kTrials = 2000;
    for (int t = 0; t < kTrials; ++t) {
      Count runs[3];
      for (Count& c : runs) {
        const double p = std::clamp(0.9 + between * random.normal(), 0.0, 1.0);
        c = {0, 60};
        for (int i = 0; i < 60; ++i)
          c.good += random.uniform() < p;
      }
      const Estimate e = attainment_estimate(runs);
      covered += *e.low <= 0.9 && 0.9 <= *e.high;
    }
    EXPECT_GE(covered, 0.93 * kTrials) << between;
  }
}

TEST(Stats, MeanP95MaxWeighsByTime) {
  EXPECT_FALSE(mean_p95_max({}).mean);
  const MeanP95Max m = mean_p95_max({{0, 90}, {10, 8}, {50, 2}, {1000, 0}});
  EXPECT_DOUBLE_EQ(*m.mean, 1.8);
  EXPECT_EQ(m.p95, 10);
  EXPECT_EQ(m.max, 50);
}

}  // namespace
}  // namespace goodput
