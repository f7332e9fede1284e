// Static batching, as it was before iteration-level scheduling (Orca, OSDI 2022, section 2): a batch is formed, all its
// prompts are prefilled, then all decode together; who ends leaves a hole, and nobody joins until everybody has ended.
#include <algorithm>

#include "scheduler/passes.h"

namespace goodput {

void decode_together_pass(Scheduling& s) {
  const bool prefilled = std::all_of(s.running.begin(), s.running.end(), [](Sequence* r) { return r->decodes(); });
  if (prefilled)
    decode_pass(s);
}

void form_pass(Scheduling& s) {
  if (!s.running.empty() || s.waiting.empty() || s.preempted)
    return;
  const auto seats = static_cast<size_t>(s.settings.max_num_seqs);
  if (s.waiting.size() < seats) {
    TimePoint oldest = s.waiting.at(0).request.arrival;
    for (size_t i = 1; i < s.waiting.size(); ++i)
      oldest = std::min(oldest, s.waiting.at(i).request.arrival);
    const TimePoint ready = oldest + s.settings.static_batch_wait;
    if (s.now < ready) {
      s.batch.wake_at = ready;
      return;
    }
  }
  while (!s.waiting.empty() && s.running.size() < seats) {
    Sequence& head = s.waiting.at(0);
    if (!admit(s, head, head.size()))
      break;
  }
  prefill_pass(s);
}

}  // namespace goodput
