#include "map/operating.h"

#include <algorithm>

#include "metrics/request_metrics.h"

namespace goodput {
namespace {

std::optional<double> worst(const std::vector<ClassSummary>& classes, std::span<const ClassRule> rules,
                            std::optional<double> (*of)(const ClassSummary&)) {
  std::optional<double> value;
  for (size_t c = 0; c < classes.size() && c < rules.size(); ++c)
    if (rules[c].targets.interactive())
      if (const auto v = of(classes[c]))
        value = std::max(value.value_or(*v), *v);
  return value;
}

}  // namespace

Operating operating_at(double rate, std::span<const RequestRecord> records, std::span<const ClassRule> rules,
                       Window window) {
  Operating point{.rate = rate};
  std::vector<uint64_t> scheduled(rules.size()), good(rules.size());
  std::vector<double> ttfts;
  std::vector<Weighted> gaps;
  uint64_t all_good = 0;
  for (const RequestRecord& r : records) {
    if (r.scheduled < window.start || r.scheduled >= window.end || r.cls >= rules.size())
      continue;
    ++scheduled[r.cls];
    const bool is_good = judge(r, rules[r.cls].targets).goodness == Goodness::kGood;
    good[r.cls] += is_good;
    all_good += is_good;
    if (r.outcome != Outcome::kOk || !rules[r.cls].targets.interactive())
      continue;
    if (const auto t = ttft(r))
      ttfts.push_back(to_ms(*t));
    for (const WeightedGap& gap : itl_gaps(r))
      gaps.push_back({gap.per_token_ns * 1e-6, double(gap.tokens)});
  }
  const double length = to_seconds(window.end - window.start);
  point.goodput_rps = length > 0 ? double(all_good) / length : 0;
  for (size_t c = 0; c < rules.size(); ++c)
    if (scheduled[c] > 0)
      point.attainment_by_class.emplace_back(rules[c].name, double(good[c]) / double(scheduled[c]));
  std::ranges::sort(ttfts);
  point.interactive_ttft_p95_ms = percentile(ttfts, 0.95);
  point.interactive_gap_p95_ms = weighted_percentile(gaps, 0.95);
  return point;
}

Operating operating_of(const Point& p, std::span<const ClassRule> rules) {
  Operating point{.rate = p.rate, .goodput_rps = p.summary.goodput_rps};
  for (const ClassSummary& c : p.summary.by_class)
    if (c.attainment)
      point.attainment_by_class.emplace_back(c.name, c.attainment->value);
  point.interactive_ttft_p95_ms =
      worst(p.summary.by_class, rules, [](const ClassSummary& c) { return c.latency.ttft.p95; });
  point.interactive_gap_p95_ms =
      worst(p.summary.by_class, rules, [](const ClassSummary& c) { return c.latency.itl.p95; });
  return point;
}

bool meets_floor(const Operating& point, double floor) {
  return !point.attainment_by_class.empty() &&
         std::ranges::all_of(point.attainment_by_class, [&](const auto& c) { return c.second >= floor; });
}

}  // namespace goodput
