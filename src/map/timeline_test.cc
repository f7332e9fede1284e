#include "map/timeline.h"

#include <gtest/gtest.h>

namespace goodput {
namespace {

// Iterations in which a request ran.
std::vector<size_t> steps_of(const Timeline& t, uint64_t request) {
  std::vector<size_t> steps;
  for (size_t i = 0; i < t.steps.size(); ++i)
    for (const auto& lane : t.steps[i].lanes)
      if (lane.request == request)
        steps.push_back(i);
  return steps;
}

TEST(Timeline, AStaticBatchWaitsForItsLongestAContinuousOneDoesNot) {
  const auto both = example_timelines({.base_ns = 1e6});
  ASSERT_TRUE(both) << describe(both.error());
  ASSERT_EQ(both->size(), 2u);
  const Timeline& fixed = (*both)[0];
  const Timeline& continuous = (*both)[1];
  EXPECT_EQ(fixed.title, "static");
  EXPECT_EQ(continuous.title, "continuous");
  for (const Timeline* t : {&fixed, &continuous}) {
    EXPECT_EQ(steps_of(*t, 0).size(), 5u);  // ends at step 5
    EXPECT_EQ(steps_of(*t, 1).back(), 7u);  // its neighbours at step 8
    EXPECT_EQ(steps_of(*t, 4).size(), 3u);
    EXPECT_EQ(t->ended_ms.size(), 5u);
  }
  EXPECT_EQ(steps_of(fixed, 4).front(), 8u);       // the fifth waits for the whole batch
  EXPECT_EQ(steps_of(continuous, 4).front(), 5u);  // or takes the seat at once
}

}  // namespace
}  // namespace goodput
