// What `evalscope perf` prints: a summary in seconds and a table of percentiles over requests, here with the rows `min`
// and `max` that its users ask for. Latencies from the send, over requests that succeeded; its "package" is a response
// event. Its percentile is the element at n·p/100 of the sorted values.
#include <algorithm>

#include <fmt/format.h>

#include "metrics/request_metrics.h"
#include "report/bench_tables.h"

namespace goodput {
namespace {

constexpr std::array<int, 10> kPercents = {10, 25, 50, 66, 75, 80, 90, 95, 98, 99};

// The columns of the percentile table, each sorted on its own.
struct Columns {
  std::vector<double> ttft_s, itl_s, tpot_s, latency_s, input, output, output_rate, total_rate;

  void sort() {
    for (auto* list : {&ttft_s, &itl_s, &tpot_s, &latency_s, &input, &output, &output_rate, &total_rate})
      std::sort(list->begin(), list->end());
  }
};

Columns columns_of(const BenchReport& r) {
  Columns c;
  for (const RequestRecord& q : r.load.records) {
    if (q.outcome != Outcome::kOk)
      continue;
    if (const auto first = ttft_service(q))
      c.ttft_s.push_back(to_seconds(*first));
    for (const double gap : icl_gaps_ns(q))
      c.itl_s.push_back(gap * 1e-9);
    if (const auto tpot = bench_tpot_ms(q))
      c.tpot_s.push_back(*tpot * 1e-3);
    const auto latency = bench_e2el_ms(q);
    if (latency)
      c.latency_s.push_back(*latency * 1e-3);
    if (q.prompt_tokens)
      c.input.push_back(q.prompt_tokens->count());
    if (q.output_tokens)
      c.output.push_back(q.output_tokens->count());
    if (latency && *latency > 0 && q.output_tokens) {
      const double tokens = q.output_tokens->count(), length_s = *latency * 1e-3;
      c.output_rate.push_back(tokens / length_s);
      if (q.prompt_tokens)
        c.total_rate.push_back((tokens + q.prompt_tokens->count()) / length_s);
    }
  }
  c.sort();
  return c;
}

std::optional<double> element(const std::vector<double>& sorted, int percent) {
  if (sorted.empty())
    return std::nullopt;
  return sorted[std::min(sorted.size() - 1, sorted.size() * static_cast<size_t>(percent) / 100)];
}

std::string percentile_table(const BenchReport& r, const TextStyle& style, bool chinese) {
  const Columns c = columns_of(r);
  const std::array<std::pair<const std::vector<double>*, int>, 8> lists = {{{&c.ttft_s, 4},
                                                                            {&c.itl_s, 4},
                                                                            {&c.tpot_s, 4},
                                                                            {&c.latency_s, 4},
                                                                            {&c.input, 0},
                                                                            {&c.output, 0},
                                                                            {&c.output_rate, 2},
                                                                            {&c.total_rate, 2}}};
  TextTable table;
  table.columns = chinese ? std::vector<TableColumn>{{"百分位", false},    {"首字延迟 (s)"},
                                                     {"token 间延迟 (s)"}, {"每输出 token 时间 (s)"},
                                                     {"总延迟 (s)"},       {"输入 token"},
                                                     {"输出 token"},       {"输出吞吐 (tok/s)"},
                                                     {"总吞吐 (tok/s)"}}
                          : std::vector<TableColumn>{{"Percentiles", false}, {"TTFT (s)"},       {"ITL (s)"},
                                                     {"TPOT (s)"},           {"Latency (s)"},    {"Input tokens"},
                                                     {"Output tokens"},      {"Output (tok/s)"}, {"Total (tok/s)"}};
  const auto row = [&](std::string name, auto value) {
    std::vector<std::string> cells{std::move(name)};
    for (const auto& [list, digits] : lists)
      cells.push_back(fixed(value(*list), digits));
    table.rows.push_back(std::move(cells));
  };
  row("min", [](const std::vector<double>& v) { return element(v, 0); });
  for (const int p : kPercents)
    row(fmt::format("{}%", p), [&](const std::vector<double>& v) { return element(v, p); });
  row("max", [](const std::vector<double>& v) { return element(v, 100); });
  return table.render(style);
}

}  // namespace

std::string evalscope_table(const BenchReport& r, const BenchTotals& t, const TextStyle& style, bool chinese) {
  TextTable table;
  table.columns = chinese ? std::vector<TableColumn>{{"指标", false}, {"数值"}}
                          : std::vector<TableColumn>{{"Key", false}, {"Value"}};
  const auto row = [&](std::string_view english, std::string_view in_chinese, std::string value) {
    table.rows.push_back({std::string(chinese ? in_chinese : english), std::move(value)});
  };
  const auto count = [](auto n) { return std::to_string(n); };
  const auto rate = [&](auto n) { return fixed(t.per_second(static_cast<double>(n)), 4); };
  const auto in_s = [](const std::optional<double>& ms) {
    return fixed(ms ? std::optional(*ms * 1e-3) : std::nullopt, 4);
  };
  const auto share = [](auto n, uint64_t of) {
    return fixed(of > 0 ? std::optional(static_cast<double>(n) / static_cast<double>(of)) : std::nullopt, 2);
  };
  row("Time taken for tests (s)", "总耗时 (s)", fixed(t.duration_s, 4));
  row("Number of concurrency", "并发数", r.concurrency ? count(*r.concurrency) : "–");
  row("Request rate (req/s)", "请求速率 (req/s)", r.rate ? fixed(r.rate, 4) : "–");
  row("Total requests", "请求总数", count(t.completed + t.failed));
  row("Succeed requests", "成功请求数", count(t.completed));
  row("Failed requests", "失败请求数", count(t.failed));
  row("Output token throughput (tok/s)", "输出吞吐量 (tok/s)", rate(t.output_tokens));
  row("Total token throughput (tok/s)", "总吞吐量 (tok/s)", rate(t.input_tokens + t.output_tokens));
  row("Request throughput (req/s)", "QPS (req/s)", rate(t.completed));
  row("Average latency (s)", "平均总延迟 (s)", in_s(mean_of(t.of(BenchMetric::kE2el))));
  row("Average time to first token (s)", "平均首字延迟 (s)", in_s(mean_of(t.of(BenchMetric::kTtft))));
  row("Average time per output token (s)", "平均每输出 token 时间 (s)", in_s(mean_of(t.of(BenchMetric::kTpot))));
  row("Average inter-token latency (s)", "平均 token 间延迟 (s)", in_s(mean_of(t.of(BenchMetric::kItl))));
  row("Average input tokens per request", "平均输入 token 数", share(t.input_tokens, t.completed));
  row("Average output tokens per request", "平均输出 token 数", share(t.output_tokens, t.completed));
  row("Average package latency (s)", "平均包间延迟 (s)", in_s(mean_of(t.of(BenchMetric::kItl))));
  row("Average package per request", "平均每请求包数", share(t.chunks, t.chunked_requests));
  return table.render(style) + "\n" + percentile_table(r, style, chinese);
}

}  // namespace goodput
