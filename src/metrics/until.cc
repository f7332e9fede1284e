// See until.h. Pure; one owner.
#include "metrics/until.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/check.h"
#include "base/text.h"

namespace goodput {
namespace {

constexpr std::array<std::string_view, 8> kLatencies = {"ttft", "ttft_service", "ttfa",    "tpot",
                                                        "itl",  "icl",          "max_gap", "e2el"};
constexpr std::array<std::string_view, 5> kWhole = {"attainment", "goodput", "token_goodput", "request_throughput",
                                                    "output_throughput"};

tl::unexpected<Error> bad_figure(std::string_view text, std::string why) {
  return fail(ErrorCode::kUsage, std::move(why), fmt::format("figure '{}'", text));
}

std::optional<double> parse_percentile(std::string_view text) {  // "p95", "p99.9"
  if (text.size() < 2 || text[0] != 'p' || text[1] < '0' || text[1] > '9')
    return std::nullopt;
  const auto number = parse_double(text.substr(1));
  if (!number || !(*number > 0 && *number < 100))
    return std::nullopt;
  return *number / 100;
}

bool strip_prefix(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix))
    return false;
  text.remove_prefix(prefix.size());
  return true;
}
bool strip_suffix(std::string_view& text, std::string_view suffix) {
  if (!text.ends_with(suffix))
    return false;
  text.remove_suffix(suffix.size());
  text = trim(text);
  return true;
}

}  // namespace

std::string FigureName::text() const {
  switch (kind) {
    case Kind::kPercentile:
      return fmt::format("p{:g}_{}", percentile * 100, metric);
    case Kind::kMean:
      return "mean_" + metric;
    case Kind::kWhole:
      break;
  }
  return metric;
}

FigureScale FigureName::scale() const {
  if (metric == "attainment")
    return FigureScale::kShare;
  return kind == Kind::kWhole ? FigureScale::kPlain : FigureScale::kPositive;
}

Result<FigureName> parse_figure_name(std::string_view text) {
  FigureName figure;
  if (std::ranges::find(kWhole, text) != kWhole.end()) {
    figure.metric = text;
    return figure;
  }
  const size_t bar = text.find('_');
  const std::string_view statistic = text.substr(0, bar);
  const auto percentile = statistic == "median" ? std::optional(0.5) : parse_percentile(statistic);
  if (bar == text.npos || !(percentile || statistic == "mean"))
    return bad_figure(text,
                      fmt::format("expected a statistic and a metric, such as p95_ttft or mean_tpot, or one of {}",
                                  fmt::join(kWhole, ", ")));
  figure.kind = percentile ? FigureName::Kind::kPercentile : FigureName::Kind::kMean;
  figure.percentile = percentile.value_or(0);
  figure.metric = text.substr(bar + 1);
  if (std::ranges::find(kLatencies, figure.metric) == kLatencies.end()) {
    const auto near = nearest(figure.metric, kLatencies);
    return bad_figure(text,
                      fmt::format("unknown metric '{}'{}; the metrics are {}", figure.metric,
                                  near ? fmt::format(", did you mean '{}'?", *near) : "", fmt::join(kLatencies, ", ")));
  }
  return figure;
}

Result<UntilSpec> parse_until(std::string_view text) {
  const auto bad = [&](std::string why) {
    return fail(ErrorCode::kUsage, std::move(why), fmt::format("--until '{}'", text));
  };
  const size_t colon = text.find(':');
  if (colon == text.npos)
    return bad("expected FIGURE:±WIDTH, such as p95_ttft:±5% or mean_tpot:+-2ms");
  UntilSpec spec;
  spec.figure = TRY(parse_figure_name(trim(text.substr(0, colon))));
  std::string_view width = trim(text.substr(colon + 1));
  if (!strip_prefix(width, "±") && !strip_prefix(width, "+-") && !strip_prefix(width, "+/-"))
    return bad("expected the half-width behind ± or +-, such as ±5%");
  const bool share = spec.figure.metric == "attainment", latency = spec.figure.kind != FigureName::Kind::kWhole;
  double scale = 1;
  if (strip_suffix(width, "%")) {
    spec.relative = true;
    scale = 0.01;
  } else if (strip_suffix(width, "pp")) {
    if (!share)
      return bad("percentage points (pp) are for attainment");
    scale = 0.01;
  } else if (strip_suffix(width, "ms")) {
    if (!latency)
      return bad("milliseconds are for latencies");
  } else if (strip_suffix(width, "s")) {
    if (!latency)
      return bad("seconds are for latencies");
    scale = 1000;
  }
  const auto number = parse_double(trim(width));
  if (!number || !(*number > 0) || *number > 1e12)
    return bad(fmt::format("expected a half-width above 0, found '{}'", width));
  spec.half_width = *number * scale;
  return spec;
}

std::string_view to_string(UntilState state) {
  switch (state) {
    case UntilState::kGoOn:
      return "go on";
    case UntilState::kTight:
      return "tight enough";
    case UntilState::kBudgetSpent:
      break;
  }
  return "budget spent";
}

Until::Until(UntilSpec spec, size_t most) : spec_(std::move(spec)), most_(std::max(most, kMinReplicates)) {
  CHECK(spec_.half_width > 0, "a half-width to reach");
}

UntilState Until::add(std::optional<double> value) {
  ++added_;
  if (value && std::isfinite(*value))
    values_.push_back(*value);
  return state();
}

std::optional<Estimate> Until::estimate() const {
  const auto interval = replicate_interval(values_, spec_.figure.scale(), kUntilConfidence);
  if (!interval)
    return std::nullopt;
  double mean = 0;
  for (const double v : values_)
    mean += v / static_cast<double>(values_.size());
  return Estimate{mean, interval->low, interval->high};
}

std::optional<double> Until::half_width() const {
  const auto e = estimate();
  if (!e)
    return std::nullopt;
  const double half = (*e->high - *e->low) / 2;
  if (!spec_.relative)
    return half;
  return e->value != 0 ? std::optional(half / std::fabs(e->value)) : std::nullopt;
}

UntilState Until::state() const {
  const auto half = half_width();
  if (values_.size() >= kMinReplicates && half && *half <= spec_.half_width)
    return UntilState::kTight;
  return spent_ || added_ >= most_ ? UntilState::kBudgetSpent : UntilState::kGoOn;
}

std::optional<size_t> Until::expected() const {
  const auto half = half_width();
  if (!half)
    return std::nullopt;
  // The half-width falls with √n, and with Student's factor at small n: the first n that suffices.
  const auto n = static_cast<double>(values_.size());
  const double error = *half / student_factor(n - 1, kUntilConfidence) * std::sqrt(n);
  for (size_t m = std::max(values_.size(), kMinReplicates); m < most_; ++m) {
    const auto count = static_cast<double>(m);
    if (student_factor(count - 1, kUntilConfidence) * error / std::sqrt(count) <= spec_.half_width)
      return m;
  }
  return most_;
}

}  // namespace goodput
