#include "report/bench_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "base/text.h"
#include "metrics/request_metrics.h"
#include "metrics/targets.h"

namespace goodput {
namespace {

int64_t most_at_once(const std::vector<RequestRecord>& records) {
  std::vector<std::pair<TimePoint, int>> edges;
  for (const RequestRecord& r : records) {
    if (!r.dispatched || !r.closed)
      continue;
    edges.emplace_back(*r.dispatched, 1);
    edges.emplace_back(*r.closed, -1);
  }
  std::sort(edges.begin(), edges.end());
  int64_t now = 0, most = 0;
  for (const auto& [time, change] : edges)
    most = std::max(most, now += change);
  return most;
}

void add_latencies(const RequestRecord& r, BenchTotals& t) {
  if (const auto v = ttft_service(r))
    t.ttft_ms.push_back(to_ms(*v));
  if (const auto v = ttft(r))
    t.ttft_from_schedule_ms.push_back(to_ms(*v));
  if (const auto v = tpot_ns(r))
    t.tpot_ms.push_back(*v * 1e-6);
  for (const double gap : icl_gaps_ns(r))
    t.itl_ms.push_back(gap * 1e-6);
  if (r.done && r.dispatched)
    t.e2el_ms.push_back(to_ms(*r.done - *r.dispatched));
}

std::string line(std::string_view label, std::string_view value) {
  return fmt::format("{:<40} {:<10}\n", label, value);
}
std::string count(int64_t n) { return std::to_string(n); }
std::string two(double v) { return fmt::format("{:.2f}", v); }

std::string quantile(const std::vector<double>& sorted, double p) {
  const auto v = percentile(sorted, p);
  return v ? two(*v) : "-";
}

std::string latency(std::string_view title, std::string_view name, const std::vector<double>& sorted,
                    bool honest_p99 = true) {
  std::string out = fmt::format("{:-^50}\n", title);
  const double sum = std::accumulate(sorted.begin(), sorted.end(), 0.0);
  out += line(fmt::format("Mean {} (ms):", name), sorted.empty() ? "-" : two(sum / static_cast<double>(sorted.size())));
  out += line(fmt::format("Median {} (ms):", name), quantile(sorted, 0.5));
  // A p99 without a 95 % upper bound is the largest value under another name.
  const bool enough = !honest_p99 || sorted.size() >= min_samples(0.99);
  out += line(fmt::format("P99 {} (ms):", name),
              enough ? quantile(sorted, 0.99) : fmt::format("-  (n = {}, needs {})", sorted.size(), min_samples(0.99)));
  return out;
}

std::string interval(const Estimate& e) {
  return e.low && e.high ? fmt::format("{} ({} to {})", percent(e.value), percent(*e.low), percent(*e.high))
                         : percent(e.value);
}

std::string render_goodput(const BenchReport& r, const TextStyle& style) {
  std::string out = fmt::format("{:-^50}\n", "Goodput (requests scheduled in the window)");
  out += line("Window (s):", two(r.summary.window.length_s()));
  const auto of = [&](const ClassSummary& c, const TargetSet* targets) {
    const std::string label = targets == nullptr || targets->empty() ? c.name : c.name + " [" + to_text(*targets) + "]";
    if (!c.attainment)
      return line("Attainment, " + label + ":", c.unmeasurable > 0 ? "not measurable" : "-");
    return line("Attainment, " + label + ":",
                fmt::format("{}, {} of {}", interval(*c.attainment), c.good, c.scheduled));
  };
  out += of(r.summary.overall, r.rules.size() == 1 ? &r.rules[0].targets : nullptr);
  if (r.rules.size() > 1) {
    for (size_t i = 0; i < r.summary.by_class.size() && i < r.rules.size(); ++i)
      out += of(r.summary.by_class[i], &r.rules[i].targets);
  }
  out += line("Goodput (req/s):", two(r.summary.goodput_rps));
  out += line("Token goodput (tok/s):", two(r.summary.token_goodput));
  out += line("Offered / achieved rate (req/s):",
              fmt::format("{} / {}", two(r.summary.offered_rate),
                          r.summary.achieved_rate ? two(*r.summary.achieved_rate) : "-"));
  out += line("Regime:", to_string(r.summary.regime));
  if (r.prompt_asked && r.prompt_seen) {
    out += line("Prompt tokens, asked / seen (mean):",
                fmt::format("{:.1f} / {:.1f}{}", *r.prompt_asked, *r.prompt_seen,
                            r.exact_prompts ? "" : "  (words; --tokenizer makes them exact)"));
  }
  out += line("Kernel-stamped token events:", percent(r.summary.kernel_stamp_share));
  out += line("Client loop busy:", percent(r.load.audit.loop_busy_share));
  out += style.strong(r.verdict.valid() ? "VALID" : "INVALID") + "\n";
  for (size_t i = 0; i < r.verdict.reasons.size(); ++i) {
    out += "  " + r.verdict.reasons[i];
    if (i < r.verdict.evidence.size())
      out += ": " + r.verdict.evidence[i];
    out += "\n";
  }
  if (r.load.interrupted)
    out += "Stopped early: the window ends where it was stopped.\n";
  return out;
}

}  // namespace

BenchTotals bench_totals(const BenchReport& report) {
  BenchTotals t;
  std::optional<TimePoint> first, last;
  for (const RequestRecord& r : report.load.records) {
    if (!r.dispatched)
      continue;
    first = std::min(first.value_or(*r.dispatched), *r.dispatched);
    if (r.closed)
      last = std::max(last.value_or(*r.closed), *r.closed);
    if (r.outcome != Outcome::kOk) {
      ++t.failed;
      continue;
    }
    ++t.completed;
    t.input_tokens += r.prompt_tokens.value_or(Tokens(0)).count();
    t.output_tokens += r.output_tokens.value_or(Tokens(0)).count();
    if (r.cls < report.rules.size())
      t.good += judge(r, report.rules[r.cls].targets).goodness == Goodness::kGood;
    add_latencies(r, t);
  }
  if (first && last)
    t.duration_s = to_seconds(*last - *first);
  t.peak_concurrent = most_at_once(report.load.records);
  for (auto* list : {&t.ttft_ms, &t.ttft_from_schedule_ms, &t.tpot_ms, &t.itl_ms, &t.e2el_ms})
    std::sort(list->begin(), list->end());
  return t;
}

std::string render_bench(const BenchReport& r, const TextStyle& style) {
  const BenchTotals t = bench_totals(r);
  const auto rate = [&](int64_t n) {
    return t.duration_s > 0 ? two(static_cast<double>(n) / t.duration_s) : std::string("-");
  };
  std::string out = fmt::format("{:=^50}\n", " Serving Benchmark Result ");
  out += line("Successful requests:", count(static_cast<int64_t>(t.completed)));
  out += line("Failed requests:", count(static_cast<int64_t>(t.failed)));
  out += line("Request rate configured (RPS):", r.rate ? two(*r.rate) : "inf");
  if (r.concurrency)
    out += line("Maximum request concurrency:", std::to_string(*r.concurrency));
  out += line("Benchmark duration (s):", two(t.duration_s));
  out += line("Total input tokens:", count(t.input_tokens));
  out += line("Total generated tokens:", count(t.output_tokens));
  out += line("Request throughput (req/s):", rate(static_cast<int64_t>(t.completed)));
  out += line("Output token throughput (tok/s):", rate(t.output_tokens));
  out += line("Peak concurrent requests:", count(t.peak_concurrent));
  out += line("Total token throughput (tok/s):", rate(t.input_tokens + t.output_tokens));
  // With everything sent at once arrival times mean nothing, so the time from the send comes first; else the user's
  // wait.
  const bool from_send = !r.rate;
  out += latency(from_send ? "Time to First Token (from the send)" : "Time to First Token (from arrival)", "TTFT",
                 from_send ? t.ttft_ms : t.ttft_from_schedule_ms);
  out += latency("Time per Output Token (excl. 1st token)", "TPOT", t.tpot_ms);
  out += latency("Inter-token Latency (gaps between events)", "ITL", t.itl_ms, false);
  out += latency("End-to-end Latency (from the send)", "E2EL", t.e2el_ms);
  out += render_goodput(r, style);
  out += std::string(50, '=') + "\n";
  for (size_t i = 0; i < r.summary.outcomes.size(); ++i) {
    if (i == static_cast<size_t>(Outcome::kOk) || r.summary.outcomes[i] == 0)
      continue;
    out += fmt::format("{} in the window: {}\n", to_string(static_cast<Outcome>(i)), r.summary.outcomes[i]);
  }
  for (const Problem& p : r.load.problems)
    out += fmt::format("  {} × {}\n", p.count, p.what);
  return out;
}

}  // namespace goodput
