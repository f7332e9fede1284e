// TRY unwraps values, passes errors on, and takes results without a value and values that only move. CHECK stops.
#include "base/result.h"

#include <memory>

#include <gtest/gtest.h>

#include "base/check.h"

namespace goodput {
namespace {

Result<int> half(int n) {
  if (n % 2 != 0)
    return fail(ErrorCode::kUsage, "odd", "number");
  return n / 2;
}
Result<void> must_be_even(int n) {
  TRY(half(n));
  return {};
}
Result<int> quarter(int n, int& reached) {
  const int h = TRY(half(n));
  ++reached;
  TRY(must_be_even(h));
  ++reached;
  return TRY(half(h));
}
Result<std::unique_ptr<int>> boxed(int n) {
  auto box = TRY([&]() -> Result<std::unique_ptr<int>> { return std::make_unique<int>(TRY(half(n))); }());
  return box;
}

TEST(Result, TryUnwrapsOrReturns) {
  int reached = 0;
  EXPECT_EQ(quarter(8, reached).value(), 2);
  EXPECT_EQ(reached, 2);
  const auto late = quarter(6, reached = 0);
  ASSERT_FALSE(late);
  EXPECT_EQ(reached, 1);
  EXPECT_EQ(late.error().code, ErrorCode::kUsage);
  EXPECT_FALSE(quarter(3, reached = 0));
  EXPECT_EQ(reached, 0);
}

TEST(Result, TryMovesWhatOnlyMoves) {
  EXPECT_EQ(**boxed(6), 3);
  EXPECT_FALSE(boxed(7));
}

TEST(Result, DescribeNamesThePlace) {
  EXPECT_EQ(describe(half(1).error()), "number: odd");
  EXPECT_EQ(describe(Error{ErrorCode::kIo, "disk full", ""}), "disk full");
}

TEST(CheckDeathTest, StopsWithThePlaceAndTheReason) {
  CHECK(true);
  EXPECT_DEATH(CHECK(1 + 1 == 3, "arithmetic holds"), "result_test.cc.*1 \\+ 1 == 3.*arithmetic holds");
  EXPECT_DEATH(CHECK(false), "internal error");
}

}  // namespace
}  // namespace goodput
