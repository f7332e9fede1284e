#include "metrics/until.h"

#include <cmath>

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "base/random.h"

namespace goodput {
namespace {

UntilSpec spec(std::string_view text) { return parse_until(text).value(); }

TEST(Until, Parses) {
  const UntilSpec s = spec("p95_ttft:±5%");
  EXPECT_EQ(s.figure.text(), "p95_ttft");
  EXPECT_EQ(s.figure.kind, FigureName::Kind::kPercentile);
  EXPECT_DOUBLE_EQ(s.figure.percentile, 0.95);
  EXPECT_DOUBLE_EQ(s.half_width, 0.05);
  EXPECT_TRUE(s.relative);
  EXPECT_FALSE(spec("mean_tpot:+-2ms").relative);
  EXPECT_DOUBLE_EQ(spec("mean_tpot:+-2ms").half_width, 2);
  EXPECT_DOUBLE_EQ(spec("p99.9_e2el:+-1.5s").half_width, 1500);
  EXPECT_DOUBLE_EQ(spec("attainment:±2pp").half_width, 0.02);
  EXPECT_DOUBLE_EQ(spec("goodput: +/-0.1").half_width, 0.1);
  EXPECT_EQ(spec("median_itl:±1%").figure.text(), "p50_itl");
  for (const char* bad : {"", "p95_ttft", "p95_ttft:5%", "p95_ttft:±", "p95_ttft:±0%", "p95_ttft:±-1%", "p95_ttff:±5%",
                          "p0_ttft:±5%", "p100_ttft:±5%", "ttft:±5%", "goodput:±2pp", "goodput:±2ms", "p95_:±1%",
                          "p95_ttft:±nan", "p95_ttft:±inf", "mean_ttft:±5%x"}) {
    const auto r = parse_until(bad);
    ASSERT_FALSE(r) << bad;
    EXPECT_EQ(r.error().code, ErrorCode::kUsage);
  }
  EXPECT_NE(parse_until("p95_ttff:±5%").error().message.find("ttft"), std::string::npos);
}

TEST(Until, NeverDecidesBelowThreeReplicates) {
  Until u(spec("p95_ttft:±50%"), 10);
  EXPECT_EQ(u.add(100), UntilState::kGoOn);
  EXPECT_EQ(u.add(100), UntilState::kGoOn);  // equal values, and still two
  EXPECT_EQ(u.add(100), UntilState::kTight);
  EXPECT_EQ(to_string(u.state()), "tight enough");
}

TEST(Until, SpendsItsBudget) {
  Until u(spec("p95_ttft:±1%"), 4);
  for (const double v : {100.0, 200.0, 50.0})
    EXPECT_EQ(u.add(v), UntilState::kGoOn);
  EXPECT_EQ(u.add(400), UntilState::kBudgetSpent);
  ASSERT_TRUE(u.estimate());
  EXPECT_LT(*u.estimate()->low, u.estimate()->value);
  Until out_of_time(spec("goodput:±1%"), 10);
  out_of_time.add(1);
  out_of_time.spend_budget();
  EXPECT_EQ(out_of_time.state(), UntilState::kBudgetSpent);
  EXPECT_FALSE(out_of_time.estimate());
}

TEST(Until, AbsentFiguresCountAgainstTheBudgetOnly) {
  Until u(spec("p99_ttft:±5%"), 3);
  u.add(std::nullopt);
  u.add(NAN);
  EXPECT_EQ(u.add(std::nullopt), UntilState::kBudgetSpent);
  EXPECT_FALSE(u.estimate());
  EXPECT_FALSE(u.half_width());
}

TEST(Until, IsTightExactlyWhenTheHalfWidthSaysSo) {
  EXPECT_TRUE(rc::check([](uint64_t seed) {
    Random random(seed, "until");
    Until u(spec("mean_ttft:±10%"), 12);
    while (u.state() == UntilState::kGoOn)
      u.add(100 * std::exp(0.2 * random.normal()));
    RC_ASSERT(u.replicates() <= 12u);
    const bool tight = u.replicates() >= kMinReplicates && *u.half_width() <= 0.1;
    RC_ASSERT((u.state() == UntilState::kTight) == tight);
    RC_ASSERT(*u.estimate()->low <= u.estimate()->value && u.estimate()->value <= *u.estimate()->high);
    RC_ASSERT(*u.expected() >= kMinReplicates && *u.expected() <= 12u);
  }));
}

// Looking after every replicate must not cost coverage: independent normal replicates, widths from easy to hard.
TEST(Until, CoversAfterTheOptionalStop) {
  for (const char* text : {"goodput:±2%", "goodput:±5%", "goodput:±10%", "p95_ttft:±5%", "p95_ttft:±20%"}) {
    int covered = 0;
    constexpr int kRuns = 2000;
    for (int i = 0; i < kRuns; ++i) {
      Random random(static_cast<uint64_t>(i), text);
      Until u(spec(text), 30);
      while (u.state() == UntilState::kGoOn)
        u.add(100 + 8 * random.normal());
      covered += *u.estimate()->low <= 100 && 100 <= *u.estimate()->high;
    }
    EXPECT_GE(covered, kRuns * 0.945) << text;
  }
}

}  // namespace
}  // namespace goodput
