// The page that Prometheus reads: its format, and that each number means what its row says.
#include "serve/server_metrics.h"

#include <set>

#include <gtest/gtest.h>
#include <rapidcheck.h>

namespace goodput {
namespace {

bool has_line(const std::string& page, const std::string& line) {
  return ("\n" + page).find("\n" + line + "\n") != std::string::npos;
}

TEST(Exposition, EscapesAndGroups) {
  const MetricRow row{"a_total", "counter", "back\\slash and\nline"};
  Exposition out(Labels{{"model_name", "say \"hi\"\n\\"}});
  out.sample(row, 3, {{"why", "stop"}});
  out.sample(row, 0.25);
  EXPECT_EQ(out.take(),
            "# HELP a_total back\\\\slash and\\nline\n# TYPE a_total counter\n"
            "a_total{model_name=\"say \\\"hi\\\"\\n\\\\\",why=\"stop\"} 3\n"
            "a_total{model_name=\"say \\\"hi\\\"\\n\\\\\"} 0.25\n");
}

TEST(Exposition, HistogramsAreCumulative) {
  constexpr double kBounds[] = {1, 2.5};
  Histogram h{kBounds};
  for (const double v : {0.5, 1.0, 2.0, 9.0})
    h.observe(v);
  Exposition out(Labels{});
  out.histogram({"h", "histogram", "x"}, h);
  EXPECT_EQ(out.take(),
            "# HELP h x\n# TYPE h histogram\nh_bucket{le=\"1\"} 2\nh_bucket{le=\"2.5\"} 3\nh_bucket{le=\"+Inf\"} 4\n"
            "h_sum 12.5\nh_count 4\n");
}

TEST(Histogram, EveryValueFallsInTheFirstBucketThatHoldsIt) {
  static constexpr double kBounds[] = {-1, 0, 3, 100};
  EXPECT_TRUE(rc::check([](int16_t value) {
    Histogram h{kBounds};
    h.observe(value);
    for (size_t i = 0; i < 5; ++i) {
      const bool here = (i == 0 || value > kBounds[i - 1]) && (i == 4 || value <= kBounds[i]);
      RC_ASSERT(h.count_in(i) == (here ? 1u : 0u));
    }
  }));
}

TEST(ServerMetrics, NamesAreUniqueAndEachIsOnThePage) {
  const StepCounter steps;
  const std::string page = ServerMetrics().page("m", {}, &steps);
  std::set<std::string_view> names;
  for (const MetricRow& row : metric_rows()) {
    EXPECT_TRUE(names.insert(row.name).second) << row.name;
    EXPECT_EQ(row.name.ends_with("_total") && row.type != "histogram", row.type == "counter") << row.name;
    EXPECT_NE(page.find("# TYPE " + std::string(row.name) + " " + std::string(row.type) + "\n"), std::string::npos);
  }
}

TEST(ServerMetrics, FoldsOneRequest) {
  const auto at = [](int64_t ms) { return TimePoint(milliseconds(ms)); };
  ServerMetrics metrics;
  ServerTimes times;
  times.arrived = at(0);
  times.queued = at(100);
  times.scheduled = at(500);
  times.first_token = at(1000);
  times.last_token = at(3000);
  metrics.first_token(Tokens(12), milliseconds(1000));
  metrics.next_token(milliseconds(1500));
  metrics.next_token(milliseconds(500));
  metrics.ended(FinishReason::kLength, times, at(3000), Tokens(12), Tokens(3), Tokens(3));
  ServerGauges gauges;
  gauges.scheduler.running = 2;
  gauges.scheduler.waiting = 1;
  gauges.tokenizing = 3;
  gauges.scheduler.used = Blocks(5);
  gauges.scheduler.retained = Blocks(10);
  gauges.scheduler.total = Blocks(20);
  const std::string page = metrics.page("m", gauges, nullptr);
  const auto line = [&](const std::string& name, const std::string& value, const std::string& labels = "") {
    EXPECT_TRUE(has_line(page, name + "{model_name=\"m\"" + labels + "} " + value)) << name << "\n" << page;
  };
  line("vllm:num_requests_running", "2");
  line("vllm:num_requests_waiting", "4");
  line("vllm:kv_cache_usage_perc", "0.25");  // retained blocks are free blocks to vLLM
  line("vllm:prompt_tokens_total", "12");
  line("vllm:generation_tokens_total", "3");
  line("vllm:request_success_total", "1", ",finished_reason=\"length\"");
  line("vllm:request_success_total", "0", ",finished_reason=\"abort\"");
  line("vllm:time_to_first_token_seconds_sum", "1");
  line("vllm:inter_token_latency_seconds_sum", "2");
  line("vllm:inter_token_latency_seconds_count", "2");
  line("vllm:request_time_per_output_token_seconds_sum", "1");
  line("vllm:e2e_request_latency_seconds_sum", "3");
  line("vllm:request_queue_time_seconds_sum", "0.4");
  line("vllm:request_prefill_time_seconds_sum", "0.5");
  line("vllm:request_decode_time_seconds_sum", "2");
  line("vllm:request_inference_time_seconds_sum", "2.5");
}

TEST(ServerMetrics, ARequestThatNeverRanHasNoTimesOfRunning) {
  ServerMetrics metrics;
  ServerTimes times;
  times.arrived = times.queued = TimePoint();
  metrics.ended(FinishReason::kAbort, times, TimePoint(seconds(1)), Tokens(5), Tokens(0), Tokens(9));
  const std::string page = metrics.page("m", {}, nullptr);
  EXPECT_TRUE(has_line(page, "vllm:request_queue_time_seconds_count{model_name=\"m\"} 0"));
  EXPECT_TRUE(has_line(page, "vllm:request_decode_time_seconds_count{model_name=\"m\"} 0"));
  EXPECT_TRUE(has_line(page, "vllm:e2e_request_latency_seconds_count{model_name=\"m\"} 1"));
}

TEST(StepCounter, CountsTokensAndPassesTheRecordOn) {
  struct Count final : StepSink {
    void write(const StepRecord&) override { ++n; }
    int n = 0;
  } next;
  StepCounter counter(&next);
  StepRecord step;
  step.shape.prefill = Tokens(60);
  step.shape.decodes = 4;
  counter.write(step);
  const Histogram h = counter.tokens_per_iteration();
  EXPECT_EQ(h.sum(), 64);
  EXPECT_EQ(h.count_in(4), 1u);  // (32, 64]
  EXPECT_EQ(next.n, 1);
}

}  // namespace
}  // namespace goodput
