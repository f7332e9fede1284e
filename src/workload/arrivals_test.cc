// The arrival processes against what probability theory says of them. Seeds are fixed, so every figure is exact; the
// bounds are those a right process meets with overwhelming probability.
#include "workload/arrivals.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include <gtest/gtest.h>

namespace goodput {
namespace {

std::vector<double> poisson_times(double rate, uint64_t seed, size_t n) {
  PoissonArrivals arrivals(rate, seed);
  std::vector<double> times(n);
  for (double& t : times)
    t = to_seconds(arrivals.next());
  return times;
}

std::vector<double> gaps_of(const std::vector<double>& times) {
  std::vector<double> gaps;
  double last = 0;
  for (const double t : times)
    gaps.push_back(t - last), last = t;
  return gaps;
}

struct Moments {
  double mean = 0, variance = 0;
};
Moments moments(const std::vector<double>& x) {
  Moments m;
  for (const double v : x)
    m.mean += v / static_cast<double>(x.size());
  for (const double v : x)
    m.variance += (v - m.mean) * (v - m.mean) / static_cast<double>(x.size() - 1);
  return m;
}

// The largest distance between the gaps' distribution and the exponential of this rate.
double ks_distance(std::vector<double> gaps, double rate) {
  std::ranges::sort(gaps);
  const auto n = static_cast<double>(gaps.size());
  double distance = 0;
  for (size_t i = 0; i < gaps.size(); ++i) {
    const double cdf = 1 - std::exp(-rate * gaps[i]);
    distance = std::max({distance, cdf - static_cast<double>(i) / n, static_cast<double>(i + 1) / n - cdf});
  }
  return distance;
}

TEST(Arrivals, AMillionGapsAreExponentialAndIndependent) {
  constexpr size_t kN = 1'000'000;
  constexpr double kRate = 50;
  const auto times = poisson_times(kRate, 1, kN);
  const auto gaps = gaps_of(times);
  const Moments m = moments(gaps);
  EXPECT_NEAR(m.mean * kRate, 1, 0.004);                      // 4 standard errors
  EXPECT_NEAR(std::sqrt(m.variance) / m.mean, 1, 0.005);      // coefficient of variation
  EXPECT_LT(ks_distance(gaps, kRate), 1.63 / std::sqrt(kN));  // the 1 % critical value

  double covariance = 0;
  for (size_t i = 1; i < kN; ++i)
    covariance += (gaps[i] - m.mean) * (gaps[i - 1] - m.mean) / kN;
  EXPECT_NEAR(covariance / m.variance, 0, 0.004);  // lag-1 correlation
}

TEST(Arrivals, CountsAreDispersedAsPoissonCounts) {
  // Index of dispersion of counts, variance ÷ mean, over windows of 1 s and of 100 s: correlations at either scale
  // show.
  constexpr double kRate = 20;
  const auto times = poisson_times(kRate, 2, 1'000'000);
  for (const double window : {1.0, 100.0}) {
    std::vector<double> counts(static_cast<size_t>(times.back() / window));
    for (const double t : times)
      if (const auto w = static_cast<size_t>(t / window); w < counts.size())
        ++counts[w];
    const Moments m = moments(counts);
    EXPECT_NEAR(m.variance / m.mean, 1, 4 * std::sqrt(2.0 / static_cast<double>(counts.size()))) << window;
  }
}

// Case 37: rescaling gaps so that the last arrival lands on N ÷ rate is not Poisson.
TEST(Arrivals, Case37PoissonIsNotRescaled) {
  std::vector<double> hundredth, gaps;
  for (uint64_t seed = 0; seed < 1000; ++seed) {
    const auto times = poisson_times(10, seed, 100);
    hundredth.push_back(times.back());
    const auto g = gaps_of(times);
    gaps.insert(gaps.end(), g.begin(), g.end());
  }
  const Moments last = moments(hundredth), gap = moments(gaps);
  EXPECT_NEAR(last.mean, 10, 0.15);
  EXPECT_GE(std::sqrt(last.variance), 0.9);
  EXPECT_LE(std::sqrt(last.variance), 1.1);
  const double cv = std::sqrt(gap.variance) / gap.mean;
  EXPECT_GE(cv, 0.97);
  EXPECT_LE(cv, 1.03);
  EXPECT_LT(ks_distance(gaps, 10), 1.63 / std::sqrt(static_cast<double>(gaps.size())));
}

TEST(Arrivals, SeedsAreIndependent) {
  const auto a = gaps_of(poisson_times(1, 1, 100'000)), b = gaps_of(poisson_times(1, 2, 100'000));
  double correlation = 0;
  for (size_t i = 0; i < a.size(); ++i)
    correlation += (a[i] - 1) * (b[i] - 1) / static_cast<double>(a.size());
  EXPECT_NEAR(correlation, 0, 0.0127);  // 4 standard errors
}

TEST(Arrivals, AnotherRateStretchesTheSameTimes) {
  const auto slow = poisson_times(0.5, 3, 1000), fast = poisson_times(4, 3, 1000);
  for (size_t i = 0; i < slow.size(); ++i)
    EXPECT_NEAR(slow[i], 8 * fast[i], 1e-8 * (1 + slow[i]));
}

TEST(Arrivals, ConstantNeverDrifts) {
  ConstantArrivals arrivals(3);
  Nanos at;
  for (int i = 0; i < 300'000; ++i)
    at = arrivals.next();
  EXPECT_NEAR(to_seconds(at), 299'999 / 3.0, 1e-9);
}

TEST(Arrivals, TinyRatesDoNotOverflow) {
  PoissonArrivals poisson(1e-300, 1);
  EXPECT_EQ(poisson.next(), Nanos(1'000'000'000'000'000'000));
}

}  // namespace
}  // namespace goodput
