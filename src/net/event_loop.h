// Readiness of many descriptors and one deadline, on one thread: epoll with nanosecond timeouts (epoll_pwait2). Why not
// Asio here: the generator needs a wait that is precise to the scheduled send and a flat drain of what is ready; both
// are a few lines on epoll and 0.9 µs a token event cheaper than through a second layer (docs/method.md).
// Level-triggered, so that a bounded read per wake-up loses nothing.
#pragma once

#include <sys/epoll.h>

#include <array>
#include <cstdint>
#include <span>

#include "base/result.h"
#include "base/units.h"
#include "net/socket.h"

namespace goodput {

class EventLoop {
 public:
  struct Ready {
    uint64_t key;
    bool readable, writable;  // an error or hang-up is both: the next call on the descriptor says which
  };

  static Result<EventLoop> create();

  // `key` comes back with each readiness. False: the kernel refused (memory).
  bool watch(int fd, uint64_t key, bool for_writing);
  bool rewatch(int fd, uint64_t key, bool for_writing);
  void forget(int fd);  // before the descriptor is closed, if it may have been duplicated; closing alone does too

  // Sleeps until something is ready, a signal arrives, or `deadline` on CLOCK_MONOTONIC; a past deadline only looks.
  // The span is valid until the next call.
  std::span<const Ready> wait_until(TimePoint deadline);
  // Time spent waiting so far: what is left of the wall time is the loop's own work.
  Nanos waited() const { return waited_; }

 private:
  explicit EventLoop(Socket epoll) : epoll_(std::move(epoll)) {}
  static constexpr size_t kBatch = 256;

  Socket epoll_;
  std::array<epoll_event, kBatch> events_{};
  std::array<Ready, kBatch> ready_{};
  Nanos waited_{0};
};

}  // namespace goodput
