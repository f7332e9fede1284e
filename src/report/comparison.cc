#include "report/comparison.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/limits.h"
#include "metrics/definitions.h"

namespace goodput {
namespace {

using Runs = std::vector<const ResultRun*>;

constexpr std::array<std::string_view, 4> kLatencies = {"ttft", "tpot", "itl", "e2el"};
constexpr std::array<std::string_view, 5> kStatistics = {"p50", "p90", "p95", "p99", "mean"};
struct Whole {
  std::string_view name, unit;
};
constexpr Whole kWhole[] = {
    {"goodput", "/s"},           {"token_goodput", "/s"},    {"attainment", "share"}, {"request_throughput", "/s"},
    {"output_throughput", "/s"}, {"total_throughput", "/s"}, {"completed", ""},       {"failed", ""}};
constexpr std::string_view kLinear = ", linear percentile";

double share_of_statistic(std::string_view statistic) {  // "p95" → 0.95
  return static_cast<double>((statistic[1] - '0') * 10 + (statistic[2] - '0')) / 100;
}

const ResultSamples* samples_of(const ResultRun& run, std::string_view metric, std::string_view definition) {
  const auto at = std::ranges::find_if(
      run.samples, [&](const ResultSamples& s) { return s.metric == metric && s.definition == definition; });
  return at == run.samples.end() ? nullptr : &*at;
}

// A figure of a run under one definition: as stated, else from its samples by the definition's percentile rule.
std::optional<double> value_of(const ResultRun& run, std::string_view statistic, std::string_view metric,
                               std::string_view definition) {
  const bool linear = definition.ends_with(kLinear);
  const auto plain = linear ? definition.substr(0, definition.size() - kLinear.size()) : definition;
  if (const ResultSamples* s = samples_of(run, metric, plain)) {
    if (statistic == "mean") {
      std::vector<double> values;
      for (const double v : s->values)
        if (!std::isnan(v))
          values.push_back(v);
      return linear ? std::nullopt : mean_of(std::move(values), 0);
    }
    std::vector<double> values;
    for (const double v : s->values)
      if (!std::isnan(v))
        values.push_back(v);
    const double p = share_of_statistic(statistic);
    if (!linear)
      return percentile_of(std::move(values), p);
    std::ranges::sort(values);
    return percentile_by(PercentileRule::kLinear, values, p);
  }
  const std::string name = metric.empty() ? std::string(statistic) : fmt::format("{}_{}", statistic, metric);
  for (const ResultFigure& f : run.figures)
    if (f.name == name && f.definition == definition)
      return f.value;
  return std::nullopt;
}

// The value of every run, or nothing.
std::vector<double> values_of(const Runs& runs, std::string_view statistic, std::string_view metric,
                              std::string_view definition) {
  std::vector<double> values;
  for (const ResultRun* run : runs) {
    const auto v = value_of(*run, statistic, metric, definition);
    if (!v)
      return {};
    values.push_back(*v);
  }
  return values;
}

// Every definition that a run can give the figure under, in the file's order, samples first.
std::vector<std::string> definitions_of(const ResultRun& run, std::string_view statistic, std::string_view metric) {
  std::vector<std::string> found;
  for (const ResultSamples& s : run.samples)
    if (s.metric == metric) {
      found.push_back(s.definition);
      found.push_back(s.definition + std::string(kLinear));
    }
  const std::string name = metric.empty() ? std::string(statistic) : fmt::format("{}_{}", statistic, metric);
  for (const ResultFigure& f : run.figures)
    if (f.name == name)
      found.push_back(f.definition);
  return found;
}

// B's runs in the order of A's where the sides saw the same schedules; empty: they did not.
Runs paired(const Runs& a, const Runs& b) {
  if (a.size() != b.size())
    return {};
  Runs order;
  for (const ResultRun* run : a) {
    const auto same = [&](const ResultRun* other) { return other->schedule_hash == run->schedule_hash; };
    if (run->schedule_hash.empty() || std::ranges::count_if(a, same) != 1 || std::ranges::count_if(b, same) != 1)
      return {};
    order.push_back(*std::ranges::find_if(b, same));
  }
  return order;
}

// One run on each side with a value per request: parts of the run stand for replicates.
std::optional<Difference> within_runs(const ResultRun& a, const ResultRun& b, bool same_schedule,
                                      std::string_view statistic, std::string_view metric,
                                      std::string_view definition) {
  const ResultSamples *x = samples_of(a, metric, definition), *y = samples_of(b, metric, definition);
  if (!x || !y || metric.empty())
    return std::nullopt;
  const bool mean = statistic == "mean", pairs = same_schedule && x->values.size() == y->values.size();
  return compare_runs(x->values, y->values, pairs, mean ? mean_of : percentile_of,
                      mean ? 0.5 : share_of_statistic(statistic));
}

struct Pair {
  std::string label;
  Runs a, b;
  bool same_schedules = false;
};

void compare_figure(const Pair& pair, std::string_view statistic, std::string_view metric, std::string_view unit,
                    Comparison& out) {
  ComparedFigure f;
  f.label = pair.label;
  f.name = metric.empty() ? std::string(statistic) : fmt::format("{}_{}", statistic, metric);
  f.unit = unit;
  f.runs_a = pair.a.size(), f.runs_b = pair.b.size();
  const auto of_a = definitions_of(*pair.a[0], statistic, metric), of_b = definitions_of(*pair.b[0], statistic, metric);
  for (const std::string& definition : of_a) {
    const auto x = values_of(pair.a, statistic, metric, definition),
               y = values_of(pair.b, statistic, metric, definition);
    if (x.empty() || y.empty())
      continue;
    f.definition_a = f.definition_b = definition;
    if (x.size() == 1 && y.size() == 1)
      f.difference = within_runs(*pair.a[0], *pair.b[0], pair.same_schedules, statistic, metric, definition);
    if (!f.difference)
      f.difference = compare_replicates(x, y, pair.same_schedules);
    out.figures.push_back(std::move(f));
    return;
  }
  const auto first = [&](const Runs& runs, const std::vector<std::string>& definitions, std::string& definition,
                         std::optional<double>& value) {
    for (const std::string& d : definitions)
      if (const auto v = values_of(runs, statistic, metric, d); !v.empty()) {
        definition = d;
        value = mean_of(v, 0);
        return;
      }
  };
  first(pair.a, of_a, f.definition_a, f.value_a);
  first(pair.b, of_b, f.definition_b, f.value_b);
  if (f.value_a && f.value_b)
    out.figures.push_back(std::move(f));
}

std::map<std::string, Runs> by_label(const std::vector<ResultFile>& files) {
  std::map<std::string, Runs> groups;
  for (const ResultFile& file : files)
    for (const ResultRun& run : file.runs)
      groups[run.label + (run.phase.empty() ? "" : ", " + run.phase)].push_back(&run);
  return groups;
}

std::vector<Pair> match(const std::vector<ResultFile>& a, const std::vector<ResultFile>& b, Comparison& out) {
  auto of_a = by_label(a), of_b = by_label(b);
  std::vector<Pair> pairs;
  if (of_a.size() == 1 && of_b.size() == 1) {
    const std::string &x = of_a.begin()->first, &y = of_b.begin()->first;
    if (x != y && !x.empty() && !y.empty())
      out.notes.push_back(fmt::format("the loads are named differently: A \"{}\", B \"{}\"", x, y));
    pairs.push_back({"", of_a.begin()->second, of_b.begin()->second});
  } else {
    for (const auto& [label, runs] : of_a) {
      if (const auto other = of_b.find(label); other != of_b.end())
        pairs.push_back({label, runs, other->second});
      else
        out.notes.push_back(fmt::format("only in A: {}", label.empty() ? "a run without a label" : label));
    }
    for (const auto& [label, runs] : of_b)
      if (!of_a.contains(label))
        out.notes.push_back(fmt::format("only in B: {}", label.empty() ? "a run without a label" : label));
  }
  for (Pair& p : pairs)
    if (Runs order = paired(p.a, p.b); !order.empty()) {
      p.b = std::move(order);
      p.same_schedules = true;
    }
  return pairs;
}

void warn_about(const std::vector<ResultFile>& files, std::string_view side, Comparison& out) {
  for (const ResultFile& file : files)
    for (const ResultRun& run : file.runs)
      if (!run.valid) {
        out.notes.push_back(fmt::format("{}: {} was judged INVALID when it was measured", side, file.path));
        break;
      }
  const bool stored = std::ranges::any_of(
      files, [](const ResultFile& f) { return f.kind == ResultKind::kBenchJson || f.kind == ResultKind::kStudy; });
  if (stored && side == "A")
    out.notes.push_back("goodput and attainment as stored rest on the targets that each run was given");
}

}  // namespace

Result<Comparison> compare_results(const std::vector<ResultFile>& a, const std::vector<ResultFile>& b) {
  Comparison out;
  const auto pairs = match(a, b, out);
  for (const Pair& pair : pairs) {
    for (const std::string_view metric : kLatencies)
      for (const std::string_view statistic : kStatistics)
        compare_figure(pair, statistic, metric, "ms", out);
    for (const Whole& whole : kWhole)
      compare_figure(pair, whole.name, "", whole.unit, out);
  }
  if (out.figures.empty())
    return fail(ErrorCode::kUsage, pairs.empty()
                                       ? fmt::format("no load is in both sides: {}", fmt::join(out.notes, "; "))
                                       : std::string("the two sides have no figure in common"));
  for (const Pair& pair : pairs)
    if (!pair.same_schedules) {
      out.notes.push_back("unpaired: the sides did not see the same schedules, or their files do not say so");
      break;
    }
  warn_about(a, "A", out);
  warn_about(b, "B", out);
  return out;
}

}  // namespace goodput
