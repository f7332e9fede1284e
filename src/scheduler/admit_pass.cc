#include "base/check.h"
#include "scheduler/passes.h"

namespace goodput {
namespace {

bool fits(const Scheduling& s, const KvCache::Match& match, const Sequence& sequence, Tokens most) {
  if (sequence.size() - match.keep > most)
    return false;
  // One block more for a sequence that was preempted: at once evicted again, it would only burn compute. Alone it may
  // always go on.
  const Blocks margin(sequence.admitted_before && !s.running.empty() ? 1 : 0);
  return s.kv.needed(match, sequence.size()) + margin <= s.kv.available(match);
}

}  // namespace

bool admit(Scheduling& s, Sequence& sequence, Tokens most) {
  KvCache::Match match = s.kv.longest_prefix(sequence.tokens, sequence.request.cache_salt);
  if (!fits(s, match, sequence, most)) {
    match = {};  // where sharing copies, the prefix may be dearer than its recomputation
    if (!fits(s, match, sequence, most))
      return false;
  }
  const std::optional<Slot> slot = s.kv.admit(match, sequence.request.cache_salt, s.batch.ops);
  if (!slot)
    return false;
  CHECK(s.kv.grow(*slot, sequence.size(), s.batch.ops), "blocks that were counted as available");
  s.waiting.erase(sequence);
  s.running.push_back(&sequence);
  sequence.state = Sequence::State::kRunning;
  sequence.slot = slot;
  sequence.computed = match.keep;
  if (!sequence.admitted_before) {
    sequence.admitted_before = true;
    sequence.cached = match.keep;
    if (s.settings.enable_prefix_caching) {
      s.prefix_query_tokens += static_cast<uint64_t>(sequence.prompt.count());
      s.prefix_hit_tokens += static_cast<uint64_t>(match.keep.count());
    }
  }
  return true;
}

void admit_pass(Scheduling& s) {
  if (s.preempted)
    return;
  while (!s.waiting.empty() && static_cast<int>(s.running.size()) < s.settings.max_num_seqs) {
    if (s.budget() == Tokens(0))
      return;
    Sequence& head = s.waiting.at(0);
    if (!admit(s, head, s.settings.enable_chunked_prefill ? head.size() : s.budget()))
      return;
    s.plan(head, next_chunk(s, head.uncomputed()));
  }
}

}  // namespace goodput
