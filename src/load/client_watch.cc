#include "load/client_watch.h"

#include <unistd.h>

#include <algorithm>

namespace goodput {
namespace {

// Slewing (NTP) moves at most 500 ppm, half of this in a second; a step moves more.
constexpr Nanos kStep = milliseconds(1);

std::optional<double> share(const std::optional<ThreadTimes>& from, const std::optional<ThreadTimes>& to, Nanos wall) {
  if (!from || !to || wall <= Nanos(0))
    return std::nullopt;
  // Threads that ended in between take their waiting with them: never below 0.
  return std::max(0.0, to_seconds(to->waiting - from->waiting) / to_seconds(wall));
}

}  // namespace

void ClientWatch::clock_offset(Nanos offset) {
  if (offset_) {
    const Nanos moved = offset - *offset_;
    stepped_ |= moved > kStep || -moved > kStep;
  }
  offset_ = offset;
}

ClientWatch::Sample ClientWatch::sample(TimePoint now, Nanos waited) const {
  Sample s{now, waited, thread_times(getpid(), gettid()), std::nullopt};
  if (server_)
    s.server = process_times(*server_);
  return s;
}

void ClientWatch::begin(TimePoint now, Nanos waited) { first_ = sample(now, waited); }
void ClientWatch::end(TimePoint now, Nanos waited) { last_ = sample(now, waited); }

ClientAudit ClientWatch::audit() const {
  ClientAudit out;
  out.clock_stepped = stepped_;
  if (!first_ || !last_ || last_->now <= first_->now)
    return out;
  const Nanos wall = last_->now - first_->now;
  const Nanos idle = last_->waited - first_->waited;
  out.loop_busy_share = std::clamp(1.0 - to_seconds(idle) / to_seconds(wall), 0.0, 1.0);
  out.wait_share = share(first_->client, last_->client, wall);
  out.server_wait_share = share(first_->server, last_->server, wall);
  return out;
}

}  // namespace goodput
