// Admission: seats, budget and KV for who waits, in strict order. A sequence enters only with room for all its tokens:
// half-admitted prompts that then evict each other compute without ever finishing.
#include <algorithm>

#include "base/check.h"
#include "base/limits.h"
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

namespace {

// Whether most of what the sequence would compute now is just being computed by a running one, and can be shared when
// it is done. A prompt that several clients send at once is then computed once, instead of as often as it fits in an
// iteration. Sequences that run make progress or leave, so nobody is held for ever.
bool better_held(const Scheduling& s, const Sequence& sequence) {
  if (!s.kv.caching())
    return false;
  Tokens coming{0};  // the longest prefix in the making
  for (const Sequence* r : s.running) {
    if (r->decodes() || r->request.cache_salt != sequence.request.cache_salt)
      continue;
    const size_t most = std::min(r->tokens.size(), sequence.tokens.size() - 1);
    const auto end = r->tokens.begin() + static_cast<std::ptrdiff_t>(most);
    const auto same = std::mismatch(r->tokens.begin(), end, sequence.tokens.begin()).first - r->tokens.begin();
    const int32_t block = s.settings.block_size.count();
    const Tokens common(same / block * block);
    if (common > r->computed)
      coming = std::max(coming, common);
  }
  if (coming == Tokens(0))
    return false;
  const Tokens keep = s.kv.longest_prefix(sequence.tokens, sequence.request.cache_salt).keep;
  return 2 * (coming - keep) > next_chunk(s, sequence.size() - keep);
}

}  // namespace

void admit_pass(Scheduling& s) {
  if (s.preempted)
    return;
  size_t held = 0;
  while (held < s.waiting.size() && held < limits::kMaxHeldRequests &&
         static_cast<int>(s.running.size()) < s.settings.max_num_seqs) {
    if (s.budget() == Tokens(0))
      return;
    Sequence& next = s.waiting.at(held);
    if (better_held(s, next)) {
      ++held;
      continue;
    }
    if (!admit(s, next, s.settings.enable_chunked_prefill ? next.size() : s.budget()))
      return;
    s.plan(next, next_chunk(s, next.uncomputed()));
  }
}

}  // namespace goodput
