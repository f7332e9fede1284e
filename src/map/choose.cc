#include "map/choose.h"

#include <algorithm>

namespace goodput {
namespace {

Estimate estimate_of(const std::vector<double>& values) {
  Estimate e;
  for (const double v : values)
    e.value += v / double(values.size());
  if (const auto interval = student(values)) {
    e.low = interval->low;
    e.high = interval->high;
  }
  return e;
}

}  // namespace

const Capacity* best_measured(const std::vector<Capacity>& all) {
  const Capacity* best = nullptr;
  for (const Capacity& c : all) {
    if (!c.measured)
      continue;
    const bool better = !best || c.measured->goodput_rps > best->measured->goodput_rps ||
                        (c.measured->goodput_rps == best->measured->goodput_rps &&
                         c.settings.max_num_seqs < best->settings.max_num_seqs);
    if (better)
      best = &c;
  }
  return best;
}

double confirmation_rate(const Capacity& c) {
  if (c.measured)
    return c.measured->rate;
  return c.predicted ? 0.95 * c.predicted->rate : 0;
}

Estimate goodput_estimate(const std::vector<MeasuredPoint>& replicates, double (*of)(const PointSummary&)) {
  std::vector<double> values;
  for (const auto& r : replicates)
    values.push_back(of(r.point.summary));
  return estimate_of(values);
}

Estimate regret_estimate(const std::vector<MeasuredPoint>& rule, const std::vector<MeasuredPoint>& choice) {
  std::vector<double> values;
  for (size_t i = 0; i < std::min(rule.size(), choice.size()); ++i) {
    const double best = choice[i].point.summary.goodput_rps;
    if (best > 0)
      values.push_back(1 - rule[i].point.summary.goodput_rps / best);
  }
  return estimate_of(values);
}

bool undecided(const std::vector<MeasuredPoint>& replicates, double floor) {
  if (replicates.empty())
    return true;
  const size_t classes = replicates.front().point.summary.by_class.size();
  for (size_t c = 0; c < classes; ++c) {
    std::vector<Count> counts;
    for (const auto& r : replicates) {
      const ClassSummary& s = r.point.summary.by_class.at(c);
      if (s.scheduled > 0)
        counts.push_back({double(s.good), double(s.scheduled)});
    }
    if (counts.empty())
      continue;
    const Estimate e = attainment_estimate(counts);
    if (!e.low || !e.high || (*e.low < floor && floor < *e.high))
      return true;
  }
  return false;
}

std::vector<Settings> not_separable(const std::vector<Capacity>& all, const Settings& chosen, double margin) {
  double best = 0;
  for (const auto& c : all)
    if (c.settings == chosen && c.predicted)
      best = c.predicted->goodput_rps;
  std::vector<Settings> others;
  for (const auto& c : all)
    if (!(c.settings == chosen) && c.predicted && best > 0 && c.predicted->goodput_rps >= (1 - margin) * best)
      others.push_back(c.settings);
  return others;
}

}  // namespace goodput
