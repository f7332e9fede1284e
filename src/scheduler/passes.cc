// The lists of passes, one per kind of batching, and what several passes need. The scheduler's thread.
#include "scheduler/passes.h"

#include <algorithm>
#include <array>

#include "base/check.h"

namespace goodput {

Scheduling::Scheduling(const Settings& s, const KvGeometry& geometry)
    : settings(s),
      kv(geometry, s.enable_prefix_caching),
      waiting(static_cast<size_t>(s.max_num_queued_reqs) + static_cast<size_t>(s.max_num_seqs)) {
  const auto seats = static_cast<size_t>(s.max_num_seqs);
  running.reserve(seats);
  events.reserve(4 * seats);
  batch.sequences.reserve(seats);
  batch.ops.reserve(4 * seats);
}

std::span<const Pass> passes(Batching batching) {
  static constexpr std::array<Pass, 3> kContinuous{decode_pass, prefill_pass, admit_pass};
  static constexpr std::array<Pass, 3> kStatic{decode_together_pass, prefill_pass, form_pass};
  return batching == Batching::kStatic ? kStatic : kContinuous;
}

Tokens next_chunk(const Scheduling& s, Tokens uncomputed) {
  if (!s.settings.enable_chunked_prefill)
    return uncomputed <= s.budget() ? uncomputed : Tokens(0);
  const Tokens most = std::min(uncomputed, s.budget());
  const Tokens threshold = s.settings.long_prefill_token_threshold;
  return threshold > Tokens(0) ? std::min(most, threshold) : most;
}

}  // namespace goodput
