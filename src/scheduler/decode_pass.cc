// Decoding, and what follows from it: only a sequence that grows by a token can find the KV full, so preemption lives
// here. The victim is the worst by the policy's key, whoever asks; it may be the one that asks.
#include <algorithm>

#include "base/check.h"
#include "scheduler/passes.h"

namespace goodput {

void requeue(Scheduling& s, Sequence& sequence) {
  s.batch.total -= sequence.planned;
  sequence.planned = Tokens(0);
  sequence.computed = Tokens(0);
  sequence.slot.reset();
  sequence.state = Sequence::State::kWaiting;
  s.waiting.insert(sequence);
  ++s.preemptions;
  s.events.push_back(
      {.kind = Event::Kind::kPreempted, .id = sequence.request.id, .in_prefill = sequence.generated() == Tokens(0)});
}

void preempt(Scheduling& s, Sequence& sequence) {
  s.kv.release(*sequence.slot, true, s.batch.ops);
  requeue(s, sequence);
  s.preempted = true;
}

namespace {

Sequence& worst_running(const Scheduling& s) {
  Sequence* worst = nullptr;
  for (Sequence* r : s.running) {
    if (r->state == Sequence::State::kRunning && (worst == nullptr || worst->key < r->key))
      worst = r;
  }
  CHECK(worst != nullptr, "a sequence that runs alone must fit (submit has checked it)");
  return *worst;
}

}  // namespace

void decode_pass(Scheduling& s) {
  for (Sequence* sequence : s.running) {
    if (sequence->state != Sequence::State::kRunning || !sequence->decodes())
      continue;
    while (!s.kv.grow(*sequence->slot, sequence->size(), s.batch.ops)) {
      preempt(s, worst_running(s));
      if (sequence->state != Sequence::State::kRunning)
        break;
    }
    if (sequence->state == Sequence::State::kRunning)
      s.plan(*sequence, Tokens(1));
  }
  if (s.preempted) {
    std::erase_if(s.running, [](const Sequence* r) { return r->state != Sequence::State::kRunning; });
  }
}

}  // namespace goodput
