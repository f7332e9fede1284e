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
  return std::max(0.0, to_seconds(to->waiting - from->waiting) / to_seconds(wall));
}

// How long the server's busiest thread waited for a processor because of somebody else: a server's own threads may
// share one, and what they take from each other belongs to the server that is measured, not to the machine's other
// work.
std::optional<double> foreign_wait_share(const std::map<pid_t, ThreadTimes>& from,
                                         const std::map<pid_t, ThreadTimes>& to, Nanos wall) {
  std::optional<ThreadTimes> busiest;
  Nanos running;
  for (const auto& [tid, end] : to) {
    const auto begin = from.find(tid);
    if (begin == from.end())
      continue;
    const ThreadTimes spent{end.running - begin->second.running, end.waiting - begin->second.waiting};
    running += spent.running;
    if (!busiest || spent.running > busiest->running)
      busiest = spent;
  }
  if (!busiest || wall <= Nanos(0))
    return std::nullopt;
  const Nanos by_siblings = running - busiest->running;
  return std::max(0.0, to_seconds(busiest->waiting - by_siblings) / to_seconds(wall));
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
  Sample s{now, waited, thread_times(getpid(), gettid()), {}};
  if (server_)
    s.server = times_of_threads(*server_);
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
  out.server_wait_share = foreign_wait_share(first_->server, last_->server, wall);
  return out;
}

}  // namespace goodput
