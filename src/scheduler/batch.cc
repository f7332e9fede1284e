// The shape of a batch: what the cost model and the step log know of it. Pure.
#include "scheduler/batch.h"

namespace goodput {

StepShape Batch::shape() const {
  StepShape shape;
  for (const ScheduledSequence& s : sequences) {
    const auto computed = static_cast<int64_t>(s.tokens.size());
    shape.kv_read += KvPairs(computed * (s.first.count() + computed));
    if (s.decode) {
      ++shape.decodes;
    } else {
      shape.prefill += Tokens(computed);
    }
  }
  return shape;
}

}  // namespace goodput
