#include "metrics/definitions.h"

#include <gtest/gtest.h>

#include "metrics/test_records.h"

namespace goodput {
namespace {

using testing::at_ms;
using testing::failed;
using testing::rule;
using testing::steady_stream;
using testing::stream;

// Scheduled at 0, sent at 100 ms, a chunk with only a role at 400, then case 12's tokens, the stream ends at 700.
RequestRecord example() {
  RequestRecord r = stream({{500, 1}, {540, 1}, {580, 4}, {620, 1}, {660, 4}});
  r.dispatched = at_ms(100);
  r.first_chunk = at_ms(400);
  r.closed = at_ms(700);
  r.token_source = TokenSource::kUsage;
  return r;
}

ToolView view(Tool tool, const std::vector<RequestRecord>& records, const TargetSet& targets = {},
              double window_s = 10) {
  return view_under(tool, records, records, targets, window_s);
}

const ToolFigure& figure(const ToolView& v, std::string_view key, std::string_view metric) {
  for (const ToolFigure& f : v.figures)
    if (f.row->key == key && f.row->metric == metric)
      return f;
  ADD_FAILURE() << "no figure " << key;
  return v.figures.front();
}
double mean(Tool tool, std::string_view key, std::string_view metric) {
  return figure(view(tool, {example()}), key, metric).mean.value_or(-1);
}

TEST(Definitions, Case07EachToolStartsAndEndsTheFirstTokenElsewhere) {
  EXPECT_DOUBLE_EQ(mean(Tool::kGoodput, "ttft", "ttft"), 500);
  EXPECT_DOUBLE_EQ(mean(Tool::kVllm, "ttft", "ttft"), 300);  // the role chunk counts, the wait before the send does not
  EXPECT_DOUBLE_EQ(mean(Tool::kSglang, "ttft", "ttft"), 400);
  EXPECT_DOUBLE_EQ(mean(Tool::kAiperf, "time_to_first_token", "ttft"), 400);
  EXPECT_DOUBLE_EQ(mean(Tool::kGuidellm, "time_to_first_token_ms", "ttft"), 400);
  EXPECT_DOUBLE_EQ(mean(Tool::kEvalscope, "Average time to first token", "ttft"), 300);
}

TEST(Definitions, TimePerOutputToken) {
  EXPECT_DOUBLE_EQ(mean(Tool::kGoodput, "tpot", "tpot"), 16);  // 160 / (11 - 1)
  EXPECT_DOUBLE_EQ(mean(Tool::kVllm, "tpot", "tpot"), 26);     // (660 - 400) / 10
  EXPECT_DOUBLE_EQ(mean(Tool::kSglang, "tpot", "tpot"), 20);   // (700 - 500) / 10
  EXPECT_DOUBLE_EQ(mean(Tool::kAiperf, "inter_token_latency", "tpot"), 16);
  EXPECT_DOUBLE_EQ(mean(Tool::kGuidellm, "inter_token_latency_ms", "tpot"), 16);
  EXPECT_DOUBLE_EQ(mean(Tool::kGuidellm, "time_per_output_token_ms", "tpot"), 560.0 / 11);
  EXPECT_DOUBLE_EQ(mean(Tool::kEvalscope, "Average time per output token", "tpot"), 26);
}

TEST(Definitions, Case12GapsUnderEveryConvention) {
  EXPECT_DOUBLE_EQ(mean(Tool::kGoodput, "itl", "itl"), 16);
  EXPECT_DOUBLE_EQ(mean(Tool::kGoodput, "icl", "itl"), 40);
  EXPECT_DOUBLE_EQ(mean(Tool::kVllm, "itl", "itl"), (100.0 + 4 * 40) / 5);  // role to first token is a gap
  EXPECT_DOUBLE_EQ(mean(Tool::kSglang, "itl", "itl"), 40);
  EXPECT_DOUBLE_EQ(mean(Tool::kAiperf, "inter_chunk_latency", "itl"), 40);
  EXPECT_DOUBLE_EQ(mean(Tool::kEvalscope, "Average inter-token latency", "itl"), 52);
  EXPECT_FALSE(figure(view(Tool::kGuidellm, {example()}), "-", "itl").mean);
}

TEST(Definitions, EndToEnd) {
  EXPECT_DOUBLE_EQ(mean(Tool::kGoodput, "e2el", "e2el"), 660);
  EXPECT_DOUBLE_EQ(mean(Tool::kVllm, "e2el", "e2el"), 560);
  EXPECT_DOUBLE_EQ(mean(Tool::kSglang, "e2e_latency", "e2el"), 600);
  EXPECT_DOUBLE_EQ(mean(Tool::kAiperf, "request_latency", "e2el"), 560);
  EXPECT_DOUBLE_EQ(mean(Tool::kGuidellm, "request_latency", "e2el"), 600);
  EXPECT_DOUBLE_EQ(mean(Tool::kEvalscope, "Average latency", "e2el"), 560);
}

TEST(Definitions, EventsOfOneReadAreOneDeliveryForUsAndZeroApartForOthers) {
  RequestRecord r = stream({{100, 1}, {140, 1}, {140, 1}, {180, 1}});
  r.token_source = TokenSource::kUsage;
  EXPECT_EQ(figure(view(Tool::kGoodput, {r}), "icl", "itl").values, (std::vector<double>{40, 40}));
  EXPECT_EQ(figure(view(Tool::kVllm, {r}), "itl", "itl").values, (std::vector<double>{0, 40, 40}));
}

TEST(Definitions, ToolCallsAreNoTextForSome) {
  RequestRecord r = steady_stream(0, 100, 10, 3);
  r.token_source = TokenSource::kUsage;
  for (TokenEvent& e : r.events)
    e.channel = Channel::kToolCall;
  EXPECT_EQ(figure(view(Tool::kGoodput, {r}), "ttft", "ttft").values.size(), 1u);
  EXPECT_EQ(figure(view(Tool::kVllm, {r}), "ttft", "ttft").values.size(), 1u);
  EXPECT_TRUE(figure(view(Tool::kSglang, {r}), "ttft", "ttft").values.empty());
  r.events.back().channel = Channel::kReasoning;
  EXPECT_EQ(figure(view(Tool::kSglang, {r}), "ttft", "ttft").values, std::vector<double>{120});
}

TEST(Definitions, WhereOutputTokensComeFrom) {
  RequestRecord r = steady_stream(0, 100, 10, 5);
  r.asked_output = Tokens(8);
  r.output_tokens = Tokens(6);
  for (const TokenSource source : {TokenSource::kUsage, TokenSource::kRunningUsage}) {
    r.token_source = source;
    for (const Tool tool : kTools)
      EXPECT_EQ(output_tokens_under(tool, r), 6) << to_string(tool);
  }
  r.token_source = TokenSource::kChunks;
  r.output_tokens = Tokens(5);
  EXPECT_EQ(output_tokens_under(Tool::kGoodput, r), 5);
  EXPECT_EQ(output_tokens_under(Tool::kVllm, r), std::nullopt);  // it would tokenize text that is not stored
  EXPECT_EQ(output_tokens_under(Tool::kSglang, r), 8);           // what was asked for
  EXPECT_EQ(output_tokens_under(Tool::kGuidellm, r), 5);
  EXPECT_FALSE(figure(view(Tool::kVllm, {r}), "tpot", "tpot").mean);
  EXPECT_FALSE(view(Tool::kVllm, {r}).output_tokens);
}

TEST(Definitions, PercentileRulesByHand) {
  const std::vector<double> v = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
  EXPECT_DOUBLE_EQ(*percentile_by(PercentileRule::kLinear, v, 0.5), 5.5);
  EXPECT_DOUBLE_EQ(*percentile_by(PercentileRule::kLinear, v, 0.95), 9.55);
  EXPECT_DOUBLE_EQ(*percentile_by(PercentileRule::kNearestRank, v, 0.5), 5);
  EXPECT_DOUBLE_EQ(*percentile_by(PercentileRule::kNearestRank, v, 0.95), 10);
  EXPECT_DOUBLE_EQ(*percentile_by(PercentileRule::kIndex, v, 0.5), 6);
  EXPECT_DOUBLE_EQ(*percentile_by(PercentileRule::kIndex, v, 0.95), 10);
  EXPECT_EQ(percentile_by(PercentileRule::kIndex, v, 1), std::nullopt);  // beyond the last
  EXPECT_EQ(percentile_by(PercentileRule::kLinear, {}, 0.5), std::nullopt);
  EXPECT_DOUBLE_EQ(*percentile_by(PercentileRule::kLinear, std::vector<double>{7}, 0.99), 7);
}

TEST(Definitions, Case41TailsOfFifteenRequests) {
  std::vector<RequestRecord> records;
  for (int i = 0; i < 15; ++i)
    records.push_back(steady_stream(i * 100, 10 + i, 10, 5));
  // evalscope's 95, 98 and 99 % rows are one number, the maximum; ours has none.
  const auto theirs = figure(view(Tool::kEvalscope, records), "Average time to first token", "ttft");
  EXPECT_DOUBLE_EQ(*theirs.p95, 24);
  EXPECT_DOUBLE_EQ(*theirs.p99, 24);
  const auto ours = figure(view(Tool::kGoodput, records), "ttft", "ttft");
  EXPECT_FALSE(ours.p95);
  EXPECT_FALSE(ours.p99);
  EXPECT_DOUBLE_EQ(*ours.p50, 17);
}

TEST(Definitions, Case33GoodputUnderEachRule) {
  // TTFT and E2E in ms, tokens: as the case's table; r5 failed. Targets TTFT <= 500, TPOT <= 200.
  const auto request = [](double at, double ttft, double e2e, int n) {
    RequestRecord r = steady_stream(at, ttft, n > 1 ? (e2e - ttft) / (n - 1) : 0, n);
    r.token_source = TokenSource::kUsage;
    return r;
  };
  const std::vector<RequestRecord> records = {request(0, 100, 100, 1), request(1000, 100, 1100, 11),
                                              request(2000, 100, 3100, 11), request(3000, 900, 1900, 11),
                                              failed(Outcome::kError, 4000, 10)};
  const TargetSet targets = parse_targets(std::vector<std::string>{"ttft:500", "tpot:200"}).value();
  const auto ours = view(Tool::kGoodput, records, targets);
  EXPECT_DOUBLE_EQ(*ours.goodput_rps, 0.2);
  EXPECT_DOUBLE_EQ(*ours.good_share, 0.4);
  // From the first send (0) to the last end (2000 + 3100 ms).
  const auto vllm = view(Tool::kVllm, records, targets);
  EXPECT_DOUBLE_EQ(vllm.duration_s, 5.1);
  EXPECT_DOUBLE_EQ(*vllm.goodput_rps, 2 / 5.1);  // r1's TPOT is taken as 0
  EXPECT_DOUBLE_EQ(*vllm.good_share, 0.5);       // of four successes
  const auto aiperf = view(Tool::kAiperf, records, targets);
  EXPECT_DOUBLE_EQ(*aiperf.good_share, 0.2);  // r1 has no value and is not good; the error counts
  const auto guidellm = view(Tool::kGuidellm, records, targets);
  EXPECT_DOUBLE_EQ(*guidellm.good_share, 1.0 / 3);  // r1 is undetermined
  EXPECT_FALSE(view(Tool::kSglang, records, targets).goodput_rps);
  EXPECT_FALSE(view(Tool::kEvalscope, records, targets).goodput_rps);
}

TEST(Definitions, ATargetThatAToolDoesNotKnowLeavesItWithoutGoodput) {
  const TargetSet targets = rule({"ttft:500", "max_gap:100"}).targets;
  EXPECT_TRUE(view(Tool::kGoodput, {example()}, targets).goodput_rps);
  EXPECT_FALSE(view(Tool::kVllm, {example()}, targets).goodput_rps);
  EXPECT_FALSE(view(Tool::kGoodput, {example()}).goodput_rps);  // no targets
}

TEST(Definitions, OneTokenIsZeroForEvalscopeAndNothingForOthers) {
  RequestRecord r = stream({{100, 1}});
  r.token_source = TokenSource::kUsage;
  EXPECT_EQ(figure(view(Tool::kEvalscope, {r}), "Average time per output token", "tpot").values,
            std::vector<double>{0});
  for (const Tool tool : {Tool::kGoodput, Tool::kVllm, Tool::kSglang})
    EXPECT_TRUE(figure(view(tool, {r}), "tpot", "tpot").values.empty());
}

TEST(Definitions, NothingIsMadeOfNothing) {
  RequestRecord whole;  // an answer without streaming
  whole.outcome = Outcome::kOk;
  whole.streamed = false;
  whole.dispatched = at_ms(0);
  whole.done = whole.closed = at_ms(100);
  for (const Tool tool : kTools) {
    for (const auto& records : {std::vector<RequestRecord>{}, {failed(Outcome::kReset, 0, 5)}, {RequestRecord{}}})
      for (const ToolFigure& f : view(tool, records, rule({"ttft:1"}).targets, 0).figures)
        EXPECT_TRUE(f.values.empty());
    for (const ToolFigure& f : view(tool, {whole}).figures)
      if (f.row->metric == "ttft" || f.row->metric == "itl") {
        EXPECT_TRUE(f.values.empty()) << to_string(tool) << " " << f.row->key;
      }
  }
}

TEST(Definitions, EveryRowSaysSomethingAndNoTwoRowsOfAToolShareAName) {
  for (const DefinitionRow& row : definition_rows()) {
    EXPECT_FALSE(row.says.empty());
    EXPECT_EQ(row.says.find('\n'), row.says.npos);
    int same = 0;
    for (const DefinitionRow& other : definition_rows())
      same += other.tool == row.tool && other.metric == row.metric && other.key == row.key;
    EXPECT_EQ(same, 1) << row.key;
  }
}

}  // namespace
}  // namespace goodput
