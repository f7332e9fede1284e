// Gauges of the engine over a window.
#include <gtest/gtest.h>

#include "metrics/test_records.h"

namespace goodput {
namespace {

using testing::at_ms;
using testing::window_ms;

StepRecord step(double start_ms, double duration_ms, int running, int waiting = 0, int used = 0) {
  StepRecord s;
  s.start = at_ms(start_ms);
  s.duration = from_ms(duration_ms);
  s.running = running;
  s.waiting = waiting;
  s.used = Blocks(used);
  s.shape.decodes = running;
  s.shape.prefill = Tokens(10);
  return s;
}

TEST(Observe, AbsentWithoutALog) {
  const Observed o = observe({}, Blocks(10), window_ms(0, 100));
  EXPECT_FALSE(o.running.mean);
  EXPECT_FALSE(o.preemptions);
  const StepRecord one[] = {step(0, 10, 1)};
  EXPECT_FALSE(observe(one, Blocks(10), window_ms(50, 50)).running.mean);
}

TEST(Observe, AStepHoldsUntilTheNextStarts) {
  const StepRecord log[] = {step(0, 39.5, 2, 1, 5), step(40, 60, 4, 3, 10)};  // half a millisecond of overhead
  const Observed o = observe(log, Blocks(20), window_ms(0, 100));
  EXPECT_DOUBLE_EQ(*o.running.mean, 0.4 * 2 + 0.6 * 4);
  EXPECT_EQ(o.running.max, 4);
  EXPECT_DOUBLE_EQ(*o.queue_depth.mean, 0.4 * 1 + 0.6 * 3);
  EXPECT_DOUBLE_EQ(*o.kv_usage.mean, 0.4 * 0.25 + 0.6 * 0.5);
  EXPECT_DOUBLE_EQ(*o.batched_tokens.mean, 0.4 * 12 + 0.6 * 14);
  EXPECT_EQ(o.running.p95, 4);
  EXPECT_FALSE(observe(log, Blocks(0), window_ms(0, 100)).kv_usage.mean);
}

TEST(Observe, IdleTimeCountsAsNothingRunning) {
  const StepRecord log[] = {step(10, 10, 4, 0, 8), step(80, 10, 2, 0, 4)};
  const Observed o = observe(log, Blocks(8), window_ms(0, 100));
  EXPECT_DOUBLE_EQ(*o.running.mean, 0.1 * 4 + 0.1 * 2);
  EXPECT_DOUBLE_EQ(*o.kv_usage.mean, 0.1 * 1 + 0.1 * 0.5);
  EXPECT_EQ(o.running.max, 4);
  EXPECT_DOUBLE_EQ(*o.batched_tokens.mean, 13);  // of iterations: idle time has none
}

TEST(Observe, AQueueOutlastsAPause) {
  // Static batching: three wait for the batch to fill.
  const StepRecord log[] = {step(0, 10, 4, 3), step(90, 10, 4, 0)};
  EXPECT_DOUBLE_EQ(*observe(log, Blocks(8), window_ms(0, 100)).queue_depth.mean, 0.9 * 3);
}

TEST(Observe, ClipsToTheWindowAndSortsSteps) {
  StepRecord early = step(-50, 100, 10), late = step(50, 100, 2);
  early.preempted = 5;
  late.preempted = 2;
  const StepRecord log[] = {late, early};
  const Observed o = observe(log, Blocks(8), window_ms(0, 100));
  EXPECT_DOUBLE_EQ(*o.running.mean, 6);
  EXPECT_EQ(o.preemptions, 2u);
  const Observed nothing = observe(log, Blocks(8), window_ms(1000, 1100));
  EXPECT_DOUBLE_EQ(*nothing.running.mean, 0);
  EXPECT_FALSE(nothing.batched_tokens.mean);
  EXPECT_EQ(nothing.preemptions, 0u);
}

}  // namespace
}  // namespace goodput
