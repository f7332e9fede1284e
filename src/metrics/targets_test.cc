// Targets as users type them, and when a request is good.
#include "metrics/targets.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "metrics/request_metrics.h"
#include "metrics/test_records.h"

namespace goodput {
namespace {

using testing::rule;
using testing::steady_stream;
using testing::stream;

Result<TargetSet> parse(std::vector<std::string> items) { return parse_targets(items); }
Goodness goodness(const RequestRecord& r, std::vector<std::string> targets, bool strict = false) {
  return judge(r, rule(std::move(targets)).targets, strict).goodness;
}

TEST(Targets, ParsesVllmSyntax) {
  const auto t = parse({"ttft:200", "tpot:40.5", "e2el:10000"});
  ASSERT_TRUE(t);
  EXPECT_EQ((*t)[TargetKey::kTtft], milliseconds(200));
  EXPECT_EQ((*t)[TargetKey::kTpot], microseconds(40'500));
  EXPECT_FALSE((*t)[TargetKey::kItl]);
  EXPECT_EQ(to_text(*t), "ttft:200 tpot:40.5 e2el:10000");
  EXPECT_TRUE(parse({})->empty());
  EXPECT_EQ(to_text({}), "");
}

TEST(Targets, InteractiveMeansATargetOnTokensTimes) {
  EXPECT_FALSE(parse({})->interactive());
  EXPECT_FALSE(parse({"e2el:100"})->interactive());
  for (const char* key : {"ttft", "ttfa", "tpot", "itl", "icl", "max_gap"})
    EXPECT_TRUE(parse({std::string(key) + ":1"})->interactive()) << key;
}

TEST(Targets, HostileInputIsRefusedByName) {
  for (const char* item :
       {"", ":", "ttft", "ttft:", "ttft:abc", "ttft:-1", "ttft:0", "ttft:nan", "ttft:inf", "ttft:1e300", "ttft:1e-9",
        "ttft:200ms", "ttft: 200", " ttft:200", "TTFT:200", "p99:3", "ttft:1:2"}) {
    const auto t = parse({item});
    ASSERT_FALSE(t) << item;
    EXPECT_EQ(t.error().code, ErrorCode::kUsage);
    EXPECT_NE(t.error().context.find(item), std::string::npos);
  }
  EXPECT_NE(parse({"e2e:5"}).error().message.find("did you mean 'e2el'"), std::string::npos);
  EXPECT_NE(parse({"ttft:5", "ttft:6"}).error().message.find("twice"), std::string::npos);
  EXPECT_FALSE(parse({std::string(100'000, 'x') + ":1"}));
}

TEST(Targets, TextRoundTrips) {
  EXPECT_TRUE(rc::check("to_text is parse_targets' inverse", [] {
    TargetSet t;
    for (auto& limit : t.limit)
      if (*rc::gen::arbitrary<bool>())
        limit = Nanos(*rc::gen::inRange<int64_t>(1, 1'000'000'000'000'000));
    std::vector<std::string> items;
    std::string text = to_text(t);
    for (size_t at = 0; !text.empty() && at != std::string::npos;) {
      const size_t end = text.find(' ', at);
      items.push_back(text.substr(at, end - at));
      at = end == std::string::npos ? end : end + 1;
    }
    RC_ASSERT(parse_targets(items).value() == t);
  }));
}

TEST(Judge, EveryTargetHoldsAtItsLimitAndFailsAboveIt) {
  const RequestRecord r = steady_stream(0, 100, 20, 11);  // E2E 300
  for (const char* met : {"ttft:100", "ttfa:100", "tpot:20", "itl:20", "icl:20", "max_gap:20", "e2el:300"})
    EXPECT_EQ(goodness(r, {met}), Goodness::kGood) << met;
  for (const char* missed :
       {"ttft:99.9", "ttfa:99.9", "tpot:19.9", "itl:19.9", "icl:19.9", "max_gap:19.9", "e2el:299.9"})
    EXPECT_EQ(goodness(r, {missed}), Goodness::kBad) << missed;
  EXPECT_EQ(goodness(r, {"ttft:100", "tpot:19"}), Goodness::kBad);
  EXPECT_EQ(goodness(r, {}), Goodness::kGood);
}

TEST(Judge, OnlyOkIsGood) {
  for (int o = 1; o < kOutcomes; ++o) {
    RequestRecord r = steady_stream(0, 100, 20, 11);
    r.outcome = static_cast<Outcome>(o);
    EXPECT_EQ(goodness(r, {}), Goodness::kBad);
  }
}

TEST(Judge, NothingToDivideIsNotApplicableUnlessStrict) {
  const RequestRecord one = stream({{100, 1}});
  const auto j = judge(one, rule({"ttft:100", "tpot:1", "itl:1", "icl:1", "max_gap:1"}).targets);
  EXPECT_EQ(j.goodness, Goodness::kGood);
  EXPECT_EQ(j.not_applicable, 4);
  EXPECT_EQ(goodness(one, {"ttft:100", "tpot:1"}, true), Goodness::kBad);
  EXPECT_EQ(goodness(one, {"ttft:100"}, true), Goodness::kGood);
}

TEST(Judge, AnyOtherAbsentValueFails) {
  RequestRecord unknown = stream({{100, 0}, {120, 0}, {140, 0}});
  unknown.output_tokens.reset();
  EXPECT_EQ(goodness(unknown, {"tpot:1000"}), Goodness::kBad);  // its length is unknown
  EXPECT_EQ(goodness(unknown, {"itl:1000"}), Goodness::kBad);   // its counts are unknown
  EXPECT_EQ(goodness(unknown, {"icl:1000"}), Goodness::kGood);
  RequestRecord buffered = steady_stream(0, 100, 20, 11);
  buffered.buffered = true;
  for (const char* target : {"tpot:1000", "itl:1000", "icl:1000", "max_gap:1000"})
    EXPECT_EQ(goodness(buffered, {target}), Goodness::kBad) << target;
  RequestRecord one = stream({{100, 12}});
  one.buffered = true;  // known to be held back: no excuse of one delivery
  EXPECT_EQ(judge(one, rule({"tpot:1000", "icl:1000"}).targets).not_applicable, 0);
  RequestRecord eventless = steady_stream(0, 100, 20, 11);
  eventless.events.clear();
  EXPECT_EQ(goodness(eventless, {"icl:1000"}), Goodness::kBad);
}

TEST(Judge, WithoutStreamingTokenTargetsAreUnmeasurable) {
  RequestRecord r = steady_stream(0, 100, 20, 11);
  r.streamed = false;
  r.events.clear();
  EXPECT_EQ(goodness(r, {"ttft:1000"}), Goodness::kUnmeasurable);
  EXPECT_EQ(goodness(r, {"tpot:1000", "e2el:300"}), Goodness::kUnmeasurable);
  EXPECT_EQ(goodness(r, {"tpot:1000", "e2el:299"}), Goodness::kBad);  // bad whatever the tokens did
  EXPECT_EQ(goodness(r, {"e2el:300"}), Goodness::kGood);
}

TEST(Judge, GapTargetsAgreeWithThePercentileTheyStandFor) {
  EXPECT_TRUE(rc::check("counting equals sorting", [] {
    const auto gaps = *rc::gen::container<std::vector<int>>(rc::gen::inRange(0, 50));
    std::vector<testing::Chunk> chunks{{10, 1}};
    for (const int gap : gaps)
      chunks.push_back({chunks.back().at_ms + gap, static_cast<uint16_t>(*rc::gen::inRange(1, 5))});
    const RequestRecord r = stream(chunks);
    const int limit = *rc::gen::inRange(1, 60);
    const auto at_most = [&](std::optional<double> ns) { return !ns || *ns <= limit * 1e6; };
    const auto good = [&](const char* key) {
      return goodness(r, {std::string(key) + ":" + std::to_string(limit)}) == Goodness::kGood;
    };
    RC_ASSERT(good("itl") == at_most(itl_p95_ns(r)));
    RC_ASSERT(good("icl") == at_most(icl_p95_ns(r)));
    const auto longest = max_gap(r);
    RC_ASSERT(good("max_gap") == (!longest || *longest <= milliseconds(limit)));
  }));
}

}  // namespace
}  // namespace goodput
