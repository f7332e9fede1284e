// An EngineCore on a thread of its own, on a real or scaled clock, behind a thread-safe front: what `serve` talks to.
//
// Time here is logical, so that the same requests give the same batches as on virtual time: a request enters at the
// first step boundary at or after max(its arrival, its submission), a simulated step ends at start + duration exactly,
// and the clock only paces. A request may be submitted ahead of its arrival; it then waits for it without counting as
// queued.
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
  TimePoint started{};  // start of that step
  bool more = false;    // another update of the same step follows at once: no need to wake anybody yet
};

struct EngineRequest {
  Request request;  // `id` is assigned by the engine; `arrival` by the caller (receipt)
  SamplingParams sampling;
  // Called in order; the last call has Event::Kind::kEnded. After a finish(kAbort) by the owner it still comes.
  std::function<void(const RequestUpdate&)> on_update;
};

class Engine {
 public:
  Engine(std::unique_ptr<EngineCore>, std::unique_ptr<Clock>);
  ~Engine();  // ends what runs with kAbort, joins

  // Thread-safe. kUsage / kExhausted as Scheduler::submit, before anything is queued; kFailed once draining. Should the
  // engine refuse later (an executor without resources, a queue that preempted requests filled meanwhile), the request
  // ends with kError before any other update.
  Result<RequestId> submit(EngineRequest);
  // Ends a request early, at the end of the step in flight. Unknown and ended ids are ignored.
  void finish(RequestId, FinishReason);
  void add_tokenization(Nanos);
  SchedulerState state() const;  // as of the last step
  const Clock& clock() const;
  // No new requests; returns true when all have ended, false after `limit` (then they are aborted). One caller at a
  // time.
  bool drain(Nanos limit);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace goodput
