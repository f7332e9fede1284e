// The tables and the JSON of a benchmark against figures worked out by hand, and the public cases that concern them.
#include "report/bench_tables.h"

#include <gtest/gtest.h>

#include <boost/json.hpp>

#include "report/bench_json.h"

namespace goodput {
namespace {

namespace json = boost::json;

TimePoint at(double ms) { return TimePoint(seconds(100) + from_ms(ms)); }

// A stream of `n` tokens, dispatched `delay` after its time, the first token `first` after the dispatch.
RequestRecord stream(uint64_t index, double scheduled, double delay, double first, double gap, int n) {
  RequestRecord r;
  r.index = index;
  r.outcome = Outcome::kOk;
  r.finish = FinishReason::kLength;
  r.http_status = 200;
  r.attempts = 1;
  r.scheduled = at(scheduled);
  r.dispatched = r.connected = r.sent = at(scheduled + delay);
  r.prompt_tokens = Tokens(10);
  r.output_tokens = r.asked_output = Tokens(n);
  r.chunks = static_cast<uint32_t>(n);
  for (int i = 0; i < n; ++i) {
    TokenEvent e;
    e.user = from_ms(delay + first + gap * i);
    e.tokens = 1;
    r.events.push_back(e);
  }
  if (n > 0) {
    r.first_chunk = r.first_token = r.first_answer = r.scheduled + r.events.front().user;
    r.done = r.closed = r.scheduled + r.events.back().user;
  }
  return r;
}

BenchReport report_of(std::vector<RequestRecord> records, TargetSet targets = {}) {
  BenchReport r;
  r.base_url = "http://127.0.0.1:8000";
  r.endpoint = "/v1/completions";
  r.model = "org/tiny";
  r.date = "20260102-030405";
  r.rules = {{"all", targets}};
  r.num_prompts = r.scheduled = r.distinct_prompts = records.size();
  for (size_t i = 0; i < records.size(); ++i)
    r.asked_prompt.push_back(10);
  r.load.records = std::move(records);
  r.load.model = "org/tiny";
  r.load.window = {at(0), at(10000)};
  r.summary = summarize(r.load.records, r.rules, r.load.window);
  return r;
}

TargetSet limits_of(std::vector<std::string> items) { return *parse_targets(items); }

// Two answers of 5 tokens: TTFT 100 and 200, gaps of 10 and 20.
BenchReport two() {
  BenchReport r =
      report_of({stream(0, 0, 0, 100, 10, 5), stream(1, 500, 0, 200, 20, 5)}, limits_of({"ttft:150", "e2el:1000"}));
  r.concurrency = 4;
  r.rate = 2;
  return r;
}

std::string vllm(const BenchReport& r, bool plain = false) {
  TextStyle style{.width = 0, .colour = false, .plain = plain};
  return vllm_table(r, bench_totals(r), style, false);
}

json::object object_of(const BenchReport& r, bool detailed = false) {
  return json::parse(bench_json(r, detailed)).get_object();
}

TEST(BenchTables, VllmTableIsVllms) {
  const std::string expected =
      "============ Serving Benchmark Result ============\n"
      "Successful requests:                     2         \n"
      "Failed requests:                         0         \n"
      "Maximum request concurrency:             4         \n"
      "Request rate configured (RPS):           2.00      \n"
      "Benchmark duration (s):                  0.78      \n"
      "Total input tokens:                      20        \n"
      "Total generated tokens:                  10        \n"
      "Request throughput (req/s):              2.56      \n"
      "Request goodput (req/s):                 1.28      \n"
      "Output token throughput (tok/s):         12.82     \n"
      "Peak output token throughput (tok/s):    10.00     \n"
      "Peak concurrent requests:                2.00      \n"
      "Total token throughput (tok/s):          38.46     \n"
      "---------------Time to First Token----------------\n"
      "Mean TTFT (ms):                          150.00    \n"
      "Median TTFT (ms):                        150.00    \n"
      "P99 TTFT (ms):                           199.00     (at least this: n = 2, a bound needs 299)\n"
      "-----Time per Output Token (excl. 1st token)------\n"
      "Mean TPOT (ms):                          15.00     \n"
      "Median TPOT (ms):                        15.00     \n"
      "P99 TPOT (ms):                           19.90      (at least this: n = 2, a bound needs 299)\n"
      "---------------Inter-token Latency----------------\n"
      "Mean ITL (ms):                           15.00     \n"
      "Median ITL (ms):                         15.00     \n"
      "P99 ITL (ms):                            20.00      (at least this: n = 2, a bound needs 299)\n"
      "==================================================\n";
  EXPECT_EQ(vllm(two()), expected);
}

TEST(BenchTables, PlainIsTabSeparated) {
  const std::string text = vllm(two(), true);
  EXPECT_NE(text.find("Successful requests:\t2\n"), std::string::npos);
  EXPECT_EQ(text.find("===="), std::string::npos);
}

TEST(BenchTables, PercentileMetricsAndPercentsAreObeyed) {
  BenchReport r = two();
  r.metrics = *parse_bench_metrics("e2el");
  r.percents = *parse_percents("50,99.9");
  const std::string text = vllm(r);
  EXPECT_EQ(text.find("TTFT"), std::string::npos);
  EXPECT_NE(text.find("----------------End-to-end Latency----------------"), std::string::npos);
  EXPECT_NE(text.find("P99.9 E2EL (ms):"), std::string::npos);
  const json::object o = object_of(r);
  EXPECT_TRUE(o.contains("p99.9_e2el_ms"));
  EXPECT_TRUE(o.contains("p50_e2el_ms"));
  EXPECT_FALSE(o.contains("mean_ttft_ms"));
  EXPECT_FALSE(parse_bench_metrics("ttft,ttfx"));
  for (const char* bad : {"", "0", "101", "nan", "99,", "p99"})
    EXPECT_FALSE(parse_percents(bad)) << bad;
}

TEST(BenchJson, KeysAndUnitsAreVllms) {
  BenchReport r = two();
  r.metadata = {{"tp", "2"}, {"backend", "mine"}, {"duration", "never"}};
  const json::object o = object_of(r);
  for (const char* key : {"date",
                          "endpoint_type",
                          "backend",
                          "label",
                          "model_id",
                          "tokenizer_id",
                          "num_prompts",
                          "request_rate",
                          "burstiness",
                          "max_concurrency",
                          "duration",
                          "completed",
                          "failed",
                          "total_input_tokens",
                          "total_output_tokens",
                          "request_throughput",
                          "request_goodput",
                          "output_throughput",
                          "total_token_throughput",
                          "max_output_tokens_per_s",
                          "max_concurrent_requests",
                          "rtfx"})
    EXPECT_TRUE(o.contains(key)) << key;
  EXPECT_EQ(o.at("tp"), "2");
  EXPECT_EQ(o.at("backend"), "mine");  // metadata overrides what stands before it
  EXPECT_DOUBLE_EQ(o.at("duration").as_double(), 0.78);
  EXPECT_EQ(o.at("request_rate"), 2.0);
  EXPECT_EQ(o.at("max_concurrency"), 4);
  EXPECT_DOUBLE_EQ(o.at("mean_ttft_ms").as_double(), 150);
  EXPECT_DOUBLE_EQ(o.at("std_ttft_ms").as_double(), 50);   // of the population
  EXPECT_DOUBLE_EQ(o.at("p99_ttft_ms").as_double(), 199);  // interpolated, as numpy does
  EXPECT_DOUBLE_EQ(o.at("request_goodput").as_double(), 1 / 0.78);
  EXPECT_FALSE(o.contains("ttfts"));
  EXPECT_EQ(o.at("goodput").as_object().at("most_in_flight"), 1);
  r.rate.reset();
  EXPECT_EQ(object_of(r).at("request_rate"), "inf");
}

TEST(BenchJson, DetailsAreInSecondsAndNeverInvented) {
  BenchReport r = two();
  RequestRecord failed;
  failed.index = 2;
  failed.outcome = Outcome::kRejected;
  failed.error = ErrorKind::kHttpStatus;
  failed.http_status = 429;
  failed.scheduled = failed.closed.emplace(at(600));
  failed.dispatched = at(600);
  r.load.records.push_back(failed);
  r.asked_prompt.push_back(10);
  const json::object o = object_of(r, true);
  for (const char* key : {"input_lens", "output_lens", "ttfts", "itls", "start_times", "queue_times", "latencies",
                          "generated_texts", "errors"})
    EXPECT_EQ(o.at(key).as_array().size(), 3u) << key;
  EXPECT_DOUBLE_EQ(o.at("ttfts").as_array()[1].as_double(), 0.2);
  EXPECT_DOUBLE_EQ(o.at("itls").as_array()[0].as_array()[0].as_double(), 0.01);
  EXPECT_DOUBLE_EQ(o.at("latencies").as_array()[0].as_double(), 0.14);
  EXPECT_TRUE(o.at("ttfts").as_array()[2].is_null());
  EXPECT_EQ(o.at("errors").as_array()[0], "");
  EXPECT_EQ(o.at("errors").as_array()[2], "rejected: http_status 429");
  EXPECT_EQ(o.at("failed"), 1);
}

TEST(BenchJson, FileNameIsVllms) {
  BenchReport r = two();
  EXPECT_EQ(bench_file_name(r), "openai-2.0qps-concurrency4-tiny-20260102-030405.json");
  r.label = "mine";
  r.rate.reset();
  r.concurrency.reset();
  EXPECT_EQ(bench_file_name(r), "mine-infqps-tiny-20260102-030405.json");
  r.rate = 0.21;
  EXPECT_EQ(bench_file_name(r), "mine-0.21qps-tiny-20260102-030405.json");
  r.ramp = RampReport{"linear", 1, 8};
  EXPECT_EQ(bench_file_name(r), "mine-ramp-up-linear-1qps-8qps-tiny-20260102-030405.json");
}

std::string render(const char* table, const BenchReport& r, bool chinese = false) {
  TextStyle style{.width = 0, .colour = false, .plain = false};
  return find_bench_table(table)->render(r, bench_totals(r), style, chinese);
}

TEST(BenchTables, LmdeployCountsInSeconds) {
  const std::string expected =
      "--------------------------------------------------\n"
      "concurrency: 4\n"
      "elapsed_time: 0.780s\n"
      "\n"
      "first_token latency(min, max, ave): 0.100s, 0.200s, 0.150s\n"
      "per_token latency(50%, 75%, 95%, 99%): 0.015s, 0.020s, 0.020s, 0.020s\n"
      "\n"
      "number of prompt tokens: 20\n"
      "number of completion tokens: 10\n"
      "token throughput (completion token): 12.821 token/s\n"
      "token throughput (prompt + completion token): 38.462 token/s\n"
      "RPS (request per second): 2.564 req/s\n"
      "RPM (request per minute): 153.846 req/min\n"
      "--------------------------------------------------\n";
  EXPECT_EQ(render("lmdeploy", two()), expected);
}

TEST(BenchTables, DbgptIsOneCsvRowThatCountsAllTokens) {
  BenchReport r = two();
  r.model = "a,\"b\"";
  EXPECT_EQ(render("dbgpt", r),
            "model_name,gpu_nums,parallel_nums,input_length,output_length,test_time_cost_ms,test_total_tokens,"
            "avg_test_speed_per_second(tokens/s),avg_first_token_latency_ms,avg_latency_ms,gpu_mem(GiB)\n"
            "\"a,\"\"b\"\"\",,4,10,5,780,30,38.462,150.000,210.000,\n");
}

TEST(BenchTables, EvalscopeHasItsPercentilesMinAndChinese) {
  const std::string english = render("evalscope", two());
  for (const char* word : {"Average package per request           5.00", "Succeed requests                         2",
                           "Average latency (s)                 0.2100", "\nmin ", "\n66% ", "\n99% "})
    EXPECT_NE(english.find(word), std::string::npos) << word << "\n" << english;
  const std::string chinese = render("evalscope", two(), true);
  for (const char* word : {"首字延迟", "每输出 token 时间", "成功请求数", "总耗时"})
    EXPECT_NE(chinese.find(word), std::string::npos) << word;
}

// Variant A: a role and a finish without text; B: [DONE] alone. Both are the outcome `error`, kind `empty`.
TEST(BenchTables, Case21AllAnswersEmptyPrintsCountsOnly) {
  std::vector<RequestRecord> records;
  for (int i = 0; i < 3; ++i) {
    RequestRecord r = stream(static_cast<uint64_t>(i), 100 * i, 0, 0, 0, 0);
    r.outcome = Outcome::kError;
    r.error = ErrorKind::kEmpty;
    r.output_tokens.reset();
    r.closed = r.scheduled + milliseconds(5);
    records.push_back(r);
  }
  const BenchReport r = report_of(records, limits_of({"ttft:100"}));
  for (const BenchTable& table : bench_tables()) {
    const std::string text = render(std::string(table.name).c_str(), r);
    for (const char* bad : {"nan", "inf", "-1", "0.00 ms"})
      EXPECT_EQ(text.find(bad), std::string::npos) << table.name << "\n" << text;
  }
  const std::string text = vllm(r);
  EXPECT_NE(text.find("Failed requests:                         3"), std::string::npos);
  EXPECT_NE(text.find("Mean TTFT (ms):                          –"), std::string::npos);
  EXPECT_NE(text.find("not available"), std::string::npos);
  const json::object o = object_of(r, true);
  for (const char* key : {"mean_ttft_ms", "std_tpot_ms", "p99_itl_ms", "max_output_tokens_per_s"})
    EXPECT_TRUE(o.at(key).is_null()) << key;
}

// 10 requests/s, the server takes 0.5 s, one in flight: both pairs of numbers stand in one result.
TEST(BenchTables, Case36BothViewsOfACappedRun) {
  std::vector<RequestRecord> records;
  for (int i = 0; i < 8; ++i)
    records.push_back(stream(static_cast<uint64_t>(i), 100 * i, 400 * i, 100, 100, 5));
  BenchReport r = report_of(records);
  r.rate = 10;
  r.concurrency = 1;
  r.metrics = *parse_bench_metrics("e2el,client_queue_time,e2el_including_client_queue");
  const json::object o = object_of(r);
  EXPECT_NEAR(o.at("mean_e2el_ms").as_double(), 500, 1e-6);
  EXPECT_NEAR(o.at("mean_client_queue_time_ms").as_double(), 1400, 1e-6);
  EXPECT_NEAR(o.at("mean_e2el_including_client_queue_ms").as_double(), 1900, 1e-6);
  EXPECT_NEAR(*r.summary.achieved_rate, 2.0, 1e-9);
  TextStyle style{.width = 0, .colour = false, .plain = false};
  const std::string block = own_block(r, bench_totals(r), style);
  EXPECT_NE(block.find("2800.00"), std::string::npos) << block;  // the longest wait of the client
  EXPECT_NE(block.find("3300.00"), std::string::npos) << block;  // the longest E2E from the schedule
}

TEST(BenchTables, Case40ReportShowsReachedAgainstAllowedAndDistinctPrompts) {
  BenchReport r = two();
  r.scheduled = 40000;
  r.distinct_prompts = 49;
  r.concurrency = 1200;
  VerdictRules rules;
  rules.scheduled = 40000;
  r.verdict = judge_point(r.load.records, r.summary, Observed{}, r.load.audit, r.rules, rules);
  TextStyle style{.width = 0, .colour = false, .plain = false};
  const std::string block = own_block(r, bench_totals(r), style);
  EXPECT_NE(block.find("Most in flight, reached / allowed:       1 / 1200"), std::string::npos) << block;
  EXPECT_NE(block.find("49 of 40000"), std::string::npos) << block;
  EXPECT_NE(block.find("INVALID\n  unaccounted"), std::string::npos) << block;
}

TEST(BenchTables, Case41FewSamplesAreMarked) {
  for (const int n : {15, 100, 299}) {
    std::vector<RequestRecord> records;
    for (int i = 0; i < n; ++i)
      records.push_back(stream(static_cast<uint64_t>(i), i, 0, 100 + i, 10, 4));
    const BenchReport r = report_of(records);
    const std::string text = vllm(r);
    EXPECT_EQ(text.find("at least this") != std::string::npos, n < 299) << n;
    EXPECT_EQ(r.summary.overall.latency.ttft.p99.has_value(), n >= 299) << n;
  }
}

TEST(BenchReport, FloorIsDecidedByTheInterval) {
  PointSummary s;
  s.requests = 100;
  ClassSummary c;
  c.scheduled = 100;
  const auto of = [&](double low, double value, double high) {
    c.attainment = Estimate{value, low, high};
    s.by_class = {c};
    return floor_verdict(s, 0.9);
  };
  EXPECT_EQ(of(0.91, 0.95, 0.98), FloorVerdict::kPass);
  EXPECT_EQ(of(0.85, 0.91, 0.95), FloorVerdict::kUndecided);
  EXPECT_EQ(of(0.5, 0.6, 0.7), FloorVerdict::kFail);
  c.attainment.reset();
  s.by_class = {c};
  EXPECT_EQ(floor_verdict(s, 0.9), FloorVerdict::kUndecided);
  EXPECT_EQ(floor_verdict(PointSummary{}, 0.9), FloorVerdict::kUndecided);
}

}  // namespace
}  // namespace goodput
