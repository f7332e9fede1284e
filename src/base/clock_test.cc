// Clocks and wakeups. Real waits are ended by a wakeup or are as short as the past: nothing here depends on speed.
#include "base/clock.h"

#include <thread>

#include <gtest/gtest.h>

namespace goodput {
namespace {

TEST(VirtualClock, MovesOnlyWhenTold) {
  VirtualClock clock;
  Wakeup wakeup;
  EXPECT_EQ(clock.now(), TimePoint());
  EXPECT_TRUE(clock.wait_until(TimePoint(seconds(5)), wakeup));
  EXPECT_EQ(clock.now(), TimePoint(seconds(5)));
  EXPECT_TRUE(clock.wait_until(TimePoint(seconds(3)), wakeup));  // already past: time stands
  EXPECT_EQ(clock.now(), TimePoint(seconds(5)));
  clock.advance_to(TimePoint(seconds(9)));
  EXPECT_EQ(clock.now(), TimePoint(seconds(9)));
}

TEST(VirtualClock, AnEarlierWakeEndsTheNextWaitOnce) {
  VirtualClock clock;
  Wakeup wakeup;
  wakeup.notify();
  wakeup.notify();
  EXPECT_FALSE(clock.wait_until(TimePoint(seconds(5)), wakeup));
  EXPECT_EQ(clock.now(), TimePoint());
  EXPECT_TRUE(clock.wait_until(TimePoint(seconds(5)), wakeup));
}

TEST(VirtualClockDeathTest, NeverRunsBackwards) {
  VirtualClock clock;
  clock.advance_to(TimePoint(seconds(1)));
  EXPECT_DEATH(clock.advance_to(TimePoint()), "never runs backwards");
}

TEST(WallClock, IsMonotonicAndAtSpeedOneTheKernels) {
  const WallClock clock;
  const TimePoint before = monotonic_now(), now = clock.now(), after = monotonic_now();
  EXPECT_LE(before, now);
  EXPECT_LE(now, after);
}

TEST(WallClock, ScaledTimeStartsAtZeroAndRunsFaster) {
  const TimePoint before = monotonic_now();
  const WallClock clock(1000);
  const TimePoint scaled = clock.now();
  const Nanos real = monotonic_now() - before;
  EXPECT_GE(scaled, TimePoint());
  EXPECT_LE(scaled.since_zero(), real * 1000);
}

TEST(WallClock, WaitsForThePastAtOnceAndForTheFutureUntilThen) {
  WallClock clock(1000);
  Wakeup wakeup;
  EXPECT_TRUE(clock.wait_until(TimePoint(Nanos(-5)), wakeup));
  const TimePoint then = clock.now() + milliseconds(500);  // half a millisecond of real time
  EXPECT_TRUE(clock.wait_until(then, wakeup));
  EXPECT_GE(clock.now(), then);
}

TEST(WallClock, AWakeBeforeTheWaitIsNotLost) {
  WallClock clock;
  Wakeup wakeup;
  wakeup.notify();
  EXPECT_FALSE(clock.wait_until(TimePoint(Nanos(INT64_MAX)), wakeup));
}

TEST(WallClock, AWakeFromAnotherThreadEndsTheWait) {
  WallClock clock;
  Wakeup wakeup;
  std::thread waker([&] { wakeup.notify(); });
  EXPECT_FALSE(clock.wait_until(TimePoint(Nanos(INT64_MAX)), wakeup));
  waker.join();
}

TEST(WallClockDeathTest, RunsForward) { EXPECT_DEATH(WallClock(0), "runs forward"); }

TEST(Clock, RealtimeOffsetConvertsBetweenTheClocks) {
  const TimePoint real = monotonic_now() + realtime_offset();
  EXPECT_LE(std::abs(real.since_zero().count() / 1'000'000'000 - unix_seconds()), 1);
}

}  // namespace
}  // namespace goodput
