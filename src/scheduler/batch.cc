// The shape of a batch: what the cost model and the step log know of it. Pure.
#include "scheduler/batch.h"

namespace goodput {

StepShape Batch::shape() const {
  StepShape shape;
  const KvPairs all(int64_t{total.count()} * live.count());
  (total < kDenseTokens ? shape.kv_scanned : shape.kv_dense) = all;
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
