#include "net/event_loop.h"

#include <sys/prctl.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/clock.h"

namespace goodput {

Result<EventLoop> EventLoop::create() {
  Socket epoll(epoll_create1(EPOLL_CLOEXEC));
  if (!epoll)
    return fail(ErrorCode::kExhausted, std::strerror(errno), "epoll");
  // By default the kernel may delay a timed wait by 50 µs to save wake-ups; sends must be on time.
  prctl(PR_SET_TIMERSLACK, 1UL);
  return EventLoop(std::move(epoll));
}

bool EventLoop::watch(int fd, uint64_t key, bool for_writing) {
  epoll_event e{};
  e.events = EPOLLIN | EPOLLRDHUP | (for_writing ? EPOLLOUT : 0u);
  e.data.u64 = key;
  return epoll_ctl(epoll_.fd(), EPOLL_CTL_ADD, fd, &e) == 0;
}

bool EventLoop::rewatch(int fd, uint64_t key, bool for_writing) {
  epoll_event e{};
  e.events = EPOLLIN | EPOLLRDHUP | (for_writing ? EPOLLOUT : 0u);
  e.data.u64 = key;
  return epoll_ctl(epoll_.fd(), EPOLL_CTL_MOD, fd, &e) == 0;
}

void EventLoop::forget(int fd) { epoll_ctl(epoll_.fd(), EPOLL_CTL_DEL, fd, nullptr); }

std::span<const EventLoop::Ready> EventLoop::wait_until(TimePoint deadline) {
  const TimePoint before = monotonic_now();
  const int64_t left = std::max<int64_t>((deadline - before).count(), 0);
  const timespec timeout{left / 1'000'000'000, left % 1'000'000'000};
  int n = epoll_pwait2(epoll_.fd(), events_.data(), kBatch, &timeout, nullptr);
  if (n < 0 && errno == ENOSYS) {  // before Linux 5.11, and some sandboxes: milliseconds, rounded down, never late
    n = epoll_wait(epoll_.fd(), events_.data(), kBatch, static_cast<int>(std::min<int64_t>(left / 1'000'000, 1000)));
  }
  waited_ += monotonic_now() - before;
  n = std::max(n, 0);
  for (int i = 0; i < n; ++i) {
    const epoll_event& e = events_[static_cast<size_t>(i)];
    const bool broken = (e.events & (EPOLLERR | EPOLLHUP)) != 0;
    ready_[static_cast<size_t>(i)] = {e.data.u64, broken || (e.events & (EPOLLIN | EPOLLRDHUP)) != 0,
                                      broken || (e.events & EPOLLOUT) != 0};
  }
  return {ready_.data(), static_cast<size_t>(n)};
}

}  // namespace goodput
