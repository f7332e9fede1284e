// Each reason for which a point is INVALID, on both sides of its threshold.
#include <gtest/gtest.h>

#include "metrics/request_metrics.h"
#include "metrics/test_records.h"

namespace goodput {
namespace {

using testing::failed;
using testing::rule;
using testing::steady_stream;
using testing::stream;
using testing::window_ms;

// A point that nothing is wrong with; tests spoil one thing.
struct Point {
  std::vector<RequestRecord> records;
  std::vector<ClassRule> classes{rule({"ttft:200", "itl:40"})};
  ClientAudit audit;
  VerdictRules rules;
  Observed seen;

  explicit Point(int n = 400) {
    for (int i = 0; i < n; ++i) {
      records.push_back(steady_stream(10.0 * i, 100, 20, 5));
      records.back().index = static_cast<uint64_t>(i);
      for (TokenEvent& e : records.back().events)
        e.kernel = e.user - microseconds(50);
    }
    rules.scheduled = static_cast<uint64_t>(n);
    audit.server_before = audit.server_after = "tiny 1";
  }
  Verdict verdict() const {
    const PointSummary s = summarize(records, classes, window_ms(0, 10.0 * static_cast<double>(records.size())));
    return judge_point(records, s, seen, audit, classes, rules);
  }
  std::vector<std::string> reasons() const { return verdict().reasons; }
};
using Reasons = std::vector<std::string>;

TEST(Verdict, ACleanPointIsValid) {
  const Verdict v = Point().verdict();
  EXPECT_TRUE(v.valid());
  EXPECT_TRUE(v.evidence.empty());
}

TEST(Verdict, ClientBoundByItsLoop) {
  Point p;
  p.audit.loop_busy_share = 0.80;
  EXPECT_TRUE(p.verdict().valid());
  p.audit.loop_busy_share = 0.801;
  EXPECT_EQ(p.reasons(), Reasons{"client_bound"});
}

TEST(Verdict, ClientBoundByReadLagOnlyWhereUserStampsAreUsed) {
  Point p;
  const auto lag = [&](double ms) {
    for (auto& r : p.records)
      for (TokenEvent& e : r.events)
        if (e.kernel)
          e.kernel = e.user - from_ms(ms);
  };
  lag(2.01);  // 5 % of 40 ms is 2 ms
  EXPECT_TRUE(p.verdict().valid());
  p.records[0].events[0].kernel.reset();
  EXPECT_EQ(p.reasons(), Reasons{"client_bound"});
  lag(2.0);
  EXPECT_TRUE(p.verdict().valid());
  lag(50);
  p.classes = {rule({"ttft:200"})};  // no ITL target to compare with
  EXPECT_TRUE(p.verdict().valid());
}

TEST(Verdict, Contended) {
  Point p;
  p.audit.wait_share = p.audit.server_wait_share = 0.02;
  EXPECT_TRUE(p.verdict().valid());
  p.audit.wait_share = 0.021;
  EXPECT_EQ(p.reasons(), Reasons{"contended"});
  p.audit.wait_share.reset();
  EXPECT_TRUE(p.verdict().valid());
  p.audit.server_wait_share = 0.021;
  EXPECT_EQ(p.reasons(), Reasons{"contended"});
}

void delay(RequestRecord& r, double ms) { r.dispatched = r.scheduled + from_ms(ms); }

TEST(Verdict, LoadNotDelivered) {
  Point p;  // 400 requests: four late ones are allowed; late is later than max(5, 5 % of 200) = 10 ms
  for (size_t i = 0; i < 4; ++i)
    delay(p.records[i], 50);
  for (size_t i = 4; i < 100; ++i)
    delay(p.records[i], 10);
  EXPECT_TRUE(p.verdict().valid());
  delay(p.records[4], 10.001);
  EXPECT_EQ(p.reasons(), Reasons{"load_not_delivered"});
  p.rules.open_loop = false;
  EXPECT_TRUE(p.verdict().valid());
}

TEST(Verdict, LoadNotDeliveredInASmallPointAllowsTwo) {
  Point p(20);
  p.classes = {rule({"ttft:20"})};  // 5 % is 1 ms: the 5 ms count
  for (size_t i = 0; i < 10; ++i)
    delay(p.records[i], 5);
  delay(p.records[0], 6);
  p.records[1] = failed(Outcome::kNotSent, 10, 0);  // never is late
  p.records[1].index = 1;
  EXPECT_TRUE(p.verdict().valid());
  delay(p.records[2], 5.001);
  EXPECT_EQ(p.reasons(), Reasons{"load_not_delivered"});
}

TEST(Verdict, WarmCache) {
  Point p;
  p.seen.prefix_hit_rate = 0.26;
  EXPECT_TRUE(p.verdict().valid());  // nothing is known of the schedule
  p.rules.expected_hit_rate = 0.25;
  EXPECT_TRUE(p.verdict().valid());
  p.seen.prefix_hit_rate = 0.2601;
  EXPECT_EQ(p.reasons(), Reasons{"warm_cache"});
  p.seen.prefix_hit_rate.reset();
  EXPECT_TRUE(p.verdict().valid());
  p.seen.prefix_query_tokens = 1000;
  p.seen.prefix_hit_tokens = 270;
  EXPECT_EQ(p.reasons(), Reasons{"warm_cache"});
  p.seen = {};
  for (auto& r : p.records)
    r.cached_tokens = Tokens(3);  // usage says 30 %
  EXPECT_EQ(p.reasons(), Reasons{"warm_cache"});
  p.rules.expected_hit_rate = 0.30;
  EXPECT_TRUE(p.verdict().valid());
}

TEST(Verdict, Unaccounted) {
  Point p;
  p.records.pop_back();
  EXPECT_EQ(p.reasons(), Reasons{"unaccounted"});
  p.records.push_back(p.records.front());  // one twice, one missing
  EXPECT_EQ(p.reasons(), Reasons{"unaccounted"});
  Point more;
  more.rules.scheduled = 399;
  EXPECT_EQ(more.reasons(), Reasons{"unaccounted"});
  more.rules.scheduled.reset();
  EXPECT_TRUE(more.verdict().valid());
}

TEST(Verdict, WrongLength) {
  Point p;
  for (size_t i = 0; i < 20; ++i)
    p.records[i].asked_output = Tokens(6);
  EXPECT_TRUE(p.verdict().valid());  // 95 % exactly
  p.records[20].asked_output = Tokens(6);
  EXPECT_EQ(p.reasons(), Reasons{"wrong_length"});
  p.records[20].output_tokens.reset();  // unknown lengths are no evidence
  p.records[21].asked_output = Tokens(0);
  p.records[19].asked_output = Tokens(5);
  EXPECT_TRUE(p.verdict().valid());
}

TEST(Verdict, BufferedOnlyWhenTheProbeConfirmedIt) {
  Point p;
  for (auto& r : p.records) {
    const auto index = r.index;
    r = stream({{100, 20}}, to_ms(r.scheduled.since_zero()));
    r.index = index;
  }
  EXPECT_TRUE(p.verdict().valid());
  mark_buffered(p.records);
  EXPECT_EQ(p.reasons(), Reasons{"buffered"});
}

TEST(Verdict, ServerChanged) {
  Point p;
  p.audit.server_after = "tiny 2";
  const Verdict v = p.verdict();
  EXPECT_EQ(v.reasons, Reasons{"server_changed"});
  EXPECT_NE(v.evidence.at(0).find("'tiny 1' before the run and 'tiny 2'"), std::string::npos);
}

TEST(Verdict, ClockStepped) {
  Point p;
  p.audit.clock_stepped = true;
  EXPECT_EQ(p.reasons(), Reasons{"clock"});
}

TEST(Verdict, AnEventBeforeItsCauseIsTheClock) {
  const auto with = [](auto spoil) {
    Point p;
    spoil(p.records[7]);
    return p.verdict();
  };
  const auto clock = [&](auto spoil) {
    const Verdict v = with(spoil);
    const bool named = !v.evidence.empty() && v.evidence[0].find("request 7:") == 0;
    return v.reasons == Reasons{"clock"} && named;
  };
  const Nanos one(1);
  EXPECT_TRUE(
      with([](RequestRecord& r) { r.connected = r.sent = r.dispatched = r.first_chunk = r.scheduled; }).valid());
  EXPECT_TRUE(clock([&](RequestRecord& r) { r.dispatched = r.scheduled - one; }));
  EXPECT_TRUE(clock([&](RequestRecord& r) { r.connected = *r.dispatched - one; }));
  EXPECT_TRUE(clock([&](RequestRecord& r) { r.sent = *r.dispatched - one; }));
  EXPECT_TRUE(clock([&](RequestRecord& r) { r.first_chunk = *r.dispatched - one; }));
  EXPECT_TRUE(clock([&](RequestRecord& r) { r.first_token = *r.dispatched - one; }));
  EXPECT_TRUE(clock([&](RequestRecord& r) { r.first_answer = *r.first_token - one; }));
  EXPECT_TRUE(clock([&](RequestRecord& r) { r.done = *r.first_token - one; }));
  EXPECT_TRUE(clock([&](RequestRecord& r) { r.closed = *r.done - milliseconds(2); }));
  EXPECT_TRUE(clock([&](RequestRecord& r) { r.events[0].user = -one, r.events[0].kernel.reset(); }));
  EXPECT_TRUE(clock([&](RequestRecord& r) { r.events[2].user = r.events[1].user - one, r.events[2].kernel.reset(); }));
  EXPECT_TRUE(clock([&](RequestRecord& r) { r.events[2].kernel = r.events[1].kernel.value() - one; }));
  // The clocks of the two stamps may differ by their slewing, not by more.
  EXPECT_TRUE(with([](RequestRecord& r) { r.events[2].kernel = r.events[2].user + milliseconds(1); }).valid());
  EXPECT_TRUE(clock([&](RequestRecord& r) { r.events[2].kernel = r.events[2].user + milliseconds(1) + one; }));
}

TEST(Verdict, EveryReasonIsGiven) {
  Point p;
  p.audit.loop_busy_share = 1;
  p.audit.wait_share = 1;
  p.audit.clock_stepped = true;
  p.audit.server_after.clear();
  p.rules.expected_hit_rate = 0;
  p.rules.scheduled = 7;
  p.seen.prefix_hit_rate = 1;
  for (auto& r : p.records) {
    const auto index = r.index;
    r = stream({{100, 20}}, to_ms(r.scheduled.since_zero()));
    r.index = index;
    r.asked_output = Tokens(21);
    delay(r, 90);
  }
  mark_buffered(p.records);
  const Verdict v = p.verdict();
  EXPECT_EQ(v.reasons, (Reasons{"client_bound", "contended", "load_not_delivered", "warm_cache", "unaccounted",
                                "wrong_length", "buffered", "server_changed", "clock"}));
  EXPECT_EQ(v.evidence.size(), v.reasons.size());
}

}  // namespace
}  // namespace goodput
