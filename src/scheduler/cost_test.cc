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
  batch.total = batch.live = limits::kMaxBatchedTokens;
  EXPECT_EQ(batch.shape().kv_tiled.count(), int64_t{65536} * (1 << 20)) << "more than an int32 holds";
  EXPECT_EQ(batch.shape().kv_dense.count(), int64_t{65536} * 65536);
}

// `decodes` sequences of one token, then one prompt chunk of `prefill` tokens.
Batch mixed(const std::vector<TokenId>& tokens, int decodes, size_t prefill) {
  Batch batch;
  for (int i = 0; i < decodes; ++i)
    batch.sequences.push_back({.first = Tokens(9), .tokens = std::span(tokens).first(1), .decode = true});
  if (prefill > 0)
    batch.sequences.push_back({.first = Tokens(0), .tokens = std::span(tokens).first(prefill)});
  batch.total = Tokens(decodes) + Tokens(prefill);
  batch.live = Tokens(1000);
  return batch;
}

TEST(BatchShape, BelowTheDenseLimitAllIsOnePass) {
  const std::vector<TokenId> tokens(1024);
  const StepShape shape = mixed(tokens, 13, 50).shape();
  EXPECT_EQ(shape.passes, 1);
  EXPECT_EQ(shape.kv_read, KvPairs(13 * 10 + 50 * 50));
  EXPECT_EQ(shape.kv_scanned, KvPairs(63 * 1000));
  EXPECT_EQ(shape.kv_tiled, KvPairs(0));
  EXPECT_EQ(shape.kv_dense, KvPairs(0));
}

TEST(BatchShape, FromItOnDecodesAndPrefillAreApart) {
  const std::vector<TokenId> tokens(1024);
  const StepShape shape = mixed(tokens, 30, 100).shape();
  EXPECT_EQ(shape.passes, 2);
  EXPECT_EQ(shape.kv_read, KvPairs(30 * 10));
  EXPECT_EQ(shape.kv_scanned, KvPairs(30 * 1000));
  EXPECT_EQ(shape.kv_tiled, KvPairs(100 * 100));
  EXPECT_EQ(shape.kv_dense, KvPairs(100 * 1000));
}

TEST(ForwardPasses, AgreeWithTheShapeAndNeverMixOrGoDenseWithDecodes) {
  const std::vector<TokenId> tokens(1024);
  for (const int decodes : {0, 1, 13, 63, 64, 126, 127, 200})
    for (const size_t prefill : {0, 1, 50, 64, 300}) {
      if (decodes == 0 && prefill == 0)
        continue;
      const Batch batch = mixed(tokens, decodes, prefill);
      std::vector<int> pass;
      const int passes = forward_passes(batch, pass);
      EXPECT_EQ(passes, batch.shape().passes) << decodes << " decodes, " << prefill << " prefill";
      std::vector<int> decodes_in(passes), prefill_in(passes);
      for (size_t i = 0; i < pass.size(); ++i)
        ++(batch.sequences[i].decode ? decodes_in : prefill_in)[pass[i]];
      for (int p = 0; p < passes; ++p) {
        EXPECT_GT(decodes_in[p] + prefill_in[p], 0) << "an empty pass";
        if (batch.total >= kDenseTokens) {
          EXPECT_TRUE(decodes_in[p] == 0 || prefill_in[p] == 0);
          EXPECT_LT(decodes_in[p], kDenseTokens.count());
        }
      }
    }
}

}  // namespace
}  // namespace goodput
