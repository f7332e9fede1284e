// The CSV of DB-GPT's llm_benchmarks.py, the columns that describe a whole run: one header line, one row. Speed counts
// prompt and completion tokens together, as there. What cannot be known is an empty field, as CSV has it.
#include <fmt/format.h>

#include "report/bench_tables.h"

namespace goodput {
namespace {

std::string csv_field(std::string_view text) {
  if (text.find_first_of(",\"\r\n") == std::string_view::npos)
    return std::string(text);
  std::string out = "\"";
  for (const char c : text)
    out += c == '"' ? std::string("\"\"") : std::string(1, c);
  return out + "\"";
}

std::string number(const std::optional<double>& v) { return v ? fmt::format("{:.3f}", *v) : ""; }

std::string mean_length(int64_t tokens, uint64_t requests) {
  return requests > 0 ? fmt::format("{:.0f}", static_cast<double>(tokens) / static_cast<double>(requests)) : "";
}

}  // namespace

std::string dbgpt_table(const BenchReport& r, const BenchTotals& t, const TextStyle&, bool) {
  const int64_t tokens = t.input_tokens + t.output_tokens;
  std::string out =
      "model_name,gpu_nums,parallel_nums,input_length,output_length,test_time_cost_ms,test_total_tokens,"
      "avg_test_speed_per_second(tokens/s),avg_first_token_latency_ms,avg_latency_ms,gpu_mem(GiB)\n";
  return out + fmt::format("{},,{},{},{},{:.0f},{},{},{},{},\n", csv_field(r.model_name()),
                           r.concurrency ? std::to_string(*r.concurrency) : "",
                           mean_length(t.input_tokens, t.completed), mean_length(t.output_tokens, t.completed),
                           t.duration_s * 1e3, tokens, number(t.per_second(static_cast<double>(tokens))),
                           number(mean_of(t.of(BenchMetric::kTtft))), number(mean_of(t.of(BenchMetric::kE2el))));
}

}  // namespace goodput
