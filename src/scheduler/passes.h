// How a batch is made: a fixed list of passes, each a free function in its own file, over one plain state. The list
// depends on the kind of batching (passes.cc), order among sequences on the policy's key alone, so a new idea is a new
// pass or a new key, never a condition inside another pass.
//
// The semantics are those of vLLM's V1 scheduler (vllm/v1/core/sched/scheduler.py): what runs comes first, then who
// waits, while seats, budget and KV last. One thing is stricter: a sequence is admitted with the blocks of all its
// present tokens, so that only decoding can run out of KV.
#pragma once

#include <span>
#include <vector>

#include "scheduler/batch.h"
#include "scheduler/kv_cache.h"
#include "scheduler/sequence.h"
#include "scheduler/settings.h"
#include "scheduler/waiting_queue.h"

namespace goodput {

struct Scheduling {
  Scheduling(const Settings& settings, const KvGeometry& geometry);

  const Settings settings;
  KvCache kv;
  WaitingQueue waiting;
  std::vector<Sequence*> running;  // in order of admission
  std::vector<Event> events;       // not told yet
  uint64_t preemptions = 0, prefix_query_tokens = 0, prefix_hit_tokens = 0;

  // Of the batch that is being made.
  TimePoint now;
  Batch batch;             // ops, total and wake_at; sequences follow from `planned`
  bool preempted = false;  // somebody was: nobody is admitted

  Tokens budget() const { return settings.max_num_batched_tokens - batch.total; }
  void plan(Sequence& s, Tokens tokens) {
    s.planned = tokens;
    batch.total += tokens;
  }
};

using Pass = void (*)(Scheduling&);
std::span<const Pass> passes(Batching);

// One token for each sequence that decodes; where a block cannot be had, the worst running sequence is preempted.
void decode_pass(Scheduling&);
// Running sequences whose tokens are not all computed go on, in order of admission, within the budget.
void prefill_pass(Scheduling&);
// Who waits, best first, strictly: the first that does not fit stops the pass. Only one whose prefix is just being
// computed by another is looked past, at most limits::kMaxHeldRequests in a step.
void admit_pass(Scheduling&);
// Static batching: decodes only when every running sequence is prefilled.
void decode_together_pass(Scheduling&);
// Static batching: forms a batch when nothing runs and max_num_seqs wait, or the oldest has waited long enough.
void form_pass(Scheduling&);

// Shared by passes.

// Tokens of `uncomputed` that may be computed now: within the budget and long_prefill_token_threshold; all or none when
// prefill is not chunked.
Tokens next_chunk(const Scheduling&, Tokens uncomputed);
// Takes the sequence out of the queue into a slot, with its cached prefix and room for all its tokens. False: there is
// no room, or more than `most` tokens would have to be computed.
bool admit(Scheduling&, Sequence&, Tokens most);
// Back to the queue, tokens kept; its KV stays findable until the room is needed. The caller removes it from `running`.
void preempt(Scheduling&, Sequence&);
// The part of a preemption that is also true when the executor has lost the KV.
void requeue(Scheduling&, Sequence&);

}  // namespace goodput
