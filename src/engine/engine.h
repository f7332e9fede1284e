// An EngineCore on a thread of its own, on a real or scaled clock, behind a thread-safe front: what `serve` talks to.
#pragma once

#include <functional>
#include <memory>

#include "base/clock.h"
#include "engine/engine_core.h"

namespace goodput {

// What a request's owner hears, on the engine's thread: must return quickly and never call back into the engine.
struct RequestUpdate {
  Event event;
  TimePoint at;         // end of the step that made it
};

struct EngineRequest {
  Request request;      // `id` is assigned by the engine; `arrival` by the caller (receipt)
  SamplingParams sampling;
  // Called in order; the last call has Event::Kind::kEnded. After a finish(kAbort) by the owner it still comes.
  std::function<void(const RequestUpdate&)> on_update;
};

class Engine {
 public:
  Engine(std::unique_ptr<EngineCore>, std::unique_ptr<Clock>);
  ~Engine();  // aborts what runs, joins

  // Thread-safe. kUsage / kExhausted as Scheduler::submit, before anything is queued; kFailed once draining.
  Result<RequestId> submit(EngineRequest);
  void finish(RequestId, FinishReason);
  void add_tokenization(Nanos);
  SchedulerState state() const;      // as of the last step
  const Clock& clock() const;
  // No new requests; returns true when all have ended, false after `limit` (then they are aborted).
  bool drain(Nanos limit);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace goodput
