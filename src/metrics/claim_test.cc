#include "metrics/claim.h"

#include <gtest/gtest.h>

namespace goodput {
namespace {

using Values = std::vector<std::optional<double>>;

TEST(Claim, ThreeOutcomes) {
  const auto claim = [](const Values& v, double limit) { return claim_at_most(v, limit, FigureScale::kPositive); };
  EXPECT_EQ(claim({100, 101, 99}, 300), Claim::kPass);
  EXPECT_EQ(claim({100, 101, 99}, 50), Claim::kFail);
  EXPECT_EQ(claim({100, 200, 50}, 150), Claim::kUndecided);  // near the limit: not a pass
  EXPECT_EQ(claim({100, 101}, 300), Claim::kUndecided);      // two replicates claim nothing
  EXPECT_EQ(claim({100, 101, std::nullopt}, 300), Claim::kUndecided);
  EXPECT_EQ(claim({}, 300), Claim::kUndecided);
  EXPECT_EQ(to_string(Claim::kUndecided), "undecided");
}

TEST(Claim, Attainment) {
  const auto claim = [](double good) {
    const std::vector<Count> c = {{good, 1000}, {good + 1, 1000}, {good - 1, 1000}};
    return claim_attained(c, 0.9);
  };
  EXPECT_EQ(claim(960), Claim::kPass);
  EXPECT_EQ(claim(800), Claim::kFail);
  EXPECT_EQ(claim(905), Claim::kUndecided);
  EXPECT_EQ(claim_attained(std::vector<Count>{{10, 10}, {10, 10}, {0, 0}}, 0.9), Claim::kUndecided);
}

}  // namespace
}  // namespace goodput
