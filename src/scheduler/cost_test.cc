// The cost model and the shape of a batch, up to the limits.
#include "scheduler/cost.h"

#include <limits>

#include <gtest/gtest.h>

#include "base/limits.h"
#include "scheduler/batch.h"

namespace goodput {
namespace {

TEST(StepCost, IsLinearInTheShape) {
  const StepCost cost{.base_ns = 1000, .prefill_ns = 10, .decode_ns = 100, .kv_ns = 0.5, .pass_ns = 7, .swap_ns = 3};
  EXPECT_EQ(cost.of({}), Nanos(1000));
  const StepShape shape{.prefill = Tokens(5), .kv_read = KvPairs(40), .swapped = Tokens(2), .decodes = 3, .passes = 2};
  EXPECT_EQ(cost.of(shape), Nanos(1000 + 50 + 300 + 20 + 7 + 6));
}

TEST(StepCost, TimeGoesForwardWhateverTheFit) {
  EXPECT_EQ(StepCost{}.of({}), Nanos(1));
  EXPECT_EQ((StepCost{.base_ns = -5}.of({})), Nanos(1));
  EXPECT_EQ((StepCost{.base_ns = std::numeric_limits<double>::quiet_NaN()}.of({})), Nanos(1));
  EXPECT_EQ((StepCost{.base_ns = 1e300}.of({})), seconds(86400));
}

TEST(BatchShape, CountsPrefillDecodesAndAttentionPairs) {
  const std::vector<TokenId> tokens(1024);
  Batch batch;
  batch.sequences.push_back({.first = Tokens(100), .tokens = std::span(tokens).first(20)});
  batch.sequences.push_back({.first = Tokens(49), .tokens = std::span(tokens).first(1), .decode = true});
  const StepShape shape = batch.shape();
  EXPECT_EQ(shape.prefill, Tokens(20));
  EXPECT_EQ(shape.decodes, 1);
  EXPECT_EQ(shape.kv_read, KvPairs(20 * 120 + 50));
  EXPECT_EQ(shape.passes, 1);
}

TEST(BatchShape, HoldsTheLargestIteration) {
  const std::vector<TokenId> tokens(static_cast<size_t>(limits::kMaxBatchedTokens.count()));
  Batch batch;
  const Tokens first = limits::kMaxModelLen - limits::kMaxBatchedTokens;
  batch.sequences.push_back({.first = first, .tokens = std::span(tokens)});
  EXPECT_EQ(batch.shape().kv_read.count(), int64_t{65536} * (1 << 20)) << "more than an int32 holds";
}

}  // namespace
}  // namespace goodput
