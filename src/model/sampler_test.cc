#include "model/sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include <gtest/gtest.h>
#include <rapidcheck.h>

namespace goodput {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

TEST(Sampler, GreedyIsTheFirstLargest) {
  EXPECT_TRUE(rc::check([] {
    std::vector<float> logits = *rc::gen::nonEmpty<std::vector<float>>();
    for (float& x : logits) {
      if (std::isnan(x) || std::isinf(x))
        x = 0;
    }
    auto sampler = Sampler::create({});
    SamplerScratch scratch(static_cast<int>(logits.size()));
    const auto largest = std::max_element(logits.begin(), logits.end()) - logits.begin();
    RC_ASSERT(sampler->sample(logits, scratch) == std::optional<TokenId>(static_cast<TokenId>(largest)));
  }));
}

TEST(Sampler, LogitsWithoutNumbersChooseNothing) {
  for (const float temperature : {0.0F, 1.0F}) {
    auto sampler = Sampler::create({.temperature = temperature});
    SamplerScratch scratch(40);
    std::vector<float> nan(40, std::nanf("")), never(40, -kInf), one(40, std::nanf(""));
    one[7] = -3;
    EXPECT_EQ(sampler->sample(nan, scratch), std::nullopt);
    EXPECT_EQ(sampler->sample(never, scratch), std::nullopt);
    EXPECT_EQ(sampler->sample(one, scratch), 7);
  }
}

TEST(Sampler, BannedTokensAreNeverChosen) {
  for (const float temperature : {0.0F, 0.7F, 50.0F}) {
    auto sampler = Sampler::create({.temperature = temperature, .top_k = 3, .seed = 5, .banned = {1, 2, -4, 99}});
    SamplerScratch scratch(4);
    for (int i = 0; i < 2000; ++i) {
      std::vector<float> logits{0, 90, 80, -20};
      const auto token = sampler->sample(logits, scratch);
      ASSERT_TRUE(token == 0 || token == 3);
    }
  }
}

TEST(Sampler, DrawsFollowTheTemperedDistributionAndItsNucleus) {
  auto sampler = Sampler::create({.temperature = 2, .seed = 3});
  auto nucleus = Sampler::create({.temperature = 2, .top_p = 0.7F, .seed = 3});
  SamplerScratch scratch(3);
  std::map<TokenId, int> seen, seen_nucleus;
  const double p[] = {0.6, 0.3, 0.1};
  for (int i = 0; i < 20000; ++i) {
    std::vector<float> logits(3);
    for (size_t t = 0; t < 3; ++t)
      logits[t] = static_cast<float>(2 * std::log(p[t]));
    ++seen[*sampler->sample(logits, scratch)];
    ++seen_nucleus[*nucleus->sample(logits, scratch)];
  }
  for (TokenId t = 0; t < 3; ++t)
    EXPECT_NEAR(seen[t] / 20000.0, p[t], 0.015);  // 4 standard errors
  EXPECT_EQ(seen_nucleus[2], 0);
  EXPECT_NEAR(seen_nucleus[0] / 20000.0, 2 / 3.0, 0.015);
}

TEST(Sampler, SeedsReproduce) {
  const auto draw = [](uint64_t seed) {
    auto sampler = Sampler::create({.temperature = 1, .seed = seed});
    SamplerScratch scratch(500);
    std::vector<TokenId> tokens;
    for (int i = 0; i < 50; ++i) {
      std::vector<float> flat(500, 0.0F);
      tokens.push_back(*sampler->sample(flat, scratch));
    }
    return tokens;
  };
  EXPECT_EQ(draw(9), draw(9));
  EXPECT_NE(draw(9), draw(10));
  EXPECT_NE(draw(9), draw(9 + (uint64_t{1} << 32)));
}

TEST(Sampler, ValuesOutOfRangeAreNamed) {
  EXPECT_EQ(Sampler::create({.temperature = -1}).error().code, ErrorCode::kUsage);
  EXPECT_FALSE(Sampler::create({.temperature = std::nanf("")}));
  EXPECT_FALSE(Sampler::create({.temperature = kInf}));
  EXPECT_FALSE(Sampler::create({.top_p = 0}));
  EXPECT_FALSE(Sampler::create({.top_p = 1.5F}));
  EXPECT_FALSE(Sampler::create({.top_k = -1}));
}

}  // namespace
}  // namespace goodput
