// Percentiles and intervals (docs/method.md, "Statistics"). Pure functions; any thread. Values must be finite.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace goodput {

struct Interval {
  double low, high;
};
struct Estimate {
  double value = 0;
  std::optional<double> low, high;  // 95 %; absent where no honest bound exists
};

// The cumulative weight that the p-quantile must reach, of a total. p·n is not exact in binary (0.07 × 100 > 7); the
// allowance keeps the nearest rank at ⌈p·n⌉.
constexpr double share_of(double total, double p) { return p * total * (1 - 1e-12); }

// Nearest rank: the ⌈p·n⌉-th smallest. `sorted` ascending; nullopt when empty. p in (0, 1].
std::optional<double> percentile(std::span<const double> sorted, double p);
// The same over values with weights (token-weighted views): smallest value whose cumulative weight reaches p. Weights
// that are not positive do not count.
struct Weighted {
  double value;
  double weight;
};
std::optional<double> weighted_percentile(const std::vector<Weighted>& values, double p);
// The least n at which a 95 % upper bound of the p-quantile exists: 1 − pⁿ ≥ 0.95 (p50 5, p90 29, p95 59, p99 299).
// p in (0, 1).
size_t min_samples(double p);
// Two-sided order-statistic interval of the p-quantile at `confidence`, equal tails of the exact binomial; nullopt
// where the sample is too small.
std::optional<Interval> quantile_interval(std::span<const double> sorted, double p, double confidence = 0.95);

// Wilson's score interval of a proportion (Wilson, JASA 1927). n = 0: [0, 1].
Interval wilson(double successes, double n, double confidence = 0.95);
// Student's interval of the mean over replicate values; nullopt below 2 values.
std::optional<Interval> student(std::span<const double> replicates, double confidence = 0.95);
// Welch's interval of mean(b) − mean(a), independent samples of unequal spread (Welch, Biometrika 1947; degrees of
// freedom by Satterthwaite); nullopt below 2 values on a side.
std::optional<Interval> welch(std::span<const double> a, std::span<const double> b, double confidence = 0.95);
// The two-sided quantile of Student's distribution: the half-width of an interval in standard errors. df >= 1.
double student_factor(double df, double confidence);
// What kind of number a figure is: it decides on which scale replicates may be averaged.
enum class FigureScale : uint8_t {
  kPlain,     // any sign: a difference, a rate
  kPositive,  // a latency: skewed to the right, so that its logarithms are the more symmetric
  kShare,     // in [0, 1]
};
// The interval of a figure over replicates. Student's; a latency covers also Student's over the logarithms, a share
// also that over the log-odds (Student's alone is symmetric, and these figures are not), cut to what is possible.
// Latency figures and differences of replicates near saturation have heavy tails besides, from rare long busy periods,
// for which the error is cut to kHeavyTails of what was asked (95 % becomes a nominal 98 %): measured by
// bench/coverage.cc. nullopt below 2 values.
inline constexpr double kHeavyTails = 0.4;
constexpr double widened(double confidence) { return 1 - (1 - confidence) * kHeavyTails; }
std::optional<Interval> replicate_interval(std::span<const double> values, FigureScale, double confidence = 0.95);
// Attainment over replicates: the ratio of the sums, with an interval that covers replicate_interval() of the
// replicates' shares and Wilson's on the pooled counts, within [0, 1]. From a single run it is Wilson's alone, which
// ignores the correlation inside a run. Replicates without requests do not count; with none left, 0 in [0, 1].
struct Count {
  double good, scheduled;
};
Estimate attainment_estimate(std::span<const Count> replicates);

// p50, p95, p99, max as reported: a percentile without a 95 % upper bound at this n is absent (n < min_samples); max
// needs n ≥ 1.
struct Percentiles {
  std::optional<double> p50, p95, p99, max;
  size_t n = 0;

  bool operator==(const Percentiles&) const = default;
};
Percentiles percentiles(std::span<const double> values);
// Token-level values; `n_requests` they came from decides what is reported, since tokens of one request are correlated.
Percentiles weighted_percentiles(const std::vector<Weighted>& values, size_t n_requests);

struct MeanP95Max {
  std::optional<double> mean, p95, max;

  bool operator==(const MeanP95Max&) const = default;
};
MeanP95Max mean_p95_max(const std::vector<Weighted>& values);  // weighted by time, for gauges

}  // namespace goodput
