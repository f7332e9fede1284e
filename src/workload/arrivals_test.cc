// The arrival processes against what probability theory says of them. Seeds are fixed, so every figure is exact; the
// bounds are those a right process meets with overwhelming probability.
#include "workload/arrivals.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <boost/math/special_functions/gamma.hpp>

namespace goodput {
namespace {

WorkloadSpec of_kind(ArrivalKind kind, double rate, double burstiness = 1) {
  WorkloadSpec w;
  w.arrivals = kind;
  w.rate = rate;
  w.burstiness = burstiness;
  return w;
}

std::vector<double> times_of(const WorkloadSpec& w, uint64_t seed, size_t n, std::optional<Nanos> duration = {}) {
  auto arrivals = Arrivals::create(w, seed, duration, n);
  std::vector<double> times;
  while (times.size() < n) {
    const auto at = arrivals ? arrivals->next() : std::nullopt;
    if (!at)
      break;
    times.push_back(to_seconds(*at));
  }
  return times;
}

std::vector<double> poisson_times(double rate, uint64_t seed, size_t n) {
  return times_of(of_kind(ArrivalKind::kPoisson, rate), seed, n);
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

// The largest distance between the values' distribution and this one.
double ks_distance(std::vector<double> values, const std::function<double(double)>& distribution) {
  std::ranges::sort(values);
  const auto n = static_cast<double>(values.size());
  double distance = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    const double cdf = distribution(values[i]);
    distance = std::max({distance, cdf - static_cast<double>(i) / n, static_cast<double>(i + 1) / n - cdf});
  }
  return distance;
}
double ks_critical(size_t n) { return 1.63 / std::sqrt(static_cast<double>(n)); }  // at 1 %

double correlation(const std::vector<double>& x, const Moments& m, size_t lag) {
  double covariance = 0;
  for (size_t i = lag; i < x.size(); ++i)
    covariance += (x[i] - m.mean) * (x[i - lag] - m.mean) / static_cast<double>(x.size());
  return covariance / m.variance;
}

// Variance ÷ mean of the counts in windows of this length.
Moments count_moments(const std::vector<double>& times, double window) {
  std::vector<double> counts(static_cast<size_t>(times.back() / window));
  for (const double t : times)
    if (const auto w = static_cast<size_t>(t / window); w < counts.size())
      ++counts[w];
  return moments(counts);
}

constexpr size_t kMillion = 1'000'000;

// Poisson is gamma of shape 1, drawn by another method.
TEST(Arrivals, Case37AMillionArrivalsPassDispersionDistributionAndIndependence) {
  struct Process {
    ArrivalKind kind;
    double shape;
  };
  constexpr double kRate = 50;
  for (const auto& [kind, shape] : {Process{ArrivalKind::kPoisson, 1},
                                    {ArrivalKind::kGamma, 1},
                                    {ArrivalKind::kGamma, 0.25},
                                    {ArrivalKind::kGamma, 4}}) {
    SCOPED_TRACE(testing::Message() << to_string(kind) << " shape " << shape);
    const auto times = times_of(of_kind(kind, kRate, shape), 1, kMillion);
    const auto gaps = gaps_of(times);
    const Moments m = moments(gaps);
    EXPECT_NEAR(m.mean * kRate, 1, 4 / std::sqrt(shape * kMillion));
    // The relative variance's standard error from the gamma's fourth moment: kurtosis 3 + 6/shape.
    EXPECT_NEAR(m.variance / (m.mean * m.mean) * shape, 1, 4 * std::sqrt((2 + 6 / shape + 4 / shape) / kMillion));
    const double k = shape;
    // On the gaps as drawn: of shape 0.25, one in a hundred is shorter than the nanosecond to which times are rounded.
    UnitArrivals unit(kind, shape, 1);
    std::vector<double> drawn(kMillion);
    double now = 0;
    for (size_t i = 0; i < kMillion; ++i) {
      now += drawn[i] = unit.gap();
      ASSERT_NEAR(times[i], now / kRate, 1e-9);
    }
    EXPECT_LT(ks_distance(drawn, [k](double x) { return boost::math::gamma_p(k, x * k); }), ks_critical(kMillion));
    for (size_t lag = 1; lag <= 10; ++lag)
      EXPECT_NEAR(correlation(gaps, m, lag), 0, 4 / std::sqrt(kMillion)) << lag;
    // The dispersion of a renewal process's counts tends to the gaps' relative variance, 1 ÷ shape; exactly so for
    // Poisson at any window.
    for (const double window : {10.0, 100.0}) {
      const auto windows = std::floor(times.back() / window);
      const Moments counts = count_moments(times, window);
      const double edge = (1 - 1 / (shape * shape)) / 6 / (kRate * window) * shape;  // its second term
      EXPECT_NEAR(counts.variance / counts.mean * shape, 1 + edge, 4 * std::sqrt(2.0 / windows)) << window;
    }
  }
}

TEST(Arrivals, CountsAreDispersedAsPoissonCounts) {
  // Index of dispersion of counts over windows of 1 s and of 100 s: correlations at either scale show.
  const auto times = poisson_times(20, 2, kMillion);
  for (const double window : {1.0, 100.0}) {
    const Moments m = count_moments(times, window);
    EXPECT_NEAR(m.variance / m.mean, 1, 4 * std::sqrt(2.0 / std::floor(times.back() / window))) << window;
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
  EXPECT_LT(ks_distance(gaps, [](double x) { return 1 - std::exp(-10 * x); }), ks_critical(gaps.size()));
}

// Case 37's other half: the rescaled variant exists, under its own name.
TEST(Arrivals, Case37RescaledLandsOnItsSpan) {
  for (const ArrivalKind kind : {ArrivalKind::kPoisson, ArrivalKind::kGamma, ArrivalKind::kConstant}) {
    WorkloadSpec w = of_kind(kind, 10, 0.5);
    const auto free = times_of(w, 7, 100);
    w.rescale = true;
    const auto times = times_of(w, 7, 100);
    EXPECT_NEAR(times.back(), 10, 1e-8) << to_string(kind);
    // One factor for all, but for constant gaps, which start after the first of them.
    const double factor = 10 / free.back();
    for (size_t i = 0; i < times.size(); ++i)
      EXPECT_NEAR(times[i], kind == ArrivalKind::kConstant ? 0.1 * static_cast<double>(i + 1) : free[i] * factor, 1e-8);
    EXPECT_FALSE(Arrivals::create(w, 7, seconds(10), {}));
  }
}

TEST(Arrivals, InfiniteBurstinessIsConstant) {
  const auto gamma = times_of(of_kind(ArrivalKind::kGamma, 3, std::numeric_limits<double>::infinity()), 1, 1000);
  EXPECT_EQ(gamma, times_of(of_kind(ArrivalKind::kConstant, 3), 1, 1000));
}

TEST(Arrivals, SeedsAreIndependent) {
  const auto a = gaps_of(poisson_times(1, 1, 100'000)), b = gaps_of(poisson_times(1, 2, 100'000));
  double product = 0;
  for (size_t i = 0; i < a.size(); ++i)
    product += (a[i] - 1) * (b[i] - 1) / static_cast<double>(a.size());
  EXPECT_NEAR(product, 0, 0.0127);  // 4 standard errors
}

TEST(Arrivals, AnotherRateStretchesTheSameTimes) {
  const auto slow = poisson_times(0.5, 3, 1000), fast = poisson_times(4, 3, 1000);
  for (size_t i = 0; i < slow.size(); ++i)
    EXPECT_NEAR(slow[i], 8 * fast[i], 1e-8 * (1 + slow[i]));
}

TEST(Arrivals, ConstantNeverDrifts) {
  const auto times = times_of(of_kind(ArrivalKind::kConstant, 3), 1, 300'000);
  EXPECT_NEAR(times.back(), 299'999 / 3.0, 1e-9);
}

TEST(Arrivals, TinyRatesDoNotOverflow) { EXPECT_EQ(poisson_times(1e-300, 1, 1), std::vector<double>{1e9}); }

// A ramp's mean count by time t is the integral of its rate; constant arrivals hit it exactly.
TEST(Arrivals, RampsFollowTheIntegralOfTheirRate) {
  WorkloadSpec w = of_kind(ArrivalKind::kConstant, 1);
  w.ramp = RampSpec{.from = 1, .to = 9, .over = seconds(100)};
  auto times = times_of(w, 1, 2000);
  const auto linear = [](double t) { return t < 100 ? t + 8 * t * t / 200 : 500 + 9 * (t - 100); };
  for (size_t i = 0; i < times.size(); ++i)
    ASSERT_NEAR(linear(times[i]), static_cast<double>(i), 1e-5) << i;

  w.ramp->shape = RampSpec::Shape::kExponential;
  times = times_of(w, 1, 2000);
  const double k = std::log(9.0) / 100;
  const auto exponential = [k](double t) { return t < 100 ? std::expm1(k * t) / k : 8 / k + 9 * (t - 100); };
  for (size_t i = 0; i < times.size(); ++i)
    ASSERT_NEAR(exponential(times[i]), static_cast<double>(i), 1e-5) << i;

  // Down to nothing: an end.
  w.ramp = RampSpec{.from = 4, .to = 0, .over = seconds(10)};
  EXPECT_EQ(times_of(w, 1, 1000).size(), 20u);
}

// Mapped back through the integral, the times of a Poisson process under a ramp are a Poisson process again.
TEST(Arrivals, ARampedPoissonProcessIsOne) {
  WorkloadSpec w = of_kind(ArrivalKind::kPoisson, 1);
  w.ramp = RampSpec{.from = 10, .to = 1000, .over = seconds(400)};
  const size_t n = 200'000;
  const auto times = times_of(w, 4, n);
  ASSERT_LT(times.back(), 400);
  std::vector<double> unit;
  for (const double t : times)
    unit.push_back(10 * t + 990 * t * t / 800);
  const auto gaps = gaps_of(unit);
  EXPECT_LT(ks_distance(gaps, [](double x) { return 1 - std::exp(-x); }), ks_critical(n));
  for (size_t lag = 1; lag <= 10; ++lag)
    EXPECT_NEAR(correlation(gaps, moments(gaps), lag), 0, 4 / std::sqrt(n));
}

// vLLM's: request i of N has its gap at progress i/(N−1), so that half of the requests come before the middle rate.
TEST(Arrivals, ARampByIndexIsOfRequestsNotOfTime) {
  WorkloadSpec w = of_kind(ArrivalKind::kConstant, 1);
  w.ramp = RampSpec{.by = RampSpec::By::kIndex, .from = 1, .to = 3};
  const auto linear = times_of(w, 1, 5);  // rates 1, 1.5, 2, 2.5, 3
  double at = 0;
  for (size_t i = 0; i < 5; ++i)
    EXPECT_NEAR(linear[i], at += 1 / (1 + 0.5 * static_cast<double>(i)), 1e-8);
  w.ramp->shape = RampSpec::Shape::kExponential;
  w.ramp->to = 16;
  const auto exponential = times_of(w, 1, 5);  // rates 1, 2, 4, 8, 16
  at = 0;
  for (size_t i = 0; i < 5; ++i)
    EXPECT_NEAR(exponential[i], at += 1 / std::pow(2, i), 1e-8);
  EXPECT_FALSE(Arrivals::create(w, 1, seconds(10), {}));
}

TEST(Arrivals, ARampWithoutALengthTakesTheRuns) {
  WorkloadSpec w = of_kind(ArrivalKind::kConstant, 1);
  w.ramp = RampSpec{.from = 0, .to = 10};
  EXPECT_FALSE(Arrivals::create(w, 1, {}, 10));
  const auto times = times_of(w, 1, 1000, seconds(20));
  EXPECT_NEAR(times[25], 10, 1e-6);   // t²/4 of them by t
  EXPECT_NEAR(times[100], 20, 1e-6);  // the end of the ramp
}

TEST(Arrivals, StagesFollowEachOtherAndEnd) {
  WorkloadSpec w = of_kind(ArrivalKind::kConstant, 1);
  w.stages = {{2, seconds(10)}, {0, seconds(5)}, {10, seconds(2)}};
  const auto times = times_of(w, 1, 1000);
  ASSERT_EQ(times.size(), 40u);
  EXPECT_NEAR(times[19], 9.5, 1e-9);
  EXPECT_NEAR(times[20], 15, 1e-9);
  EXPECT_NEAR(times[39], 16.9, 1e-9);
  const auto arrivals = Arrivals::create(w, 1, {}, {});
  EXPECT_NEAR(arrivals->expected_by(seconds(10)), 20, 1e-9);
  EXPECT_NEAR(arrivals->expected_by(seconds(16)), 30, 1e-9);
  EXPECT_NEAR(arrivals->expected_by(seconds(1000)), 40, 1e-9);
}

TEST(Arrivals, AnyProfileIsAscendingAndMeetsItsExpectation) {
  EXPECT_TRUE(rc::check("ascending, and as many as the integral says", [] {
    WorkloadSpec w = of_kind(ArrivalKind::kConstant, 1);
    const auto rate = [] { return *rc::gen::inRange(1, 1000) * 0.05; };
    if (*rc::gen::arbitrary<bool>()) {
      w.ramp = RampSpec{.from = rate(), .to = rate(), .over = seconds(*rc::gen::inRange(1, 100))};
      w.ramp->shape = *rc::gen::element(RampSpec::Shape::kLinear, RampSpec::Shape::kExponential);
    } else {
      for (int i = *rc::gen::inRange(1, 6); i > 0; --i)
        w.stages.push_back({rate(), seconds(*rc::gen::inRange(1, 30))});
    }
    auto arrivals = Arrivals::create(w, 1, {}, {});
    RC_ASSERT(arrivals.has_value());
    Nanos last;
    for (int64_t i = 0; i < 2000; ++i) {
      const auto at = arrivals->next();
      if (!at)
        break;
      RC_ASSERT(*at >= last);
      last = *at;
      RC_ASSERT(std::abs(arrivals->expected_by(last) - static_cast<double>(i)) < 1e-4);
    }
  }));
}

}  // namespace
}  // namespace goodput
