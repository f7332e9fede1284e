#include "base/clock.h"

#include <chrono>
#include <ctime>

#include "base/check.h"

namespace goodput {
namespace {

Nanos read_clock(clockid_t id) {
  timespec t{};
  clock_gettime(id, &t);
  return Nanos(int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec);
}

}  // namespace

void Wakeup::notify() {
  {
    std::lock_guard lock(mutex_);
    pending_ = true;
  }
  condition_.notify_one();
}

WallClock::WallClock(double speed) : speed_(speed), real_zero_(speed == 1.0 ? Nanos(0) : read_clock(CLOCK_MONOTONIC)) {
  CHECK(speed > 0, "a clock runs forward");
}

TimePoint WallClock::now() const {
  const Nanos real = read_clock(CLOCK_MONOTONIC) - real_zero_;
  if (speed_ == 1.0)
    return TimePoint(real);
  return TimePoint(Nanos(static_cast<int64_t>(static_cast<double>(real.count()) * speed_)));
}

bool WallClock::wait_until(TimePoint when, Wakeup& wakeup) {
  std::unique_lock lock(wakeup.mutex_);
  while (!wakeup.pending_) {
    const Nanos left = when - now();
    if (left <= Nanos(0))
      return true;
    // std::chrono's timed waits on a steady clock use CLOCK_MONOTONIC; a cap keeps the arithmetic in range.
    const double real_ns = std::min(static_cast<double>(left.count()) / speed_, 3600e9);
    wakeup.condition_.wait_for(lock, std::chrono::nanoseconds(static_cast<int64_t>(real_ns) + 1));
  }
  wakeup.pending_ = false;
  return false;
}

bool VirtualClock::wait_until(TimePoint when, Wakeup& wakeup) {
  {
    std::lock_guard lock(wakeup.mutex_);
    if (wakeup.pending_) {
      wakeup.pending_ = false;
      return false;
    }
  }
  advance_to(std::max(when, now_));
  return true;
}

void VirtualClock::advance_to(TimePoint when) {
  CHECK(when >= now_, "virtual time never runs backwards");
  now_ = when;
}

TimePoint monotonic_now() { return TimePoint(read_clock(CLOCK_MONOTONIC)); }

Nanos realtime_offset() {
  // The pair with the shortest bracket is the least disturbed by a preemption between the reads.
  Nanos best_offset, best_width(INT64_MAX);
  for (int i = 0; i < 5; ++i) {
    const Nanos before = read_clock(CLOCK_MONOTONIC);
    const Nanos real = read_clock(CLOCK_REALTIME);
    const Nanos after = read_clock(CLOCK_MONOTONIC);
    if (after - before < best_width) {
      best_width = after - before;
      best_offset = real - (before + (after - before) / 2);
    }
  }
  return best_offset;
}

int64_t unix_seconds() { return read_clock(CLOCK_REALTIME).count() / 1'000'000'000; }

}  // namespace goodput
