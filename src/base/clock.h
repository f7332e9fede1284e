// Time as a dependency. Nothing outside this file reads a system clock, so the same code runs in real time, faster
// than real time, and on a virtual timeline that only moves when told to.
#pragma once

#include <atomic>
#include <condition_variable>
#include <mutex>

#include "base/units.h"

namespace goodput {

// One sleeper, many wakers. A wake that comes before the wait is not lost: it ends the next wait at once.
class Wakeup {
 public:
  void notify();

 private:
  friend class WallClock;
  friend class VirtualClock;
  std::mutex mutex_;
  std::condition_variable condition_;
  bool pending_ = false;
};

class Clock {
 public:
  virtual ~Clock() = default;
  virtual TimePoint now() const = 0;
  // Blocks until `when`. True: `when` has come. False: woken before it by `wakeup`.
  virtual bool wait_until(TimePoint when, Wakeup& wakeup) = 0;
};

// CLOCK_MONOTONIC, optionally running `speed` times faster (speed 20: one real second is twenty here). The zero of
// a scaled clock is the real time of its construction; at speed 1 it is CLOCK_MONOTONIC itself.
// Thread-safe.
class WallClock final : public Clock {
 public:
  explicit WallClock(double speed = 1.0);
  TimePoint now() const override;
  bool wait_until(TimePoint when, Wakeup& wakeup) override;

 private:
  double speed_;
  Nanos real_zero_;
};

// A timeline that moves only by waiting or `advance_to`. One thread.
class VirtualClock final : public Clock {
 public:
  TimePoint now() const override { return now_; }
  bool wait_until(TimePoint when, Wakeup& wakeup) override;
  void advance_to(TimePoint when);  // never backwards

 private:
  TimePoint now_;
};

// CLOCK_MONOTONIC now, for stamps that must be comparable between processes of one machine.
TimePoint monotonic_now();
// CLOCK_REALTIME − CLOCK_MONOTONIC now: converts the kernel's realtime stamps to the monotonic timeline.
Nanos realtime_offset();
// Seconds since the Unix epoch; for names and records that people read, never for measuring.
int64_t unix_seconds();

}  // namespace goodput
