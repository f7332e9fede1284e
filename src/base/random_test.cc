// Streams are pinned, so that a seed means the same schedule for ever, and their distributions are what they claim.
// Seeds are fixed: nothing here can fail by bad luck.
#include "base/random.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <vector>

#include <gtest/gtest.h>

namespace goodput {
namespace {

// Computed by a second implementation, in Python, from the generators' papers.
TEST(Random, KnownAnswers) {
  EXPECT_EQ(mix64(0), 0xe220a8397b1dcdafull);  // splitmix64's first output from state 0, as published
  EXPECT_EQ(fnv1a(""), 1469598103934665603ull);
  EXPECT_EQ(fnv1a("a"), 4953267810257967366ull);
  EXPECT_EQ(fnv1a("foobar"), 9870438755804841970ull);
  Random arrivals(1, "arrivals"), lengths(42, "lengths");
  for (const uint64_t expected :
       {0x4ec91142adfd4037ull, 0x692adc60deb4b672ull, 0xe8e42e189dc8e941ull, 0xe69233156e703da5ull})
    EXPECT_EQ(arrivals.next(), expected);
  EXPECT_EQ(lengths.next(), 0x15eec5313487328bull);
  EXPECT_EQ(lengths.next(), 0x18b5889a2762ae86ull);
}

TEST(Random, StreamsAreNamedBySeedAndPurpose) {
  const auto first = [](uint64_t seed, const char* purpose) { return Random(seed, purpose).next(); };
  EXPECT_EQ(first(1, "a"), first(1, "a"));
  EXPECT_NE(first(1, "a"), first(2, "a"));
  EXPECT_NE(first(1, "a"), first(1, "b"));
  Random one(1, "a");
  one.next();
  Random copy = one;
  EXPECT_EQ(one.next(), copy.next());
}

struct Moments {
  double mean, variance, skewness;
};
Moments moments(const std::function<double()>& draw, int n = 200'000) {
  std::vector<double> values(static_cast<size_t>(n));
  std::ranges::generate(values, draw);
  double mean = 0, m2 = 0, m3 = 0;
  for (const double v : values)
    mean += v / n;
  for (const double v : values)
    m2 += std::pow(v - mean, 2) / n, m3 += std::pow(v - mean, 3) / n;
  return {mean, m2, m3 / std::pow(m2, 1.5)};
}

TEST(Random, UniformLiesInTheUnitInterval) {
  Random random(3, "uniform");
  for (int i = 0; i < 100'000; ++i) {
    const double u = random.uniform();
    ASSERT_GE(u, 0);
    ASSERT_LT(u, 1);
  }
  const Moments m = moments([&] { return random.uniform(); });
  EXPECT_NEAR(m.mean, 0.5, 0.003);
  EXPECT_NEAR(m.variance, 1.0 / 12, 0.001);
}

TEST(Random, UniformIntReachesItsEndsEvenly) {
  Random random(3, "dice");
  std::array<int, 6> faces{};
  for (int i = 0; i < 60'000; ++i)
    ++faces[static_cast<size_t>(random.uniform_int(1, 6) - 1)];
  double chi2 = 0;
  for (const int f : faces)
    chi2 += std::pow(f - 10'000, 2) / 10'000;
  EXPECT_LT(chi2, 20.5);  // 99.9 % at 5 degrees of freedom
  EXPECT_EQ(random.uniform_int(7, 7), 7);
  for (int i = 0; i < 1000; ++i) {
    const int64_t v = random.uniform_int(INT64_MIN, INT64_MIN + 1);
    ASSERT_TRUE(v == INT64_MIN || v == INT64_MIN + 1);
  }
  bool negative = false, positive = false;
  for (int i = 0; i < 100; ++i) {
    const int64_t v = random.uniform_int(INT64_MIN, INT64_MAX);
    negative |= v < 0;
    positive |= v > 0;
  }
  EXPECT_TRUE(negative && positive);
}

TEST(Random, Exponential) {
  Random random(3, "exponential");
  const Moments m = moments([&] { return random.exponential(2); });
  EXPECT_NEAR(m.mean, 2, 0.02);
  EXPECT_NEAR(m.variance, 4, 0.1);
  EXPECT_NEAR(m.skewness, 2, 0.1);
}

TEST(Random, Normal) {
  Random random(3, "normal");
  const Moments m = moments([&] { return random.normal(); });
  EXPECT_NEAR(m.mean, 0, 0.01);
  EXPECT_NEAR(m.variance, 1, 0.01);
  EXPECT_NEAR(m.skewness, 0, 0.03);
}

TEST(Random, GammaAboveAndBelowShapeOne) {
  Random random(3, "gamma");
  for (const double shape : {0.25, 1.0, 4.0}) {
    const Moments m = moments([&] { return random.gamma(shape, 3); });
    EXPECT_NEAR(m.mean, 3 * shape, 0.03 * 3 * shape);
    EXPECT_NEAR(m.variance, 9 * shape, 0.05 * 9 * shape);
    EXPECT_NEAR(m.skewness, 2 / std::sqrt(shape), 0.1 * 2 / std::sqrt(shape));
  }
}

TEST(Random, LognormalHasItsMedianAndSpread) {
  Random random(3, "lognormal");
  int below = 0;
  for (int i = 0; i < 100'000; ++i)
    below += random.lognormal(200, 0.7) < 200;
  EXPECT_NEAR(below, 50'000, 600);
  const Moments logs = moments([&] { return std::log(random.lognormal(200, 0.7)); });
  EXPECT_NEAR(logs.mean, std::log(200.0), 0.01);
  EXPECT_NEAR(logs.variance, 0.49, 0.01);
  EXPECT_EQ(random.lognormal(200, 0), 200);
}

// Case 37: arrivals must scatter as a Poisson process does. A generator that rescales its gaps to end on time has a
// spread of zero here.
TEST(Random, Case37PoissonMustNotBeRescaled) {
  std::vector<double> last, gaps;
  for (uint64_t seed = 0; seed < 1000; ++seed) {
    Random random(seed, "arrivals");
    double t = 0;
    for (int i = 0; i < 100; ++i) {
      gaps.push_back(random.exponential(0.1));
      t += gaps.back();
    }
    last.push_back(t);
  }
  size_t at = 0;
  const Moments ends = moments([&] { return last[at++]; }, 1000);
  EXPECT_NEAR(ends.mean, 10, 0.15);
  EXPECT_NEAR(std::sqrt(ends.variance), 1.0, 0.1);
  at = 0;
  const auto n = static_cast<int>(gaps.size());
  const Moments gap = moments([&] { return gaps[at++]; }, n);
  EXPECT_NEAR(std::sqrt(gap.variance) / gap.mean, 1.0, 0.03);
  std::ranges::sort(gaps);
  double distance = 0;  // Kolmogorov–Smirnov against the exponential distribution, 5 % level
  for (int i = 0; i < n; ++i) {
    const double f = 1 - std::exp(-gaps[static_cast<size_t>(i)] / 0.1);
    distance = std::max({distance, f - static_cast<double>(i) / n, static_cast<double>(i + 1) / n - f});
  }
  EXPECT_LT(distance, 1.358 / std::sqrt(n));
}

TEST(RandomDeathTest, ImpossibleParameters) {
  Random random(1, "x");
  EXPECT_DEATH(random.uniform_int(2, 1), "ends in order");
  EXPECT_DEATH(random.gamma(0, 1), "positive parameters");
}

}  // namespace
}  // namespace goodput
