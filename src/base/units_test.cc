// Distinct quantities, conversions and their rounding.
#include "base/units.h"

#include <type_traits>
#include <unordered_set>

#include <gtest/gtest.h>

namespace goodput {
namespace {

static_assert(!std::is_convertible_v<int, Tokens> && !std::is_constructible_v<Tokens, Blocks>);
static_assert(!std::is_constructible_v<Nanos, double>, "a fraction of a nanosecond is a mistake");
static_assert(sizeof(Tokens) == sizeof(int32_t) && sizeof(TimePoint) == sizeof(int64_t));

TEST(Units, Arithmetic) {
  EXPECT_EQ(Tokens(3) + Tokens(4), Tokens(7));
  EXPECT_EQ(Tokens(3) - Tokens(4), Tokens(-1));
  EXPECT_EQ(-Tokens(3), Tokens(-3));
  EXPECT_EQ(Tokens(7) / 2, Tokens(3));
  EXPECT_EQ(2 * Tokens(7), Tokens(14));
  EXPECT_EQ(Tokens(7) / Tokens(2), 3);
  EXPECT_EQ(Tokens(7) % Tokens(4), 3);
  EXPECT_LT(Tokens(1), Tokens(2));
  EXPECT_EQ(TimePoint(seconds(5)) - TimePoint(seconds(3)), seconds(2));
  EXPECT_EQ(TimePoint(seconds(5)) + milliseconds(1) - milliseconds(1), TimePoint(seconds(5)));
}

TEST(Units, ConversionsRoundToTheNearestNanosecond) {
  EXPECT_EQ(from_ms(0.0000005), Nanos(1));
  EXPECT_EQ(from_ms(0.0000004), Nanos(0));
  EXPECT_EQ(from_ms(-1.5), microseconds(-1500));
  EXPECT_EQ(from_seconds(1e9), seconds(1'000'000'000));
  EXPECT_DOUBLE_EQ(to_ms(microseconds(1500)), 1.5);
  EXPECT_DOUBLE_EQ(to_seconds(milliseconds(-20)), -0.02);
}

TEST(Units, BlocksRoundUp) {
  EXPECT_EQ(blocks_for(Tokens(0), Tokens(16)), Blocks(0));
  EXPECT_EQ(blocks_for(Tokens(1), Tokens(16)), Blocks(1));
  EXPECT_EQ(blocks_for(Tokens(16), Tokens(16)), Blocks(1));
  EXPECT_EQ(blocks_for(Tokens(17), Tokens(16)), Blocks(2));
}

TEST(Units, IdsCompareAndHash) {
  const std::unordered_set<RequestId> ids{RequestId(1), RequestId(2), RequestId(1)};
  EXPECT_EQ(ids.size(), 2u);
  EXPECT_LT(Slot(1), Slot(2));
}

}  // namespace
}  // namespace goodput
