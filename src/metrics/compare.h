// The difference between two measurements of one figure: B against A, with an interval where the data give one. Pure;
// any thread.
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "metrics/stats.h"

namespace goodput {

// What an interval of a difference rests on.
enum class Basis : uint8_t {
  kNone,              // a single figure on a side: no interval
  kPairedReplicates,  // replicates on the same schedules, one by one
  kReplicates,        // replicates, each side on its own (Welch)
  kPairedParts,       // one run on each side, on the same schedule, cut into parts
  kParts,             // one run on each side, cut into parts (Welch)
};
std::string_view to_string(Basis);

struct Difference {
  double a = 0, b = 0;  // the figure of each side: mean over replicates; of one run: the whole run's
  double change = 0;    // b − a
  std::optional<Interval> change_interval;  // 95 %
  std::optional<double> ratio;              // b ÷ a − 1; absent: a is not above 0
  std::optional<Interval> ratio_interval;   // from the logarithms; absent: a value is not above 0
  Basis basis = Basis::kNone;

  // The interval excludes 0: there is a difference. nullopt: no interval.
  std::optional<bool> differs() const;
};

// `paired`: a[i] and b[i] saw the same schedule (equal sizes).
Difference compare_replicates(std::span<const double> a, std::span<const double> b, bool paired);

// One run per side from values per request in the order of the schedule (NaN: none). The runs are cut into kParts parts
// of equal numbers of requests; a part's figure stands for a replicate's. Neighbouring parts share a busy period, so
// the error is cut by kHeavyTails once more (bench/coverage.cc). Fewer than kMinPart requests in a part: no interval.
// `figure`: of a part's values, nullopt where it has too few.
inline constexpr size_t kParts = 3;
inline constexpr size_t kMinPart = 400;
using FigureOf = std::optional<double> (*)(std::vector<double> values, double p);
std::optional<double> mean_of(std::vector<double> values, double);  // p is not used
std::optional<double> percentile_of(std::vector<double> values,
                                    double p);  // nearest rank; nullopt below min_samples(p)
std::optional<Difference> compare_runs(std::span<const double> a, std::span<const double> b, bool paired, FigureOf,
                                       double p);

}  // namespace goodput
