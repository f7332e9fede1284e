// Prompts that are under way. Their blocks were taken at admission, so this pass cannot run out of KV, only of budget.
#include "scheduler/passes.h"

namespace goodput {

void prefill_pass(Scheduling& s) {
  for (Sequence* sequence : s.running) {
    if (sequence->planned > Tokens(0) || sequence->decodes())
      continue;
    const Tokens chunk = next_chunk(s, sequence->uncomputed());
    if (chunk == Tokens(0))
      return;
    s.plan(*sequence, chunk);
  }
}

}  // namespace goodput
