#include "map/plan.h"

#include <algorithm>

#include <gtest/gtest.h>

namespace goodput {
namespace {

MapOptions defaults() {
  MapOptions options;
  options.workload = default_workload();
  return options;
}

TEST(Plan, TheDefaultGridIsThirtyContinuousAndFiveStatic) {
  const auto grid = settings_of(Grid{});
  ASSERT_TRUE(grid);
  EXPECT_EQ(grid->size(), 35u);
  EXPECT_EQ(std::ranges::count(*grid, Batching::kStatic, &Settings::batching), 5);
}

TEST(Plan, ImpossibleCombinationsAreLeftOutAndAnEmptyGridIsAnError) {
  Grid grid;
  grid.max_num_seqs = {128};
  grid.max_num_batched_tokens = {Tokens(64), Tokens(256)};
  const auto some = settings_of(grid);
  ASSERT_TRUE(some);
  for (const auto& s : *some)
    EXPECT_EQ(s.max_num_batched_tokens, Tokens(256));
  grid.max_num_batched_tokens = {Tokens(64)};
  EXPECT_FALSE(settings_of(grid));
}

TEST(Plan, TheDefaultStudyFitsItsBudget) {
  const auto plan = make_plan(defaults());
  ASSERT_TRUE(plan) << describe(plan.error());
  EXPECT_LE(plan->total(), seconds(300));
  EXPECT_EQ(plan->measured_settings, 4);
  EXPECT_EQ(plan->replicates, 3);
  EXPECT_GE(plan->measure_window, seconds(6));
}

TEST(Plan, ASmallerBudgetMeasuresLessAndTooSmallIsRefused) {
  MapOptions options = defaults();
  options.budget = seconds(60);
  const auto small = make_plan(options);
  ASSERT_TRUE(small) << describe(small.error());
  EXPECT_LT(small->measured_settings, 4);
  EXPECT_LE(small->total(), seconds(60));
  options.budget = seconds(10);
  const auto tiny = make_plan(options);
  ASSERT_FALSE(tiny);
  EXPECT_EQ(tiny.error().code, ErrorCode::kUsage);
  EXPECT_EQ(tiny.error().context, "--budget");
}

}  // namespace
}  // namespace goodput
