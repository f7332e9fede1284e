// What other threads ask of the engine, each with the time from which it counts: the one bounded queue between the
// engine's thread and all others. Thread-safe.
//
// A stamp is taken under the lock. So when the engine, at or after time T on the clock, takes everything up to T,
// nothing that was stamped T or earlier can still be on its way: what a boundary sees depends on times alone.
#pragma once

#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "engine/engine.h"

namespace goodput {

class Intake {
 public:
  Intake(const Settings&, const KvGeometry&, const Clock&);

  // From any thread.
  Result<RequestId> submit(EngineRequest);
  void finish(RequestId, FinishReason);
  void finish_all(FinishReason);
  void add_tokenization(Nanos);
  void close();  // submissions fail from now on
  SchedulerState state() const;

  // From the engine's thread.
  struct Finish {
    RequestId id;
    FinishReason reason;
  };
  struct Cancelled {
    EngineRequest request;
    FinishReason reason;
  };
  struct Taken {
    std::vector<Finish> finishes;         // of requests that have entered
    std::vector<EngineRequest> requests;  // by entry, then by submission; ids assigned
    std::vector<Cancelled> cancelled;     // finished before they entered
    Nanos tokenization;
  };
  // What counts from `now` or earlier; `out` is overwritten. Without `requests` none enters: a step is in flight.
  void take(TimePoint now, bool requests, Taken& out);
  void take_all(Taken& out);  // the same at the end of time
  // When the earliest thing that was not taken counts from.
  std::optional<TimePoint> next() const;
  // The state after a step, for callers of state() and for the queue's bound.
  void publish(const SchedulerState&);
  // The request has ended and its owner knows. True when none is left open.
  bool ended(RequestId);
  bool none_open() const;

 private:
  struct Waiting {
    TimePoint entry;
    EngineRequest request;
  };
  struct Finishing {
    TimePoint when;
    Finish finish;
  };
  enum class Stage : uint8_t { kWaiting, kEntered, kFinishing };  // finishing: a second finish() says nothing new
  void finish_locked(RequestId, Stage&, FinishReason);
  int queued(TimePoint now) const;

  const Settings settings_;
  const KvGeometry kv_;
  const Clock& clock_;
  mutable std::mutex mutex_;  // guards all below
  bool closed_ = false;
  uint64_t last_id_ = 0;
  std::deque<Waiting> waiting_;  // by entry
  std::vector<Finishing> finishing_;
  std::vector<Cancelled> cancelled_;
  std::map<RequestId, Stage> open_;  // accepted and not ended; ordered: finish_all() must not depend on hashes
  int moving_ = 0;                   // taken, and not in the published state yet
  Nanos tokenization_;
  SchedulerState state_;
};

}  // namespace goodput
