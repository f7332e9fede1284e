// One scheduler joined to one executor: passive, single-threaded. `serve` drives one on a wall clock, `simulate` drives
// many on one virtual timeline. A step begins (next + run), lasts its duration, and ends (apply): an arrival or a cancel
// in between acts at the end, on every clock alike, so that virtual and scaled time give the same batches.
#pragma once

#include <memory>
#include <optional>
#include <span>

#include "engine/executor.h"
#include "metrics/record.h"
#include "scheduler/scheduler.h"

namespace goodput {

class EngineCore {
 public:
  // `steps` may be null. Neither clock nor thread: the caller says what time it is.
  static Result<std::unique_ptr<EngineCore>> create(const Settings&, std::unique_ptr<Executor>, StepSink* steps);
  ~EngineCore();

  // Errors as Scheduler::submit, and the executor's open().
  Result<void> submit(Request, const SamplingParams&);
  void finish(RequestId, FinishReason);

  struct Step {
    bool ran = false;                 // a batch is in flight until `until`
    std::optional<TimePoint> until;   // ran: its end (start + duration). Not ran: wake_at, if any
  };
  // Chooses and computes the next batch. Ops-only batches are carried out and ended at once.
  Step begin(TimePoint now);
  // Ends the batch in flight; `now` >= until. Events are valid until the next call.
  std::span<const Event> end(TimePoint now);

  bool idle() const;
  SchedulerState state() const;
  const Settings& settings() const;
  const Batch& batch() const;         // the batch in flight, for timelines
  Capabilities capabilities() const;
  void add_tokenization(Nanos);       // accounted to the next step record

 private:
  struct Impl;
  explicit EngineCore(std::unique_ptr<Impl>);
  std::unique_ptr<Impl> impl_;
};

}  // namespace goodput
