// Percentiles and intervals (docs/method.md, "Statistics").
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

namespace goodput {

struct Interval { double low, high; };
struct Estimate {
  double value = 0;
  std::optional<double> low, high;  // 95 %; absent where no honest bound exists
};

// Nearest rank: the ⌈p·n⌉-th smallest. `sorted` ascending; nullopt when empty. p in (0, 1].
std::optional<double> percentile(std::span<const double> sorted, double p);
// The same over values with weights (token-weighted views): smallest value whose cumulative weight reaches p.
struct Weighted { double value; double weight; };
std::optional<double> weighted_percentile(std::vector<Weighted> values, double p);
// The least n at which a 95 % upper bound of the p-quantile exists: 1 − pⁿ ≥ 0.95 (p90 29, p95 59, p99 299).
size_t min_samples(double p);
// Two-sided order-statistic interval of the p-quantile at `confidence`, nullopt where the sample is too small.
std::optional<Interval> quantile_interval(std::span<const double> sorted, double p, double confidence = 0.95);

// Wilson's score interval of a proportion. n = 0: [0, 1].
Interval wilson(double successes, double n, double confidence = 0.95);
// Student's interval of the mean over replicate values; nullopt below 2 values.
std::optional<Interval> student(std::span<const double> replicates, double confidence = 0.95);
// Attainment over replicates: Student over the replicates' values, never narrower than Wilson on the pooled counts.
struct Count { double good, scheduled; };
Estimate attainment_estimate(std::span<const Count> replicates);

// p50, p95, p99, max as reported: percentiles without a 95 % upper bound at this n are absent, p50 and max need n ≥ 1.
struct Percentiles {
  std::optional<double> p50, p95, p99, max;
  size_t n = 0;
};
Percentiles percentiles(std::vector<double> values);
Percentiles weighted_percentiles(std::vector<Weighted> values, size_t n_requests);

struct MeanP95Max { std::optional<double> mean, p95, max; };
MeanP95Max mean_p95_max(std::vector<Weighted> values);  // weighted by time, for gauges

}  // namespace goodput
