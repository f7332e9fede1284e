// What LMDeploy's profile_restful_api.py prints: seconds, from the send, over the whole run; RPS counts the requests
// that were answered.
#include <fmt/format.h>

#include "report/bench_tables.h"

namespace goodput {
namespace {

std::string seconds_of(const std::optional<double>& ms) { return ms ? fmt::format("{:.3f}s", *ms * 1e-3) : "–"; }

}  // namespace

std::string lmdeploy_table(const BenchReport& r, const BenchTotals& t, const TextStyle&, bool) {
  const auto& first = t.of(BenchMetric::kTtft);
  const auto& gaps = t.of(BenchMetric::kItl);
  const auto edge = [](const std::vector<double>& sorted, bool last) {
    return sorted.empty() ? std::nullopt : std::optional(last ? sorted.back() : sorted.front());
  };
  const auto per_second = [&](auto n) { return t.per_second(static_cast<double>(n)); };
  const auto rps = per_second(t.completed);
  const std::string rule(50, '-');
  std::string out = rule + "\n";
  out += fmt::format("concurrency: {}\n", r.concurrency ? std::to_string(*r.concurrency) : "–");
  out += fmt::format("elapsed_time: {:.3f}s\n\n", t.duration_s);
  out += fmt::format("first_token latency(min, max, ave): {}, {}, {}\n", seconds_of(edge(first, false)),
                     seconds_of(edge(first, true)), seconds_of(mean_of(first)));
  out += fmt::format("per_token latency(50%, 75%, 95%, 99%): {}, {}, {}, {}\n\n",
                     seconds_of(linear_percentile(gaps, 50)), seconds_of(linear_percentile(gaps, 75)),
                     seconds_of(linear_percentile(gaps, 95)), seconds_of(linear_percentile(gaps, 99)));
  out += fmt::format("number of prompt tokens: {}\n", t.input_tokens);
  out += fmt::format("number of completion tokens: {}\n", t.output_tokens);
  out += fmt::format("token throughput (completion token): {} token/s\n", fixed(per_second(t.output_tokens), 3));
  out += fmt::format("token throughput (prompt + completion token): {} token/s\n",
                     fixed(per_second(t.input_tokens + t.output_tokens), 3));
  out += fmt::format("RPS (request per second): {} req/s\n", fixed(rps, 3));
  out += fmt::format("RPM (request per minute): {} req/min\n", fixed(rps ? std::optional(*rps * 60) : std::nullopt, 3));
  return out + rule + "\n";
}

}  // namespace goodput
