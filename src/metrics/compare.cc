// See compare.h. Pure; any thread.
#include "metrics/compare.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/check.h"

namespace goodput {
namespace {

double mean(std::span<const double> values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

std::vector<double> logs(std::span<const double> values) {
  std::vector<double> out;
  for (const double v : values)
    out.push_back(std::log(v));
  return out;
}

constexpr double kOfReplicates = widened(0.95), kOfParts = widened(kOfReplicates);

std::optional<Interval> interval_of(std::span<const double> a, std::span<const double> b, bool paired,
                                    double confidence) {
  if (!paired)
    return welch(a, b, confidence);
  std::vector<double> d;
  for (size_t i = 0; i < a.size(); ++i)
    d.push_back(b[i] - a[i]);
  return student(d, confidence);
}

// Change and ratio of the values, with the sides' own figures already known.
Difference difference(double figure_a, double figure_b, std::span<const double> a, std::span<const double> b,
                      bool paired, double confidence) {
  Difference d{.a = figure_a, .b = figure_b, .change = figure_b - figure_a};
  if (figure_a > 0)
    d.ratio = figure_b / figure_a - 1;
  d.change_interval = interval_of(a, b, paired, confidence);
  const auto positive = [](double v) { return v > 0; };
  if (std::ranges::all_of(a, positive) && std::ranges::all_of(b, positive))
    if (const auto l = interval_of(logs(a), logs(b), paired, confidence))
      d.ratio_interval = Interval{std::exp(l->low) - 1, std::exp(l->high) - 1};
  return d;
}

std::vector<double> present(std::span<const double> values) {
  std::vector<double> out;
  for (const double v : values)
    if (!std::isnan(v))
      out.push_back(v);
  return out;
}

// The figure of each part; empty: one of them has too few values.
std::vector<double> part_figures(std::span<const double> values, FigureOf figure, double p) {
  std::vector<double> figures;
  for (size_t i = 0; i < kParts; ++i) {
    const size_t from = values.size() * i / kParts, to = values.size() * (i + 1) / kParts;
    const auto f = figure(present(values.subspan(from, to - from)), p);
    if (!f || to - from < kMinPart)
      return {};
    figures.push_back(*f);
  }
  return figures;
}

}  // namespace

std::string_view to_string(Basis basis) {
  switch (basis) {
    case Basis::kNone:
      return "no interval: one figure a side";
    case Basis::kPairedReplicates:
      return "replicates, paired by schedule";
    case Basis::kReplicates:
      return "replicates, unpaired (Welch)";
    case Basis::kPairedParts:
      return "parts of one run, paired by schedule";
    case Basis::kParts:
      break;
  }
  return "parts of one run, unpaired (Welch)";
}

std::optional<bool> Difference::differs() const {
  if (!change_interval)
    return std::nullopt;
  return change_interval->low > 0 || change_interval->high < 0;
}

Difference compare_replicates(std::span<const double> a, std::span<const double> b, bool paired) {
  CHECK(!a.empty() && !b.empty(), "a figure on each side");
  CHECK(!paired || a.size() == b.size(), "pairs");
  Difference d = difference(mean(a), mean(b), a, b, paired, kOfReplicates);
  if (d.change_interval)
    d.basis = paired ? Basis::kPairedReplicates : Basis::kReplicates;
  return d;
}

std::optional<double> mean_of(std::vector<double> values, double) {
  return values.empty() ? std::nullopt : std::optional(mean(values));
}

std::optional<double> percentile_of(std::vector<double> values, double p) {
  if (values.size() < min_samples(p))
    return std::nullopt;
  std::ranges::sort(values);
  return percentile(values, p);
}

std::optional<Difference> compare_runs(std::span<const double> a, std::span<const double> b, bool paired,
                                       FigureOf figure, double p) {
  const auto whole_a = figure(present(a), p), whole_b = figure(present(b), p);
  if (!whole_a || !whole_b)
    return std::nullopt;
  const std::vector<double> x = part_figures(a, figure, p), y = part_figures(b, figure, p);
  if (x.empty() || y.empty())
    return difference(*whole_a, *whole_b, {}, {}, false, kOfParts);
  Difference d = difference(*whole_a, *whole_b, x, y, paired, kOfParts);
  d.basis = paired ? Basis::kPairedParts : Basis::kParts;
  return d;
}

}  // namespace goodput
