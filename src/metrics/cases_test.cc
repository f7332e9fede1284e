// Worked cases: situations that other tools got wrong in public, with the right result. The number is the case's.
#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include "metrics/request_metrics.h"
#include "metrics/server_report.h"
#include "metrics/test_records.h"

namespace goodput {
namespace {

using testing::at_ms;
using testing::failed;
using testing::rule;
using testing::steady_stream;
using testing::stream;
using testing::window_ms;

// The role chunk comes at 0.90 s, the first token at 2.20 s: not a token, not a gap.
TEST(Cases, Case07RoleOnlyFirstChunk) {
  RequestRecord r = stream({{2200}, {2220}, {2240}});
  r.first_chunk = at_ms(900);
  EXPECT_EQ(ttft(r), milliseconds(2200));
  EXPECT_EQ(icl_gaps_ns(r), (std::vector<double>{20e6, 20e6}));
  EXPECT_DOUBLE_EQ(*tpot_ns(r), 20e6);
}

TEST(Cases, Case08UsageAfterTheLastToken) {
  RequestRecord r = stream({{400}, {600}, {800}, {1000}});
  r.closed = at_ms(1150);
  EXPECT_EQ(e2e(r), seconds(1));
  EXPECT_EQ(ttft(r), milliseconds(400));
  EXPECT_DOUBLE_EQ(*tpot_ns(r), 200e6);
}

TEST(Cases, Case10MultiTokenChunksWithRunningUsage) {
  RequestRecord r = stream({{200, 1}, {260, 2}, {320, 3}, {440, 4}});
  r.token_source = TokenSource::kRunningUsage;
  EXPECT_EQ(icl_gaps_ns(r), (std::vector<double>{60e6, 60e6, 120e6}));
  std::vector<double> per_token;
  for (const WeightedGap& g : itl_gaps(r))
    per_token.insert(per_token.end(), g.tokens, g.per_token_ns);
  EXPECT_EQ(per_token, (std::vector<double>{30e6, 30e6, 20e6, 20e6, 20e6, 30e6, 30e6, 30e6, 30e6}));
  EXPECT_NEAR(*itl_mean_ns(r), 26.67e6, 1e4);
  EXPECT_NEAR(*tpot_ns(r), 26.67e6, 1e4);
}

TEST(Cases, Case11BundledFirstChunk) {
  RequestRecord r = stream({{200, 8}, {1000, 33}});
  EXPECT_NEAR(*tpot_ns(r), 24.24e6, 1e4);
  EXPECT_TRUE(first_count_known(r));
  r.events[0].tokens = r.events[1].tokens = 0;
  EXPECT_DOUBLE_EQ(*tpot_ns(r), 20e6);
  EXPECT_FALSE(first_count_known(r));
  EXPECT_FALSE(tpot_ns(stream({{200, 41}})));  // absent, not zero, not infinite
  r.events[0].tokens = 50;                     // more than the whole answer: n − 1, and counted
  EXPECT_DOUBLE_EQ(*tpot_ns(r), 20e6);
  EXPECT_TRUE(first_count_mismatch(r));
  EXPECT_FALSE(first_count_known(r));
}

TEST(Cases, Case12ItlThreeConventions) {
  const RequestRecord r = stream({{100, 1}, {140, 1}, {180, 4}, {220, 1}, {260, 4}});
  double icl = 0, once = 0;
  for (const double gap : icl_gaps_ns(r))
    icl += gap / 4;
  for (const WeightedGap& g : itl_gaps(r))
    once += g.per_token_ns / 4;
  EXPECT_DOUBLE_EQ(icl, 40e6);              // one sample per delivery: our icl
  EXPECT_DOUBLE_EQ(once, 25e6);             // another tool's: divided, one sample per delivery
  EXPECT_DOUBLE_EQ(*itl_mean_ns(r), 16e6);  // per token: our itl
}

TEST(Cases, Case13ReasoningThenContent) {
  RequestRecord r = stream({{310, 0}, {330, 0}, {2810, 0}, {2830, 0}});
  r.events[0].channel = r.events[1].channel = Channel::kReasoning;
  r.first_chunk = at_ms(50);
  r.first_answer = at_ms(2810);
  r.output_tokens = Tokens(130);  // the 126 reasoning tokens are inside
  EXPECT_EQ(ttft(r), milliseconds(310));
  EXPECT_EQ(ttfa(r), milliseconds(2810));
  EXPECT_NEAR(*tpot_ns(r), 2520e6 / 129, 1);
}

TEST(Cases, Case14ReasoningOnlyCapped) {
  RequestRecord r = steady_stream(0, 400, 20, 64);
  r.first_answer.reset();
  for (TokenEvent& e : r.events)
    e.channel = Channel::kReasoning;
  EXPECT_EQ(ttft(r), milliseconds(400));
  EXPECT_FALSE(ttfa(r));
  EXPECT_DOUBLE_EQ(*tpot_ns(r), 20e6);
  EXPECT_EQ(judge(r, rule({"ttft:500"}).targets).goodness, Goodness::kGood);
  EXPECT_EQ(judge(r, rule({"ttfa:100000"}).targets).goodness, Goodness::kBad);
}

TEST(Cases, Case16ToolCallIsCoarseButNotBuffered) {
  RequestRecord r = stream({{800, 0}, {900, 0}, {950, 0}});
  r.output_tokens = Tokens(17);
  EXPECT_FALSE(looks_buffered(r));
  EXPECT_DOUBLE_EQ(*tpot_ns(r), 150e6 / 16);
  r.buffered = true;  // had a probe shown it
  EXPECT_FALSE(tpot_ns(r));
}

TEST(Cases, Case21AllAnswersEmpty) {
  std::vector<RequestRecord> records(20, failed(Outcome::kError, 10, 50));
  for (auto& r : records)
    r.error = ErrorKind::kEmpty;
  const ClassRule classes[] = {rule({"ttft:100"})};
  const PointSummary s = summarize(records, classes, window_ms(0, 1000));
  EXPECT_EQ(s.overall.attainment->value, 0);
  EXPECT_EQ(s.overall.latency.ttft, Percentiles{});
  EXPECT_EQ(s.overall.latency.itl, Percentiles{});
  EXPECT_EQ(s.throughput.output_tokens_per_s, 0);
}

TEST(Cases, Case26PrefillRateCountsComputedTokens) {
  const ServerRates rates = server_rates({.prompt = Tokens(4000),
                                          .cached = Tokens(1000),
                                          .output = Tokens(35),
                                          .prefill = milliseconds(1950),
                                          .decode = milliseconds(661)});
  EXPECT_NEAR(*rates.prefill_tokens_per_s, 1538, 1);
}

TEST(Cases, Case27OllamaFinalRecord) {
  const ServerRates rates = server_rates({.prompt = Tokens(11),
                                          .cached = Tokens(8),
                                          .output = Tokens(18),
                                          .total = Nanos(174'560'334),
                                          .load = Nanos(101'397'084),
                                          .prefill = Nanos(13'074'791),
                                          .decode = Nanos(52'479'709)});
  EXPECT_NEAR(*rates.decode_tokens_per_s, 343.0, 0.05);
  EXPECT_NEAR(*rates.prefill_tokens_per_s, 229.4, 0.1);
  EXPECT_NEAR(*rates.end_to_end_tokens_per_s, 103, 0.2);
  EXPECT_NEAR(*rates.load_share, 0.58, 0.005);
  EXPECT_NEAR(to_ms(*rates.unexplained), 7.61, 0.005);
  EXPECT_NEAR(to_ms(*rates.ttft_estimate), 114.5, 0.05);
  const ServerRates none = server_rates({});
  EXPECT_FALSE(none.decode_tokens_per_s || none.prefill_tokens_per_s || none.load_share || none.ttft_estimate);
}

TEST(Cases, Case33SingleTokenTpotAndGoodput) {
  const ClassRule classes[] = {rule({"ttft:500", "tpot:200"})};
  std::vector<RequestRecord> records{stream({{100, 1}}), steady_stream(0, 100, 100, 11), steady_stream(0, 100, 300, 11),
                                     steady_stream(0, 900, 100, 11), failed(Outcome::kError, 0, 50)};
  PointSummary s = summarize(records, classes, window_ms(0, 10'000));
  EXPECT_EQ(s.overall.latency.tpot.n, 3u);
  EXPECT_DOUBLE_EQ(s.goodput_rps, 0.2);
  EXPECT_DOUBLE_EQ(s.overall.attainment->value, 0.4);
  EXPECT_EQ(s.overall.not_applicable, 1u);
  s = summarize(records, classes, window_ms(0, 10'000), true);
  EXPECT_DOUBLE_EQ(s.goodput_rps, 0.1);
  EXPECT_DOUBLE_EQ(s.overall.attainment->value, 0.2);
  for (auto& r : records)
    r.streamed = false;
  EXPECT_FALSE(summarize(records, classes, window_ms(0, 10'000)).overall.attainment);
}

TEST(Cases, Case34MissingFirstTokenIsNotAnEpoch) {
  const ClassRule classes[] = {rule({})};
  const double epoch_ms = 1'750'878'498'066;
  std::vector<RequestRecord> records{steady_stream(epoch_ms, 89'500, 20, 5)};
  for (int i = 1; i < 100; ++i)
    records.push_back(failed(Outcome::kError, epoch_ms, 10));
  for (size_t i = 0; i < records.size(); ++i)
    records[i].index = i;
  PointSummary s = summarize(records, classes, window_ms(epoch_ms, epoch_ms + 1000));
  EXPECT_EQ(s.overall.latency.ttft.n, 1u);
  EXPECT_EQ(s.overall.scheduled, 100u);
  EXPECT_NEAR(*s.overall.latency.ttft.max, 89'500, 1e-6);
  EXPECT_FALSE(s.overall.latency.ttft.p99);
  EXPECT_TRUE(judge_point(records, s, {}, {}, classes, {}).valid());

  records[0].first_token = TimePoint();  // a zero default: the point is INVALID, the request is named, no figure moves
  s = summarize(records, classes, window_ms(epoch_ms, epoch_ms + 1000));
  EXPECT_EQ(s.overall.latency.ttft.n, 0u);
  const Verdict v = judge_point(records, s, {}, {}, classes, {});
  EXPECT_EQ(v.reasons, std::vector<std::string>{"clock"});
  EXPECT_NE(v.evidence[0].find("request 0"), std::string::npos);
}

// Ten requests a second for a client that holds one connection and a server that takes half a second.
TEST(Cases, Case36ClientQueueUnderCap) {
  std::vector<RequestRecord> records;
  for (int i = 0; i < 8; ++i) {
    RequestRecord r = stream({{500 + 400.0 * i, 1}}, 100.0 * i);
    r.index = static_cast<uint64_t>(i);
    r.dispatched = at_ms(500.0 * i);
    records.push_back(r);
  }
  const ClassRule classes[] = {rule({})};
  const PointSummary s = summarize(records, classes, window_ms(0, 800));
  double delay = 0, latency = 0;
  for (const auto& r : records) {
    delay += to_seconds(*dispatch_delay(r)) / 8;
    latency += to_seconds(*e2e(r)) / 8;
    EXPECT_EQ(ttft_service(r), milliseconds(500));
  }
  EXPECT_NEAR(delay, 1.4, 1e-9);
  EXPECT_NEAR(latency, 1.9, 1e-9);
  EXPECT_DOUBLE_EQ(*s.dispatch_delay.max, 2800);
  EXPECT_DOUBLE_EQ(*s.overall.latency.e2e.max, 3300);
  EXPECT_DOUBLE_EQ(*s.achieved_rate, 2.0);
  EXPECT_DOUBLE_EQ(s.offered_rate, 10.0);
  EXPECT_EQ(judge_point(records, s, {}, {}, classes, {}).reasons, std::vector<std::string>{"load_not_delivered"});
}

TEST(Cases, Case38OpeningWave) {
  std::vector<RequestRecord> records;
  for (int i = 0; i < 10; ++i)
    records.push_back(stream({{50'000, 1}}));
  for (int second = 0; second < 9; ++second)
    for (int i = 0; i < 10; ++i)
      records.push_back(stream({{1000, 1}}, 50'000 + 1000.0 * second));
  std::vector<double> whole, after;
  const OpeningWave wave = opening_wave(records, Nanos(0));
  for (const auto& r : records) {
    whole.push_back(to_seconds(*ttft(r)));
    if (r.scheduled >= wave.end)
      after.push_back(whole.back());
  }
  EXPECT_EQ(wave.requests, 10u);
  std::ranges::sort(whole);
  std::ranges::sort(after);
  EXPECT_EQ(percentile(whole, 0.5), 1.0);
  EXPECT_EQ(percentile(whole, 0.9), 1.0);
  EXPECT_EQ(percentile(whole, 0.95), 50.0);
  EXPECT_EQ(percentile(whole, 0.99), 50.0);
  EXPECT_EQ(after.size(), 90u);
  EXPECT_EQ(percentile(after, 0.99), 1.0);
}

TEST(Cases, Case40ReconcileCounts) {
  std::vector<RequestRecord> records(36'394, steady_stream(0, 100, 20, 2));
  for (size_t i = 0; i < records.size(); ++i)
    records[i].index = i;
  const ClassRule classes[] = {rule({})};
  const PointSummary s = summarize(records, classes, window_ms(0, 1000));
  VerdictRules rules;
  rules.scheduled = 40'000;
  EXPECT_EQ(judge_point(records, s, {}, {}, classes, rules).reasons, std::vector<std::string>{"unaccounted"});
}

TEST(Cases, Case41PercentilesFromFewSamples) {
  for (const auto& [n, share] : {std::pair{15, 0.14}, {100, 0.63}, {299, 0.95}}) {
    EXPECT_NEAR(1 - std::pow(0.99, n), share, 0.005);
    std::vector<double> values(static_cast<size_t>(n), 0.0463);
    const Percentiles p = percentiles(values);
    EXPECT_EQ(p.p99.has_value(), n >= 299);
    EXPECT_EQ(p.n, static_cast<size_t>(n));
  }
  EXPECT_EQ(min_samples(0.95), 59u);
  EXPECT_EQ(min_samples(0.90), 29u);
}

// Decode gaps of 15 ms; q long prompts a second freeze every stream for half a second.
TEST(Cases, Case43MixedLoadStallVisibility) {
  for (const auto& [q, share, visible] : {std::tuple{0.25, 0.0043, false}, {0.5, 0.0099, false}, {1.0, 0.029, true}}) {
    const int seconds_run = 80, stalls_made = static_cast<int>(q * seconds_run);
    const int plain = static_cast<int>((seconds_run - 0.5 * stalls_made) / 0.015);
    EXPECT_NEAR(static_cast<double>(stalls_made) / (plain + stalls_made), share, 0.0006);
    std::vector<testing::Chunk> chunks{{100}};
    const int every = plain / stalls_made;
    for (int i = 1; i <= plain; ++i) {
      chunks.push_back({chunks.back().at_ms + 15});
      if (i % every == 0 && i / every <= stalls_made)
        chunks.push_back({chunks.back().at_ms + 515});
    }
    std::vector<RequestRecord> records(300, stream(chunks));
    ClassRule chat = rule({});
    chat.stall_limit = milliseconds(100);
    const ClassRule classes[] = {chat};
    const PointSummary s = summarize(records, classes, window_ms(0, 1000));
    EXPECT_NEAR(*s.overall.latency.itl.p50, 15, 0.001);
    EXPECT_NEAR(*s.overall.latency.itl.p99, visible ? 515 : 15, 0.001) << q;
    // What the p99 hides, these two show.
    EXPECT_NEAR(*s.overall.latency.max_gap.p50, 515, 0.001);
    EXPECT_EQ(*s.overall.stalls, 300u * static_cast<uint64_t>(stalls_made));
  }
}

TEST(Cases, Case44WarmPrefixCache) {
  const std::vector<RequestRecord> records{steady_stream(0, 100, 20, 2)};
  const ClassRule classes[] = {rule({})};
  const PointSummary s = summarize(records, classes, window_ms(0, 1000));
  Observed seen;
  seen.prefix_query_tokens = 1'024'000;
  seen.prefix_hit_tokens = 880'000;
  VerdictRules rules;
  rules.expected_hit_rate = 0;
  const Verdict v = judge_point(records, s, seen, {}, classes, rules);
  EXPECT_EQ(v.reasons, std::vector<std::string>{"warm_cache"});
  EXPECT_NE(v.evidence[0].find("85.9 %"), std::string::npos);
}

TEST(Cases, Case46OutputLengthNotHonoured) {
  std::vector<RequestRecord> records;
  for (const int n : {43, 51, 512, 38, 512}) {
    records.push_back(steady_stream(0, 100, 20, n));
    records.back().asked_output = Tokens(512);
  }
  const ClassRule classes[] = {rule({})};
  const PointSummary s = summarize(records, classes, window_ms(0, 1000));
  EXPECT_DOUBLE_EQ(*s.asked_output_mean, 512);
  EXPECT_DOUBLE_EQ(*s.output_mean, 231.2);
  EXPECT_EQ(s.length_checked - s.wrong_length, 2u);
  const Verdict v = judge_point(records, s, {}, {}, classes, {});
  EXPECT_EQ(v.reasons, std::vector<std::string>{"wrong_length"});
  EXPECT_NE(v.evidence[0].find("40.0 %"), std::string::npos);
  EXPECT_EQ(s.overall.latency.tpot.n, 5u);  // latencies stay usable
}

TEST(Cases, Case56AbandonedRequests) {
  std::vector<RequestRecord> records;
  for (int i = 0; i < 8; ++i)
    records.push_back(steady_stream(i, 9000, 20, 5));
  for (int i = 0; i < 2; ++i)
    records.push_back(failed(Outcome::kCancelled, i, 10'000));
  const ClassRule classes[] = {rule({"ttft:9500"})};
  const PointSummary s = summarize(records, classes, window_ms(0, 1000));
  EXPECT_DOUBLE_EQ(s.overall.attainment->value, 0.8);  // kept, not good
  EXPECT_EQ(s.overall.ttft_censored, 2u);
  EXPECT_EQ(censored_ttft(records[9]), seconds(10));
  EXPECT_EQ(s.overall.latency.ttft.n, 8u);
}

}  // namespace
}  // namespace goodput
