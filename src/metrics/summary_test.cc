// A point from its records: cohort, denominators, throughput, regime, gauges.
#include "metrics/summary.h"

#include <cmath>
#include <queue>

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "base/random.h"
#include "metrics/test_records.h"

namespace goodput {
namespace {

using testing::at_ms;
using testing::failed;
using testing::rule;
using testing::steady_stream;
using testing::stream;
using testing::window_ms;

TEST(Summary, EmptyIsAbsentAndNeverNan) {
  const ClassRule classes[] = {rule({"ttft:100"})};
  for (const Window w : {window_ms(0, 1000), window_ms(500, 500), window_ms(500, 100)}) {
    const PointSummary s = summarize({}, classes, w);
    EXPECT_EQ(s.requests, 0u);
    EXPECT_EQ(s.offered_rate, 0);
    EXPECT_FALSE(s.achieved_rate);
    EXPECT_FALSE(s.overall.attainment);
    EXPECT_FALSE(s.by_class.at(0).attainment);
    EXPECT_EQ(s.goodput_rps, 0);
    EXPECT_EQ(s.throughput.total_tokens_per_s, 0);
    EXPECT_FALSE(s.overall.latency.ttft.max);
    EXPECT_EQ(s.regime, Regime::kUnknown);
    EXPECT_EQ(s.kernel_stamp_share, 0);
  }
}

TEST(Summary, TheCohortIsWhatWasScheduledInTheWindow) {
  const ClassRule classes[] = {rule({"ttft:100"})};
  const std::vector<RequestRecord> records{steady_stream(999, 50, 10, 5),  // before: not counted, though it ends inside
                                           steady_stream(1000, 50, 10, 5),   // the start belongs to the window
                                           steady_stream(1999, 50, 10, 5),   // ends after it: counted all the same
                                           steady_stream(2000, 50, 10, 5)};  // the end does not
  const PointSummary s = summarize(records, classes, window_ms(1000, 2000));
  EXPECT_EQ(s.requests, 2u);
  EXPECT_EQ(s.overall.good, 2u);
  EXPECT_DOUBLE_EQ(s.offered_rate, 2);
  EXPECT_DOUBLE_EQ(s.goodput_rps, 2);
  EXPECT_DOUBLE_EQ(s.token_goodput, 10);
  EXPECT_EQ(s.overall.latency.ttft.n, 2u);
}

TEST(Summary, FailuresStayInTheDenominatorAndOutOfLatencies) {
  const ClassRule classes[] = {rule({"ttft:100"})};
  std::vector<RequestRecord> records{steady_stream(0, 50, 10, 5)};
  for (int o = 1; o < kOutcomes; ++o)
    records.push_back(failed(static_cast<Outcome>(o), o, 5000));
  const PointSummary s = summarize(records, classes, window_ms(0, 1000));
  EXPECT_EQ(s.overall.scheduled, 8u);
  EXPECT_EQ(s.overall.good, 1u);
  EXPECT_DOUBLE_EQ(s.overall.attainment->value, 0.125);
  EXPECT_EQ(s.overall.latency.e2e.n, 1u);
  for (const uint64_t n : s.outcomes)
    EXPECT_EQ(n, 1u);
  EXPECT_EQ(s.overall.ttft_censored, 2u);  // cancelled and timeout without a token
}

TEST(Summary, ClassesAndInteractiveGoodput) {
  const ClassRule classes[] = {rule({"ttft:100"}, "chat"), rule({"e2el:1000"}, "background"), rule({}, "free")};
  std::vector<RequestRecord> records;
  for (int i = 0; i < 10; ++i) {
    records.push_back(steady_stream(i, i < 7 ? 50 : 150, 10, 5));
    records.back().cls = 0;
    records.push_back(steady_stream(i, 500, 10, 11));
    records.back().cls = 1;
  }
  records.push_back(steady_stream(20, 9000, 10, 5));
  records.back().cls = 2;
  records.push_back(steady_stream(20, 50, 10, 5));
  records.back().cls = 9;  // no such class: nothing leaves the denominator
  const PointSummary s = summarize(records, classes, window_ms(0, 2000));
  ASSERT_EQ(s.by_class.size(), 3u);
  EXPECT_EQ(s.by_class[0].name, "chat");
  EXPECT_DOUBLE_EQ(s.by_class[0].attainment->value, 0.7);
  EXPECT_DOUBLE_EQ(s.by_class[1].attainment->value, 1.0);
  EXPECT_DOUBLE_EQ(s.by_class[2].attainment->value, 1.0);
  EXPECT_EQ(s.overall.scheduled, 22u);
  EXPECT_EQ(s.overall.good, 18u);
  EXPECT_DOUBLE_EQ(s.goodput_rps, 9);
  EXPECT_DOUBLE_EQ(s.interactive_goodput_rps, 3.5);
  EXPECT_EQ(s.by_class[0].latency.ttft.n, 10u);
  EXPECT_EQ(*s.by_class[0].latency.ttft.p50, 50);
  EXPECT_EQ(*s.overall.latency.ttft.max, 9000);
}

TEST(Summary, NotMeasurableIsAbsentNotPerfect) {
  const ClassRule classes[] = {rule({"ttft:100"}, "chat"), rule({"e2el:1000"}, "background")};
  std::vector<RequestRecord> records{steady_stream(0, 50, 10, 5), steady_stream(1, 50, 10, 5)};
  for (auto& r : records)
    r.streamed = false, r.events.clear();
  records[1].cls = 1;
  const PointSummary s = summarize(records, classes, window_ms(0, 1000));
  EXPECT_FALSE(s.overall.attainment);
  EXPECT_FALSE(s.by_class[0].attainment);
  EXPECT_DOUBLE_EQ(s.by_class[1].attainment->value, 1);
  EXPECT_EQ(s.overall.unmeasurable, 1u);
}

TEST(Summary, AchievedRateAndDispatchDelay) {
  std::vector<RequestRecord> records;
  for (int i = 0; i < 8; ++i) {
    records.push_back(steady_stream(100 * i, 450, 50, 2));
    records.back().dispatched = at_ms(110 * i);
  }
  records.push_back(failed(Outcome::kNotSent, 750, 0));
  const ClassRule classes[] = {rule({})};
  const PointSummary s = summarize(records, classes, window_ms(0, 1000));
  EXPECT_DOUBLE_EQ(*s.achieved_rate, 7 / 0.77);
  EXPECT_DOUBLE_EQ(s.offered_rate, 9);
  EXPECT_EQ(s.dispatch_delay.n, 8u);
  EXPECT_DOUBLE_EQ(*s.dispatch_delay.max, 70);
  const PointSummary one = summarize({records.data(), 1}, classes, window_ms(0, 1000));
  EXPECT_FALSE(one.achieved_rate);
}

TEST(Summary, ThroughputCountsWhatWasDeliveredInTheWindow) {
  const ClassRule classes[] = {rule({})};
  // Tokens at 900, 1000, …, 1400, of which 5 lie in [1000, 1500); the first token, and with it the prompt, does not.
  std::vector<RequestRecord> records{steady_stream(800, 100, 100, 6)};
  PointSummary s = summarize(records, classes, window_ms(1000, 1500));
  EXPECT_DOUBLE_EQ(s.throughput.requests_per_s, 2);
  EXPECT_DOUBLE_EQ(s.throughput.input_tokens_per_s, 0);
  EXPECT_DOUBLE_EQ(s.throughput.output_tokens_per_s, 10);
  EXPECT_DOUBLE_EQ(s.throughput.total_tokens_per_s, 10);
  s = summarize(records, classes, window_ms(850, 1350));
  EXPECT_DOUBLE_EQ(s.throughput.requests_per_s, 0);
  EXPECT_DOUBLE_EQ(s.throughput.input_tokens_per_s, 20);
  EXPECT_DOUBLE_EQ(s.throughput.output_tokens_per_s, 10);
  EXPECT_DOUBLE_EQ(s.throughput.total_tokens_per_s, 30);

  // Unknown counts per event: the known total is spread over the events.
  records = {stream({{100, 0}, {200, 0}, {300, 0}, {400, 0}})};
  records[0].output_tokens = Tokens(40);
  EXPECT_DOUBLE_EQ(summarize(records, classes, window_ms(0, 250)).throughput.output_tokens_per_s, 80);

  // Without streaming everything comes with the answer.
  records = {steady_stream(0, 400, 0, 1)};
  records[0].events.clear();
  records[0].streamed = false;
  records[0].first_token.reset();
  records[0].output_tokens = Tokens(7);
  s = summarize(records, classes, window_ms(0, 500));
  EXPECT_DOUBLE_EQ(s.throughput.output_tokens_per_s, 14);
  EXPECT_DOUBLE_EQ(s.throughput.input_tokens_per_s, 20);
}

TEST(Summary, TokensOfFailuresAreALineOfTheirOwn) {
  const ClassRule classes[] = {rule({})};
  std::vector<RequestRecord> records{steady_stream(0, 100, 10, 5)};
  records[0].outcome = Outcome::kReset;
  const PointSummary s = summarize(records, classes, window_ms(0, 1000));
  EXPECT_DOUBLE_EQ(s.throughput.output_tokens_per_s, 0);
  EXPECT_DOUBLE_EQ(s.throughput.requests_per_s, 0);
  EXPECT_DOUBLE_EQ(s.throughput.failed_output_tokens_per_s, 5);
}

TEST(Summary, StampsAndReadLag) {
  const ClassRule classes[] = {rule({})};
  std::vector<RequestRecord> records{stream({{100}, {110}, {110}, {120}})};
  records[0].events[0].kernel = from_ms(99);
  records[0].events[2].kernel = from_ms(107);
  const PointSummary s = summarize(records, classes, window_ms(0, 1000));
  EXPECT_DOUBLE_EQ(s.kernel_stamp_share, 0.75);  // the read at 110 is stamped, both its events count
  EXPECT_EQ(s.read_lag.n, 2u);
  EXPECT_DOUBLE_EQ(*s.read_lag.max, 3);
}

TEST(Summary, FirstCountsAreFlagged) {
  const ClassRule classes[] = {rule({})};
  std::vector<RequestRecord> records{stream({{100, 0}, {110, 0}}), stream({{100, 2}, {110, 1}}),
                                     stream({{100, 9}, {110, 1}})};
  records[0].output_tokens = Tokens(7);
  records[2].output_tokens = Tokens(4);
  const PointSummary s = summarize(records, classes, window_ms(0, 1000));
  EXPECT_EQ(s.first_count_unknown, 2u);
  EXPECT_EQ(s.first_count_mismatch, 1u);
}

TEST(Summary, StallsAreCountedWhereALimitIsGiven) {
  ClassRule classes[] = {rule({}), rule({})};
  classes[0].stall_limit = milliseconds(100);
  std::vector<RequestRecord> records{stream({{0}, {50}, {200}, {500}}), stream({{0}, {900}})};
  records[1].cls = 1;
  const PointSummary s = summarize(records, classes, window_ms(0, 1000));
  EXPECT_EQ(s.by_class[0].stalls, 2u);
  EXPECT_FALSE(s.by_class[1].stalls);
  EXPECT_EQ(s.overall.stalls, 2u);
}

TEST(Summary, ItlIsWeighedByTokensAndIclIsNot) {
  const ClassRule classes[] = {rule({})};
  std::vector<RequestRecord> records;
  for (int i = 0; i < 5; ++i)
    records.push_back(stream({{100, 1}, {140, 4}, {180, 1}}, i));
  const PointSummary s = summarize(records, classes, window_ms(0, 1000));
  EXPECT_EQ(*s.overall.latency.icl.p50, 40);
  EXPECT_EQ(*s.overall.latency.itl.p50, 10);
  EXPECT_EQ(*s.overall.latency.itl.max, 40);
  EXPECT_EQ(s.overall.latency.itl.n, 5u);
}

// Records as a load generator would make them, on a grid of milliseconds.
std::vector<RequestRecord> arbitrary_records() {
  Random random(*rc::gen::arbitrary<uint64_t>(), "records");
  std::vector<RequestRecord> records;
  const int n = *rc::gen::inRange(0, 60);
  for (int i = 0; i < n; ++i) {
    const auto scheduled = static_cast<double>(random.uniform_int(0, 4000));
    RequestRecord r;
    if (random.uniform() < 0.2) {
      r = failed(static_cast<Outcome>(random.uniform_int(1, kOutcomes - 1)), scheduled,
                 static_cast<double>(random.uniform_int(1, 3000)));
    } else {
      std::vector<testing::Chunk> chunks{{static_cast<double>(random.uniform_int(1, 500))}};
      for (int64_t k = random.uniform_int(0, 20); k > 0; --k)
        chunks.push_back({chunks.back().at_ms + static_cast<double>(random.uniform_int(0, 60)),
                          static_cast<uint16_t>(random.uniform_int(random.uniform() < 0.1 ? 0 : 1, 3))});
      r = stream(chunks, scheduled);
      if (random.uniform() < 0.3)
        for (TokenEvent& e : r.events)
          e.kernel = e.user - milliseconds(random.uniform_int(0, 1));
      if (random.uniform() < 0.1)
        r.output_tokens.reset();
    }
    r.index = static_cast<uint64_t>(i);
    r.cls = static_cast<uint16_t>(random.uniform_int(0, 1));
    records.push_back(std::move(r));
  }
  return records;
}

void same_numbers(const PointSummary& a, const PointSummary& b) {
  RC_ASSERT(a.requests == b.requests);
  RC_ASSERT(a.offered_rate == b.offered_rate);
  RC_ASSERT(a.achieved_rate == b.achieved_rate);
  RC_ASSERT(a.goodput_rps == b.goodput_rps);
  RC_ASSERT(a.token_goodput == b.token_goodput);
  RC_ASSERT(a.interactive_goodput_rps == b.interactive_goodput_rps);
  RC_ASSERT(a.throughput.total_tokens_per_s == b.throughput.total_tokens_per_s);
  RC_ASSERT(a.throughput.failed_output_tokens_per_s == b.throughput.failed_output_tokens_per_s);
  RC_ASSERT(a.outcomes == b.outcomes);
  RC_ASSERT(a.regime == b.regime);
  RC_ASSERT(a.dispatch_delay == b.dispatch_delay);
  RC_ASSERT(a.read_lag == b.read_lag);
  RC_ASSERT(a.overall.latency == b.overall.latency);
  for (size_t c = 0; c < a.by_class.size(); ++c) {
    RC_ASSERT(a.by_class[c].latency == b.by_class[c].latency);
    RC_ASSERT(a.by_class[c].good == b.by_class[c].good);
    RC_ASSERT(a.by_class[c].not_applicable == b.by_class[c].not_applicable);
  }
}

void move_times(RequestRecord& r, auto&& point, auto&& length) {
  r.scheduled = point(r.scheduled);
  for (auto* t :
       {&r.dispatched, &r.connected, &r.sent, &r.first_chunk, &r.first_token, &r.first_answer, &r.done, &r.closed})
    if (*t)
      *t = point(**t);
  for (TokenEvent& e : r.events) {
    e.user = length(e.user);
    if (e.kernel)
      e.kernel = length(*e.kernel);
  }
}

const std::vector<std::string> kTargets{"ttft:200", "tpot:20", "itl:40", "max_gap:55"};

TEST(SummaryProperty, TheOrderOfRecordsCannotShow) {
  EXPECT_TRUE(rc::check([] {
    const ClassRule classes[] = {rule(kTargets), rule({"e2el:600"})};
    auto records = arbitrary_records();
    const PointSummary before = summarize(records, classes, window_ms(500, 3500));
    Random random(*rc::gen::arbitrary<uint64_t>(), "shuffle");
    for (size_t i = records.size(); i > 1; --i)
      std::swap(records[i - 1], records[static_cast<size_t>(random.uniform_int(0, static_cast<int64_t>(i) - 1))]);
    same_numbers(before, summarize(records, classes, window_ms(500, 3500)));
  }));
}

TEST(SummaryProperty, ShiftingTimeChangesNothing) {
  EXPECT_TRUE(rc::check([] {
    const ClassRule classes[] = {rule(kTargets), rule({"e2el:600"})};
    auto records = arbitrary_records();
    const PointSummary before = summarize(records, classes, window_ms(500, 3500));
    const Nanos shift(*rc::gen::inRange<int64_t>(-1'000'000'000'000, 1'000'000'000'000'000));
    for (auto& r : records)
      move_times(r, [&](TimePoint t) { return t + shift; }, [](Nanos d) { return d; });
    same_numbers(before, summarize(records, classes, {at_ms(500) + shift, at_ms(3500) + shift}));
  }));
}

TEST(SummaryProperty, TwiceTheTimeIsHalfTheRateAndTwiceTheLatency) {
  EXPECT_TRUE(rc::check([] {
    const ClassRule classes[] = {rule(kTargets), rule({"e2el:600"})};
    ClassRule slow[] = {classes[0], classes[1]};
    for (ClassRule& c : slow)
      for (auto& limit : c.targets.limit)
        if (limit)
          limit = *limit * 2;
    auto records = arbitrary_records();
    PointSummary s = summarize(records, classes, window_ms(500, 3500));
    for (auto& r : records)
      move_times(r, [](TimePoint t) { return TimePoint(t.since_zero() * 2); }, [](Nanos d) { return d * 2; });
    const PointSummary twice = summarize(records, slow, window_ms(1000, 7000));
    for (double* rate : {&s.offered_rate, &s.goodput_rps, &s.token_goodput, &s.interactive_goodput_rps,
                         &s.throughput.total_tokens_per_s, &s.throughput.failed_output_tokens_per_s})
      *rate /= 2;
    if (s.achieved_rate)
      *s.achieved_rate /= 2;
    const auto double_all = [](Percentiles& p) {
      for (auto* v : {&p.p50, &p.p95, &p.p99, &p.max})
        if (*v)
          **v *= 2;
    };
    double_all(s.dispatch_delay);
    double_all(s.read_lag);
    for (ClassSummary* c : {&s.overall, &s.by_class[0], &s.by_class[1]}) {
      LatencyTable& t = c->latency;
      for (Percentiles* p : {&t.ttft, &t.ttft_service, &t.tpot, &t.itl, &t.icl, &t.e2e, &t.ttfa, &t.max_gap})
        double_all(*p);
    }
    same_numbers(s, twice);
  }));
}

TEST(SummaryProperty, TheLightPathAgrees) {
  EXPECT_TRUE(rc::check([] {
    const ClassRule classes[] = {rule(kTargets), rule({"e2el:600"})};
    const auto records = arbitrary_records();
    const bool strict = *rc::gen::arbitrary<bool>();
    const PointSummary s = summarize(records, classes, window_ms(500, 3500), strict);
    const AttainmentOnly q = quick_attainment(records, classes, window_ms(500, 3500), strict);
    RC_ASSERT(q.overall.good == static_cast<double>(s.overall.good));
    RC_ASSERT(q.overall.scheduled == static_cast<double>(s.requests));
    for (size_t c = 0; c < 2; ++c)
      RC_ASSERT(q.by_class[c].good == static_cast<double>(s.by_class[c].good));
    RC_ASSERT(q.goodput_rps == s.goodput_rps);
    RC_ASSERT(q.token_goodput == s.token_goodput);
    RC_ASSERT(q.interactive_goodput_rps == s.interactive_goodput_rps);
    RC_ASSERT(q.regime == s.regime);
  }));
}

}  // namespace
}  // namespace goodput
