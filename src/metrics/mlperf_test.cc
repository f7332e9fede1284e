#include "metrics/mlperf.h"

#include <gtest/gtest.h>

#include "metrics/presets.h"
#include "metrics/test_records.h"

namespace goodput {
namespace {

using testing::failed;
using testing::steady_stream;

TEST(Mlperf, EarlyStoppingAsItsOwnTablesSay) {
  EXPECT_EQ(mlperf_least_within(0), 459u);
  // An estimate leaves out the largest value: n = h(1) + 1. MLPerf's floors per percentile.
  struct Floor {
    double p;
    uint64_t n;
  };
  for (const Floor f : {Floor{0.5, 11}, {0.75, 24}, {0.9, 64}, {0.95, 130}, {0.97, 219}, {0.99, 662}, {0.999, 6636}})
    EXPECT_EQ(mlperf_least_within(1, f.p) + 1, f.n) << f.p;
  // Of 10,000 queries 77 may be over.
  EXPECT_LE(mlperf_least_within(77), 10'000u - 77);
  EXPECT_GT(mlperf_least_within(78), 10'000u - 78);
}

TEST(Mlperf, LimitsAreJudgedEachOnItsOwn) {
  std::vector<RequestRecord> records;
  for (int i = 0; i < 460; ++i)
    records.push_back(steady_stream(i, 100, 10, 11));
  EXPECT_TRUE(mlperf_verdict(records, from_ms(450), from_ms(40)).holds);
  records[0] = steady_stream(0, 500, 10, 11);  // one over: 459 within do not suffice any more
  const auto v = mlperf_verdict(records, from_ms(450), from_ms(40));
  EXPECT_FALSE(v.holds);
  EXPECT_FALSE(v.ttft.holds);
  EXPECT_EQ(v.ttft.over, 1u);
  EXPECT_EQ(v.ttft.needed, 661u);
  ASSERT_TRUE(v.tpot);
  EXPECT_TRUE(v.tpot->holds);
  EXPECT_DOUBLE_EQ(*v.ttft.p99_ms, 100);
}

TEST(Mlperf, FailuresAreOverAndOneTokenIsLeftOut) {
  std::vector<RequestRecord> records = {failed(Outcome::kError, 0, 5), steady_stream(0, 100, 0, 1)};
  const auto v = mlperf_verdict(records, from_ms(450), from_ms(40));
  EXPECT_EQ(v.ttft.over, 1u);
  EXPECT_EQ(v.ttft.queries, 2u);
  EXPECT_EQ(v.tpot->undefined, 1u);
  EXPECT_EQ(v.tpot->queries, 1u);
  EXPECT_FALSE(mlperf_verdict({}, from_ms(1), std::nullopt).holds);
}

TEST(Presets, AreFoundByNameAndSuggested) {
  const Preset p = find_preset("mlperf-llama2-70b-interactive").value();
  EXPECT_EQ(to_text(p.targets()), "ttft:450 tpot:40");
  EXPECT_EQ(to_text(find_preset("first-token-2s")->targets()), "ttft:2000");
  const auto wrong = find_preset("mlperf-lama2-70b");
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().code, ErrorCode::kUsage);
  EXPECT_NE(wrong.error().message.find("mlperf-llama2-70b"), std::string::npos);
}

TEST(Targets, OtherToolsNamesAreUnderstood) {
  const auto t = parse_targets(
      std::vector<std::string>{"time_to_first_token:100", "inter_token_latency:3.4", "request_latency:900"});
  ASSERT_TRUE(t);
  EXPECT_EQ(to_text(*t), "ttft:100 tpot:3.4 e2el:900");
  EXPECT_FALSE(parse_targets(std::vector<std::string>{"ttft:1", "time_to_first_token:2"}));  // one limit, given twice
}

}  // namespace
}  // namespace goodput
