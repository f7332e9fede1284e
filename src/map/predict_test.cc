#include "map/predict.h"

#include <gtest/gtest.h>

namespace goodput {
namespace {

StepRecord step(double start_ms, double ms, int decodes) {
  StepRecord s;
  s.start = TimePoint(from_ms(start_ms));
  s.duration = from_ms(ms);
  s.shape.decodes = decodes;
  return s;
}

constexpr Window kWindow{TimePoint(from_ms(10)), TimePoint(from_ms(20))};

TEST(Slowdown, IsTimeTakenOverTimeExpectedOfTheWindowsIterations) {
  const StepCost cost{.base_ns = 1e6, .decode_ns = 1e6};  // 2 ms with one decode, 3 ms with two
  const std::vector<StepRecord> steps = {step(9, 100, 1), step(10, 3, 1), step(19, 4.5, 2), step(20, 100, 1)};
  EXPECT_DOUBLE_EQ(slowdown(steps, cost, kWindow).value(), 1.5);
}

TEST(Slowdown, AbsentWithoutIterations) {
  EXPECT_FALSE(slowdown({}, StepCost{.base_ns = 1}, kWindow));
  const std::vector<StepRecord> outside = {step(30, 1, 1)};
  EXPECT_FALSE(slowdown(outside, StepCost{.base_ns = 1}, kWindow));
}

TEST(Slowdown, ASlowerEngineTakesThatMuchLongerForEveryShape) {
  EngineModel engine{.cost = {.base_ns = 1e6,
                              .prefill_ns = 2e3,
                              .decode_ns = 3e4,
                              .kv_ns = 2,
                              .tile_ns = 3,
                              .scan_ns = 5,
                              .crowd_ns = 7,
                              .dense_ns = 11,
                              .far_ns = 13,
                              .pass_ns = 1e5,
                              .swap_ns = 17},
                     .capabilities = {},
                     .request_overhead = Nanos(1000),
                     .token_overhead = Nanos(40)};
  const EngineModel twice = slower(engine, 2);
  const StepShape shape{.prefill = Tokens(100),
                        .kv_read = KvPairs(1000),
                        .kv_tiled = KvPairs(2000),
                        .kv_scanned = KvPairs(3000),
                        .kv_dense = KvPairs(kFarPairs + 1000),
                        .swapped = Tokens(5),
                        .decodes = 4,
                        .passes = 3};
  EXPECT_EQ(twice.cost.of(shape).count(), 2 * engine.cost.of(shape).count());
  EXPECT_EQ(twice.request_overhead, Nanos(2000));
  EXPECT_EQ(twice.token_overhead, Nanos(80));
}

TEST(PredictionError, KeepsTheLargestMagnitudeOfEachFigureWithItsSign) {
  PredictionError::Row a{.key = "a",
                         .settings = {},
                         .rate = 1,
                         .slowdown = 1.5,
                         .as_predicted = {-0.5, 0.1, {}},
                         .at_speed = {0.1, {}, {}}};
  PredictionError::Row b{
      .key = "b", .settings = {}, .rate = 1, .slowdown = {}, .as_predicted = {0.4, -0.2, {}}, .at_speed = {}};
  const PredictionError error = prediction_error({a, b});
  EXPECT_EQ(error.as_predicted.ttft_p50, -0.5);
  EXPECT_EQ(error.as_predicted.tpot_p50, -0.2);
  EXPECT_FALSE(error.as_predicted.goodput);
  EXPECT_EQ(error.at_speed.ttft_p50, 0.1);
  EXPECT_FALSE(error.at_speed.tpot_p50);
}

}  // namespace
}  // namespace goodput
