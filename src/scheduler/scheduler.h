// The engine's mind: which sequences compute which tokens in the next iteration. A passive, deterministic state
// machine without threads, clock or I/O: the same calls with the same times give the same batches, whether tokens are
// computed by a model or their duration comes from a cost model.
//
//   submit / finish … next(now) → run elsewhere → apply(result, now) → events
//
// Invariants (property-tested): tokens in a batch <= max_num_batched_tokens; admitted <= max_num_seqs; used +
// retained-only + free blocks = total; every accepted request ends exactly once; once submissions stop, all end within
// a bounded number of steps.
#pragma once

#include <memory>
#include <span>

#include "base/result.h"
#include "scheduler/batch.h"
#include "scheduler/capabilities.h"
#include "scheduler/cost.h"
#include "scheduler/settings.h"

namespace goodput {

// Gauges and counters, all since construction.
struct SchedulerState {
  int running = 0;     // admitted now
  int waiting = 0;     // queued now, preempted included
  Blocks used{0};      // blocks owned by running sequences
  Blocks retained{0};  // blocks owned by retained sequences only
  Blocks total{0};
  uint64_t preemptions = 0;
  uint64_t prefix_query_tokens = 0;  // prompt tokens looked up (first admissions only, as vLLM counts)
  uint64_t prefix_hit_tokens = 0;    // of them found
};

class Scheduler {
 public:
  // kUsage if the settings are impossible within the capabilities.
  static Result<std::unique_ptr<Scheduler>> create(const Settings&, const Capabilities&);
  ~Scheduler();

  // kUsage: the request can never run (empty prompt, too long for max_model_len or for the whole KV cache).
  // kExhausted: the queue is full. On error nothing is kept.
  Result<void> submit(Request);
  // Ends a request early (client gone, stop string, cancelled), with no further token. Its kEnded comes with the next
  // apply(); if nothing else is to be done, next() returns a batch with `events` set, so that there is one. Unknown
  // and ended ids are ignored.
  void finish(RequestId, FinishReason);
  void set_cost(const StepCost&);

  // The next batch. One batch may be in flight: next() and apply() alternate; a batch that is empty() takes no
  // apply(). A batch without sequences (only ops or events) is carried out and applied at once, with a result
  // without sequences. The reference is valid until the following apply() or next().
  const Batch& next(TimePoint now);
  // `result` belongs to the batch that next() returned. Events are valid until the next apply().
  std::span<const Event> apply(const StepResult& result, TimePoint now);

  // Nothing waits, nothing runs, every event is told and every op handed out: the KV of the last request that ended
  // is given back by the next() after its apply(), as a batch of ops only.
  bool idle() const;
  SchedulerState state() const;
  const Settings& settings() const;
  // KV tokens that the slot must hold after the last apply(), for checking against the executor. 0 for slots in no use
  // and beyond the geometry.
  Tokens kv_length(Slot) const;

 private:
  struct Impl;
  explicit Scheduler(std::unique_ptr<Impl>);
  std::unique_ptr<Impl> impl_;
};

}  // namespace goodput
