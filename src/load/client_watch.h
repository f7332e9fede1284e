// The generator watches itself: how busy its loop was, how long its thread (and the server's) waited for a processor,
// and whether the clock stepped. From these a point is refused that the client, not the server, made. One thread.
#pragma once

#include <sys/types.h>

#include <optional>

#include "base/process.h"
#include "metrics/summary.h"

namespace goodput {

class ClientWatch {
 public:
  explicit ClientWatch(std::optional<pid_t> server) : server_(server) {}

  // Once a second: CLOCK_REALTIME − CLOCK_MONOTONIC, which only moves when somebody sets the clock.
  void clock_offset(Nanos offset);
  // The window begins and ends; `waited` is the loop's waiting time so far.
  void begin(TimePoint now, Nanos waited);
  void end(TimePoint now, Nanos waited);
  bool began() const { return first_.has_value(); }
  bool ended() const { return last_.has_value(); }

  ClientAudit audit() const;

 private:
  struct Sample {
    TimePoint now;
    Nanos waited;
    std::optional<ThreadTimes> client;
    std::map<pid_t, ThreadTimes> server;
  };
  Sample sample(TimePoint now, Nanos waited) const;

  std::optional<pid_t> server_;
  std::optional<Nanos> offset_;
  std::optional<Sample> first_, last_;
  bool stepped_ = false;
};

}  // namespace goodput
