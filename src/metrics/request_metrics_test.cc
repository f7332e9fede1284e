// Each formula of one request, and each "absent when" of the definition page.
#include "metrics/request_metrics.h"

#include <gtest/gtest.h>

#include "metrics/test_records.h"

namespace goodput {
namespace {

using testing::at_ms;
using testing::failed;
using testing::steady_stream;
using testing::stream;

TEST(RequestMetrics, LatenciesCountFromTheScheduledTime) {
  RequestRecord r = steady_stream(1000, 100, 20, 11);
  r.dispatched = at_ms(1030);
  r.first_answer = at_ms(1160);
  EXPECT_EQ(ttft(r), milliseconds(100));
  EXPECT_EQ(ttft_service(r), milliseconds(70));
  EXPECT_EQ(ttfa(r), milliseconds(160));
  EXPECT_EQ(e2e(r), milliseconds(300));
  EXPECT_EQ(dispatch_delay(r), milliseconds(30));
  EXPECT_DOUBLE_EQ(*tpot_ns(r), 20e6);
}

TEST(RequestMetrics, TtftIsAbsentWithoutATokenOrWithoutStreaming) {
  RequestRecord r = steady_stream(0, 100, 20, 3);
  r.streamed = false;
  EXPECT_FALSE(ttft(r));
  EXPECT_FALSE(ttft_service(r));
  EXPECT_FALSE(ttfa(r));
  EXPECT_TRUE(e2e(r));
  const RequestRecord none = failed(Outcome::kError, 0, 50);
  EXPECT_FALSE(ttft(none));
  EXPECT_FALSE(ttft_service(none));
}

TEST(RequestMetrics, TtfaIsAbsentWithoutAnAnswerToken) {
  RequestRecord r = steady_stream(0, 100, 20, 3);
  r.first_answer.reset();
  EXPECT_FALSE(ttfa(r));
  EXPECT_TRUE(ttft(r));
}

TEST(RequestMetrics, E2eOfAFailureEndsWhenItWasKnown) {
  EXPECT_EQ(e2e(failed(Outcome::kReset, 10, 70)), milliseconds(70));
  EXPECT_EQ(e2e(failed(Outcome::kTimeout, 0, 120'000)), seconds(120));
  EXPECT_FALSE(e2e(failed(Outcome::kUnfinished, 0, 0)));
  EXPECT_FALSE(e2e(failed(Outcome::kNotSent, 0, 0)));
  // The end of the stream comes after the last token of an ok answer and is not part of it.
  RequestRecord r = steady_stream(0, 100, 20, 3);
  r.closed = at_ms(900);
  EXPECT_EQ(e2e(r), milliseconds(140));
}

TEST(RequestMetrics, NegativeTimesAreAbsent) {
  RequestRecord r = steady_stream(1000, 100, 20, 3);
  r.scheduled = at_ms(5000);
  EXPECT_FALSE(ttft(r));
  EXPECT_FALSE(e2e(r));
  EXPECT_FALSE(dispatch_delay(r));
  RequestRecord backwards = stream({{100}, {90}, {120}});
  EXPECT_TRUE(icl_gaps_ns(backwards).empty());
  EXPECT_TRUE(itl_gaps(backwards).empty());
  EXPECT_FALSE(max_gap(backwards));
}

TEST(RequestMetrics, TpotIsAbsentWhereItHasNothingToDivideOrIsUnknown) {
  EXPECT_FALSE(tpot_ns(stream({{100, 1}})));
  EXPECT_FALSE(tpot_ns(stream({{100, 8}})));  // all in the first event
  RequestRecord r = steady_stream(0, 100, 20, 5);
  r.output_tokens.reset();
  EXPECT_FALSE(tpot_ns(r));
  r = steady_stream(0, 100, 20, 5);
  r.buffered = true;
  EXPECT_FALSE(tpot_ns(r));
  r = steady_stream(0, 100, 20, 5);
  r.streamed = false;
  EXPECT_FALSE(tpot_ns(r));
}

TEST(RequestMetrics, TpotLeavesOutHiddenTokens) {
  RequestRecord r = steady_stream(0, 100, 20, 5);
  r.output_tokens = Tokens(105);
  r.hidden_tokens = Tokens(100);
  EXPECT_DOUBLE_EQ(*tpot_ns(r), 20e6);
  r.hidden_tokens.reset();
  EXPECT_FALSE(tpot_ns(r));
}

TEST(RequestMetrics, GapsNeedTwoDeliveries) {
  for (const RequestRecord& r : {stream({}), stream({{100, 4}})}) {
    EXPECT_TRUE(itl_gaps(r).empty());
    EXPECT_TRUE(icl_gaps_ns(r).empty());
    EXPECT_FALSE(itl_mean_ns(r));
    EXPECT_FALSE(itl_p95_ns(r));
    EXPECT_FALSE(icl_p95_ns(r));
    EXPECT_FALSE(max_gap(r));
    EXPECT_FALSE(jitter(r));
    EXPECT_FALSE(stalls(r, milliseconds(1)));
  }
}

TEST(RequestMetrics, ItlNeedsTokenCountsPerEvent) {
  RequestRecord r = stream({{100, 0}, {120, 0}, {160, 0}});
  r.output_tokens = Tokens(7);
  EXPECT_TRUE(itl_gaps(r).empty());
  EXPECT_EQ(icl_gaps_ns(r).size(), 2u);
  r.output_tokens = Tokens(3);  // as many events as tokens: one each
  ASSERT_EQ(itl_gaps(r).size(), 2u);
  EXPECT_DOUBLE_EQ(itl_gaps(r)[1].per_token_ns, 40e6);
}

TEST(RequestMetrics, EventsOfOneReadAreOneDelivery) {
  RequestRecord r = stream({{100}, {120}, {120}, {120}, {140}});
  for (size_t i = 1; i <= 3; ++i)
    r.events[i].coalesced = true;
  EXPECT_EQ(icl_gaps_ns(r), (std::vector<double>{20e6, 20e6}));
  const auto gaps = itl_gaps(r);
  ASSERT_EQ(gaps.size(), 2u);
  EXPECT_EQ(gaps[0].tokens, 3u);
  EXPECT_DOUBLE_EQ(*itl_mean_ns(r), 10e6);
  EXPECT_FALSE(max_gap(stream({{100}, {100}, {100}})));
}

TEST(RequestMetrics, KernelStampsServeOnlyWhereEveryDeliveryHasOne) {
  RequestRecord r = stream({{100}, {125}, {125}, {160}});
  r.events[0].kernel = from_ms(99);
  r.events[2].kernel = from_ms(119);  // the stamp of the read's last byte serves the whole read
  EXPECT_EQ(icl_gaps_ns(r), (std::vector<double>{25e6, 35e6}));
  r.events[3].kernel = from_ms(139);
  EXPECT_EQ(icl_gaps_ns(r), (std::vector<double>{20e6, 20e6}));
  EXPECT_EQ(event_time(r.events[3]), from_ms(139));
  EXPECT_EQ(event_time(r.events[1]), from_ms(125));
}

TEST(RequestMetrics, JitterMaxGapAndStalls) {
  std::vector<testing::Chunk> chunks{{0}};
  for (int i = 1; i <= 99; ++i)
    chunks.push_back({10.0 * i});
  chunks.push_back({990 + 500});
  const RequestRecord r = stream(chunks);
  EXPECT_EQ(max_gap(r), milliseconds(500));
  EXPECT_EQ(jitter(r), milliseconds(0));  // rank 99 of 100 gaps is still a plain one
  EXPECT_EQ(stalls(r, milliseconds(100)), 1);
  EXPECT_EQ(stalls(r, milliseconds(500)), 0);  // above, not at
}

TEST(RequestMetrics, CensoredTtftIsTheWaitOfWhoGaveUp) {
  EXPECT_EQ(censored_ttft(failed(Outcome::kCancelled, 5, 10'000)), seconds(10));
  EXPECT_EQ(censored_ttft(failed(Outcome::kTimeout, 5, 120'000)), seconds(120));
  EXPECT_FALSE(censored_ttft(failed(Outcome::kReset, 5, 100)));
  RequestRecord r = failed(Outcome::kCancelled, 0, 10'000);
  r.first_token = at_ms(700);
  EXPECT_FALSE(censored_ttft(r));
}

RequestRecord in_reads(int tokens, int reads) {
  std::vector<testing::Chunk> chunks;
  for (int i = 0; i < tokens; ++i) {
    const int read = i * reads / tokens;
    chunks.push_back({100.0 + 50 * read});
  }
  return stream(chunks);
}

TEST(RequestMetrics, BufferedLooksAtReadsAndNeedsTheProbe) {
  EXPECT_FALSE(looks_buffered(in_reads(8, 1)));  // more than 8 tokens
  EXPECT_TRUE(looks_buffered(in_reads(9, 1)));
  EXPECT_TRUE(looks_buffered(in_reads(9, 2)));
  EXPECT_FALSE(looks_buffered(in_reads(9, 3)));
  EXPECT_TRUE(looks_buffered(in_reads(128, 4)));
  EXPECT_FALSE(looks_buffered(in_reads(128, 5)));
  RequestRecord whole = in_reads(64, 1);
  whole.streamed = false;
  EXPECT_FALSE(looks_buffered(whole));

  const std::vector<RequestRecord> even{in_reads(20, 1), in_reads(20, 20), in_reads(4, 1)};
  EXPECT_FALSE(confirms_buffering(even));
  const std::vector<RequestRecord> most{in_reads(20, 1), in_reads(20, 20), in_reads(20, 2)};
  EXPECT_TRUE(confirms_buffering(most));
  EXPECT_FALSE(confirms_buffering({}));

  std::vector<RequestRecord> run{in_reads(20, 1), in_reads(20, 20)};
  EXPECT_FALSE(run[0].buffered);
  mark_buffered(run);
  EXPECT_TRUE(run[0].buffered);
  EXPECT_FALSE(run[1].buffered);
  EXPECT_FALSE(icl_p95_ns(in_reads(20, 1)));
}

TEST(RequestMetrics, ServerIntervals) {
  RequestRecord r;
  EXPECT_FALSE(server_intervals(r).inference);
  r.server.emplace();
  r.server->arrived = at_ms(0);
  r.server->queued = at_ms(2);
  r.server->scheduled = at_ms(10);
  r.server->first_token = at_ms(40);
  r.server->last_token = at_ms(100);
  const ServerIntervals i = server_intervals(r);
  EXPECT_EQ(i.tokenization, milliseconds(2));
  EXPECT_EQ(i.queue, milliseconds(8));
  EXPECT_EQ(i.prefill, milliseconds(30));
  EXPECT_EQ(i.decode, milliseconds(60));
  EXPECT_EQ(i.inference, milliseconds(90));
  r.server->first_token.reset();
  EXPECT_FALSE(server_intervals(r).prefill);
}

TEST(Record, NamesRoundTrip) {
  for (int o = 0; o < kOutcomes; ++o) {
    const auto outcome = static_cast<Outcome>(o);
    EXPECT_EQ(parse_outcome(to_string(outcome)), outcome);
  }
  EXPECT_FALSE(parse_outcome("OK"));
  EXPECT_FALSE(parse_outcome(""));
  EXPECT_EQ(to_string(ErrorKind::kTruncated), "truncated");
  EXPECT_EQ(to_string(FinishReason::kToolCalls), "tool_calls");
  EXPECT_EQ(to_string(TokenSource::kRunningUsage), "running_usage");
  EXPECT_EQ(to_string(Channel::kRefusal), "refusal");
}

}  // namespace
}  // namespace goodput
