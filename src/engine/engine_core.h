// One scheduler joined to one executor: passive, single-threaded. `serve` drives one on a wall clock, `simulate` drives
// many on one virtual timeline. A step begins (next + run), lasts its duration, and ends (apply): an arrival or a
// cancel in between acts at the end, on every clock alike, so that virtual and scaled time give the same batches.
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
  // `steps` may be null. Neither clock nor thread: the caller says what time it is. `check_accounting`: after each step
  // the scheduler's KV length of every slot is held against the executor's (CHECK); absent: in builds with assertions.
  static Result<std::unique_ptr<EngineCore>> create(const Settings&, std::unique_ptr<Executor>, StepSink* steps,
                                                    std::optional<bool> check_accounting = std::nullopt);
  ~EngineCore();

  // Errors as Scheduler::submit, and the executor's open().
  Result<void> submit(Request, const SamplingParams&);
  // Ends a request early; its kEnded comes with the end() of the step in flight, else with take_events() after the next
  // begin().
  void finish(RequestId, FinishReason);

  struct Step {
    bool ran = false;                // a batch is in flight until `until`
    std::optional<TimePoint> until;  // ran: its end (start + duration). Not ran: wake_at, if any
  };
  // Chooses and computes the next batch. Batches without sequences (ops, events) are carried out and ended at once;
  // what they tell waits in take_events(). A caller that has no reason to let time pass between two steps gives the
  // `now` of the last end(): then the steps tile the busy time, and the record of each holds all that it cost.
  Step begin(TimePoint now);
  // Ends the batch in flight; `now` >= until (later where the executor is real and the clock says so). Events are valid
  // until the next call, and exclude those of take_events().
  std::span<const Event> end(TimePoint now);
  // Events that arose in begin(); valid until the next begin().
  std::span<const Event> take_events();

  bool idle() const;
  SchedulerState state() const;
  const Settings& settings() const;
  const Batch& batch() const;    // the batch in flight, for timelines
  TimePoint step_start() const;  // of the batch in flight or, after end(), of the one that ended
  Capabilities capabilities() const;
  bool modelled_time() const;    // the executor's: the caller lets the time until `until` pass
  void add_tokenization(Nanos);  // accounted to the next step record

 private:
  struct Impl;
  explicit EngineCore(std::unique_ptr<Impl>);
  std::unique_ptr<Impl> impl_;
};

}  // namespace goodput
