// Percentiles by selection, intervals by Boost.Math, which stays in this file. Pure functions; any thread.
#include "metrics/stats.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include <boost/math/distributions/binomial.hpp>
#include <boost/math/distributions/normal.hpp>
#include <boost/math/distributions/students_t.hpp>

#include "base/check.h"
#include "metrics/order_statistics.h"

namespace goodput {
namespace {

size_t nearest_rank(size_t n, double p) {  // 1-based
  CHECK(p > 0 && p <= 1, "a percentile lies in (0, 1]");
  const double rank = std::ceil(share_of(static_cast<double>(n), p));
  return std::clamp<size_t>(static_cast<size_t>(rank), 1, n);
}

auto samples_of(const std::vector<Weighted>& values) {
  return [&](auto visit) {
    for (const Weighted& v : values)
      visit(v.value, v.weight);
  };
}

}  // namespace

std::optional<double> percentile(std::span<const double> sorted, double p) {
  if (sorted.empty())
    return std::nullopt;
  return sorted[nearest_rank(sorted.size(), p) - 1];
}

std::optional<double> weighted_percentile(const std::vector<Weighted>& values, double p) {
  CHECK(p > 0 && p <= 1, "a percentile lies in (0, 1]");
  const auto stats = order_statistics<1>(samples_of(values), {p});
  if (!(stats.weight > 0))
    return std::nullopt;
  return stats.at[0];
}

size_t min_samples(double p) {
  CHECK(p > 0 && p < 1, "only a quantile inside (0, 1) can be bounded");
  return static_cast<size_t>(std::ceil(std::log(0.05) / std::log(p)));
}

std::optional<Interval> quantile_interval(std::span<const double> sorted, double p, double confidence) {
  CHECK(p > 0 && p < 1 && confidence > 0 && confidence < 1);
  const auto n = static_cast<int64_t>(sorted.size());
  if (n == 0)
    return std::nullopt;
  // B, the number of samples below the quantile, is binomial(n, p); [X(l), X(u)] covers it when l <= B < u. F grows, so
  // both ends are found by bisection: l is the largest with P(B < l) <= tail, u the smallest with P(B >= u) <= tail.
  const boost::math::binomial below(static_cast<double>(n), p);
  const double tail = (1 - confidence) / 2;
  const auto first_rank = [&](auto holds) {  // the smallest r in [1, n + 1) where it holds, else n + 1
    int64_t low = 1, high = n + 1;
    while (low < high) {
      const int64_t mid = low + (high - low) / 2;
      if (holds(static_cast<double>(mid)))
        high = mid;
      else
        low = mid + 1;
    }
    return low;
  };
  const int64_t l = first_rank([&](double r) { return cdf(below, r - 1) > tail; }) - 1;
  const int64_t u = first_rank([&](double r) { return cdf(complement(below, r - 1)) <= tail; });
  if (l < 1 || u > n)
    return std::nullopt;
  return Interval{sorted[static_cast<size_t>(l - 1)], sorted[static_cast<size_t>(u - 1)]};
}

Interval wilson(double successes, double n, double confidence) {
  CHECK(successes >= 0 && successes <= n && confidence > 0 && confidence < 1);
  if (n == 0)
    return {0, 1};
  const double z = quantile(boost::math::normal(), (1 + confidence) / 2);
  const double share = successes / n;
  const double middle = share + z * z / (2 * n);
  const double half = z * std::sqrt(share * (1 - share) / n + z * z / (4 * n * n));
  const double scale = 1 + z * z / n;
  // At 0 and n the exact ends are 0 and 1; rounding must not push the share outside.
  return {std::clamp((middle - half) / scale, 0.0, share), std::clamp((middle + half) / scale, share, 1.0)};
}

namespace {

struct Moments {
  double n = 0, mean = 0, variance = 0;  // variance: of the mean
};

Moments moments_of(std::span<const double> values) {
  Moments m;
  m.n = static_cast<double>(values.size());
  for (const double v : values)
    m.mean += v / m.n;
  double squares = 0;
  for (const double v : values)
    squares += (v - m.mean) * (v - m.mean);
  m.variance = squares / (m.n - 1) / m.n;
  return m;
}

}  // namespace

double student_factor(double df, double confidence) {
  CHECK(df >= 1 && confidence > 0 && confidence < 1);
  return quantile(boost::math::students_t(df), (1 + confidence) / 2);
}

std::optional<Interval> student(std::span<const double> replicates, double confidence) {
  CHECK(confidence > 0 && confidence < 1);
  if (replicates.size() < 2)
    return std::nullopt;
  const Moments m = moments_of(replicates);
  const double half = student_factor(m.n - 1, confidence) * std::sqrt(m.variance);
  return Interval{m.mean - half, m.mean + half};
}

std::optional<Interval> welch(std::span<const double> a, std::span<const double> b, double confidence) {
  if (a.size() < 2 || b.size() < 2)
    return std::nullopt;
  const Moments x = moments_of(a), y = moments_of(b);
  const double variance = x.variance + y.variance, difference = y.mean - x.mean;
  if (!(variance > 0))
    return Interval{difference, difference};
  const double df = variance * variance / (x.variance * x.variance / (x.n - 1) + y.variance * y.variance / (y.n - 1));
  const double half = student_factor(std::max(df, 1.0), confidence) * std::sqrt(variance);
  return Interval{difference - half, difference + half};
}

namespace {

// Student's on another scale and back. `to` must be finite for every value.
template <class To, class Back>
std::optional<Interval> student_on(std::span<const double> values, double confidence, To to, Back back) {
  std::vector<double> moved;
  for (const double v : values)
    moved.push_back(to(v));
  const auto i = student(moved, confidence);
  return i ? std::optional(Interval{back(i->low), back(i->high)}) : std::nullopt;
}

Interval hull(Interval a, Interval b) { return {std::min(a.low, b.low), std::max(a.high, b.high)}; }

// A share that keeps off 0 and 1, where the log-odds end: as far as half a request in 500.
double inner_share(double v) { return std::clamp(v, 0.001, 0.999); }

}  // namespace

std::optional<Interval> replicate_interval(std::span<const double> values, FigureScale scale, double confidence) {
  if (scale == FigureScale::kShare) {
    const auto plain = student(values, confidence);
    const auto odds = student_on(
        values, confidence, [](double v) { return std::log(inner_share(v) / (1 - inner_share(v))); },
        [](double v) { return 1 / (1 + std::exp(-v)); });
    if (!plain)
      return std::nullopt;
    const Interval both = hull(*plain, *odds);
    return Interval{std::clamp(both.low, 0.0, 1.0), std::clamp(both.high, 0.0, 1.0)};
  }
  const auto plain = student(values, widened(confidence));
  const bool positive = std::ranges::all_of(values, [](double v) { return v > 0; });
  if (!plain || scale == FigureScale::kPlain || !positive)
    return plain;
  const auto logs = student_on(
      values, widened(confidence), [](double v) { return std::log(v); }, [](double v) { return std::exp(v); });
  const Interval both = hull(*plain, *logs);
  return Interval{std::max(both.low, 0.0), both.high};
}

Estimate attainment_estimate(std::span<const Count> replicates) {
  double good = 0, scheduled = 0;
  std::vector<double> values;
  for (const Count& c : replicates) {
    if (!(c.scheduled > 0))
      continue;
    good += c.good;
    scheduled += c.scheduled;
    values.push_back(c.good / c.scheduled);
  }
  Interval bounds = wilson(good, scheduled);
  if (const auto spread = replicate_interval(values, FigureScale::kShare))
    bounds = hull(bounds, *spread);
  return {scheduled > 0 ? good / scheduled : 0, bounds.low, bounds.high};
}

Percentiles percentiles(std::span<const double> values) {
  return pooled_percentiles(
      [&](auto visit) {
        for (const double v : values)
          visit(v, 1.0);
      },
      values.size());
}

Percentiles weighted_percentiles(const std::vector<Weighted>& values, size_t n_requests) {
  return pooled_percentiles(samples_of(values), n_requests);
}

MeanP95Max mean_p95_max(const std::vector<Weighted>& values) {
  const auto stats = order_statistics<1>(samples_of(values), {0.95});
  if (!(stats.weight > 0))
    return {};
  double sum = 0;
  for (const Weighted& v : values)
    if (v.weight > 0)
      sum += v.value * v.weight;
  // Rounding must not carry a mean of equal values past its maximum.
  return {std::min(sum / stats.weight, stats.max), stats.at[0], stats.max};
}

}  // namespace goodput
