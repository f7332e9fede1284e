// The shape of a batch: what the cost model and the step log know of it; and how it is cut into forward passes. Pure.
#include "scheduler/batch.h"

#include <algorithm>

namespace goodput {
namespace {

constexpr int kDecodesPerPass = kDenseTokens.count() - 1;

int passes_for(int decodes) { return (decodes + kDecodesPerPass - 1) / kDecodesPerPass; }

}  // namespace

StepShape Batch::shape() const {
  StepShape shape;
  KvPairs of_decodes{0}, of_prefill{0};
  for (const ScheduledSequence& s : sequences) {
    const auto computed = static_cast<int64_t>(s.tokens.size());
    const KvPairs pairs(computed * (s.first.count() + computed));
    if (s.decode) {
      ++shape.decodes;
      of_decodes += pairs;
    } else {
      shape.prefill += Tokens(computed);
      of_prefill += pairs;
    }
  }
  const int64_t cells = live.count();
  const Tokens decode_tokens = total - shape.prefill;
  shape.kv_read = of_decodes;
  shape.kv_scanned = KvPairs(decode_tokens.count() * cells);
  const KvPairs of_all_kv(shape.prefill.count() * cells);
  (shape.prefill < kDenseTokens ? shape.kv_read : shape.kv_tiled) += of_prefill;
  (shape.prefill < kDenseTokens ? shape.kv_scanned : shape.kv_dense) += of_all_kv;
  if (total >= kDenseTokens)
    shape.passes = std::max(1, passes_for(shape.decodes) + (shape.prefill > Tokens(0) ? 1 : 0));
  return shape;
}

int forward_passes(const Batch& batch, std::vector<int>& pass_of_sequence) {
  pass_of_sequence.assign(batch.sequences.size(), 0);
  if (batch.total < kDenseTokens)
    return 1;
  int decodes = 0;
  for (size_t i = 0; i < batch.sequences.size(); ++i) {
    if (batch.sequences[i].decode)
      pass_of_sequence[i] = decodes++ / kDecodesPerPass;
  }
  const int first_prefill = passes_for(decodes);
  int passes = first_prefill;
  for (size_t i = 0; i < batch.sequences.size(); ++i) {
    if (!batch.sequences[i].decode) {
      pass_of_sequence[i] = first_prefill;
      passes = first_prefill + 1;
    }
  }
  return std::max(1, passes);
}

}  // namespace goodput
