// When to stop repeating: `--until p95_ttft:±5%` runs replicates until the interval of a figure is tight enough, or the
// budget is spent. Looking after every replicate and stopping at the first tight interval favours replicates that agree
// by chance, so that plain 95 % intervals would cover less often than they say. Each look therefore uses a higher
// confidence, the same for all looks (kUntilConfidence): a fixed sequence with widened t quantiles, as in Pocock's
// group-sequential design. For normal values the mean is independent of the spreads that decide when to stop, so only
// the spread's luck has to be paid for; bench/coverage.cc measures what is left. Pure; one owner.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "metrics/stats.h"

namespace goodput {

// Confidence of each look, such that the interval after stopping covers at least 95 % of the time for normal
// replicates.
inline constexpr double kUntilConfidence = 0.98;
inline constexpr size_t kMinReplicates = 3;

// What a figure over replicates is called: "p95_ttft", "mean_tpot", "attainment", "goodput".
struct FigureName {
  enum class Kind : uint8_t { kPercentile, kMean, kWhole } kind = Kind::kWhole;  // kWhole: of the run as such
  double percentile = 0;                                                         // (0, 1)
  std::string metric;  // ttft ttft_service ttfa tpot itl icl max_gap e2el | attainment goodput token_goodput …

  std::string text() const;
  FigureScale scale() const;
};
// kUsage with a suggestion. Percentiles: p50 p90 p95 p99 …, one or two digits, or p99.9.
Result<FigureName> parse_figure_name(std::string_view);

struct UntilSpec {
  FigureName figure;
  double half_width = 0;  // > 0
  bool relative = false;  // of the mean; else in the figure's unit: ms, requests/s, a share for attainment
};
// "p95_ttft:±5%", "mean_tpot:+-2ms", "attainment:±2pp" (percentage points), "goodput:±0.1".
Result<UntilSpec> parse_until(std::string_view);

enum class UntilState : uint8_t { kGoOn, kTight, kBudgetSpent };
std::string_view to_string(UntilState);  // "go on", "tight enough", "budget spent"

class Until {
 public:
  // `most`: replicates that the budget allows, at least kMinReplicates.
  Until(UntilSpec spec, size_t most);

  // One replicate's value; nullopt: the figure was absent there (too few requests), which counts as a replicate but
  // gives no value. Returns the state after it.
  UntilState add(std::optional<double> value);
  // The budget ended otherwise (time): the next state is final.
  void spend_budget() { spent_ = true; }

  UntilState state() const;
  // The figure with its 95 % interval, honest after the optional stop; nullopt below two values.
  std::optional<Estimate> estimate() const;
  // Half-width now, in the unit of the spec (relative: a share of the mean).
  std::optional<double> half_width() const;
  // Replicates that the present spread suggests in all, capped by the budget; for progress.
  std::optional<size_t> expected() const;
  const UntilSpec& spec() const { return spec_; }
  size_t replicates() const { return added_; }

 private:
  UntilSpec spec_;
  size_t most_, added_ = 0;
  bool spent_ = false;
  std::vector<double> values_;
};

}  // namespace goodput
