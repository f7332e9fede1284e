// The console table of `vllm bench serve`: its banner, labels, order, widths and meaning, so that what reads it keeps
// reading. One thing is added behind a number: a percentile that n requests cannot bound says so.
#include <algorithm>

#include <fmt/format.h>

#include "report/bench_tables.h"

namespace goodput {
namespace {

// A percentile without a 95 % upper bound is only known to be at least this: the largest value under another name.
std::string caveat(double percent, size_t requests) {
  if (!(percent > 50 && percent < 100) || requests >= min_samples(percent / 100))
    return "";
  return fmt::format(" (at least this: n = {}, a bound needs {})", requests, min_samples(percent / 100));
}

std::string section(const BenchMetricRow& row, const BenchReport& r, const BenchTotals& t, const TextStyle& style) {
  const auto& values = t.of(row.metric);
  std::string out = style.plain ? "" : fmt::format("{:-^50}\n", row.title);
  out += label_line(fmt::format("Mean {} (ms):", row.label), fixed(mean_of(values)), style);
  out += label_line(fmt::format("Median {} (ms):", row.label), fixed(linear_percentile(values, 50)), style);
  for (const double p : r.percents) {
    // Gaps of one request are not independent: requests count, not gaps.
    const size_t requests = row.metric == BenchMetric::kItl ? t.completed : values.size();
    const auto value = linear_percentile(values, p);
    const std::string text = value ? fmt::format("{:<10.2f}{}", *value, caveat(p, requests)) : "–";
    out += label_line(fmt::format("P{} {} (ms):", percent_word(p), row.label), text, style);
  }
  return out;
}

}  // namespace

std::string vllm_table(const BenchReport& r, const BenchTotals& t, const TextStyle& style, bool) {
  std::string out = style.plain ? "" : fmt::format("{:=^50}\n", " Serving Benchmark Result ");
  const auto line = [&](std::string_view label, std::string_view value) { out += label_line(label, value, style); };
  const auto rate = [&](auto n) { return fixed(t.per_second(static_cast<double>(n))); };
  line("Successful requests:", std::to_string(t.completed));
  line("Failed requests:", std::to_string(t.failed));
  if (r.concurrency)
    line("Maximum request concurrency:", std::to_string(*r.concurrency));
  if (r.rate)
    line("Request rate configured (RPS):", fixed(r.rate));
  line("Benchmark duration (s):", fixed(t.duration_s));
  line("Total input tokens:", std::to_string(t.input_tokens));
  line("Total generated tokens:", std::to_string(t.output_tokens));
  line("Request throughput (req/s):", rate(t.completed));
  if (r.has_targets())
    line("Request goodput (req/s):", rate(t.good));
  line("Output token throughput (tok/s):", rate(t.output_tokens));
  line("Peak output token throughput (tok/s):", fixed(t.peak_tokens_per_s));
  line("Peak concurrent requests:",
       t.peak_concurrent ? fixed(static_cast<double>(*t.peak_concurrent)) : std::string("–"));
  line("Total token throughput (tok/s):", rate(t.input_tokens + t.output_tokens));
  for (const BenchMetricRow& row : bench_metric_rows())
    if (std::ranges::find(r.metrics, row.metric) != r.metrics.end())
      out += section(row, r, t, style);
  if (!style.plain)
    out += std::string(50, '=') + "\n";
  if (t.completed == 0)
    out += "Latencies: not available, no request succeeded.\n";
  return out;
}

}  // namespace goodput
