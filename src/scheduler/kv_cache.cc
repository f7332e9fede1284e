// Blocks, slots and the table of prefixes; see the header for the rules. Only shorten(), set_state(), add_owner() and
// drop_owner() touch the gauges, all through count(), so that they cannot drift from the links. The scheduler's thread.
#include "scheduler/kv_cache.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/check.h"
#include "base/random.h"

namespace goodput {

KvCache::KvCache(const KvGeometry& geometry, bool prefix_caching, uint64_t hash_mask)
    : geometry_(geometry),
      block_size_(geometry.block_size.count()),
      caching_(prefix_caching && geometry.can_truncate),
      hash_mask_(hash_mask),
      slots_(static_cast<size_t>(geometry.slots)),
      blocks_(static_cast<size_t>(geometry.total.count())),
      buckets_(std::bit_ceil(blocks_.size()), kNone) {
  CHECK(block_size_ > 0 && geometry.slots > 0 && geometry.slots <= limits::kMaxSlots && !blocks_.empty());
  if (caching_)
    contents_.resize(blocks_.size() * static_cast<size_t>(block_size_));
  free_blocks_.reserve(blocks_.size());
  for (int32_t b = geometry.total.count() - 1; b >= 0; --b)
    free_blocks_.push_back(b);  // lowest on top
  for (size_t slot = 0; slot < slots_.size(); ++slot)
    shorten(slot, 0);
}

// ---------------------------------------------------------------- finding prefixes

// Not against adversaries: a collision costs a shorter match, never a wrong one, since every match is verified.
uint64_t KvCache::hash_block(uint64_t parent, const TokenId* tokens) const {
  uint64_t h = parent;
  for (int32_t i = 0; i < block_size_; ++i) {
    h = (h ^ static_cast<uint32_t>(tokens[i])) * 0x9E3779B97F4A7C15ull;
    h ^= h >> 32;
  }
  return h & hash_mask_;
}

bool KvCache::same_tokens(int32_t block, const TokenId* tokens) const {
  const size_t n = static_cast<size_t>(block_size_);
  return std::memcmp(&contents_[static_cast<size_t>(block) * n], tokens, n * sizeof(TokenId)) == 0;
}

int32_t KvCache::find_block(uint64_t hash) const {
  int32_t b = buckets_[hash & (buckets_.size() - 1)];
  while (b != kNone && blocks_[b].hash != hash)
    b = blocks_[b].next;
  return b;
}

// Of the slots that hold the block: a retained one that ends with it (it can be reused in place), else the lowest.
size_t KvCache::best_owner(int32_t block, size_t blocks) const {
  size_t lowest = slots_.size();
  for (size_t word = blocks_[block].owners.size(); word-- > 0;) {
    for (uint64_t bits = blocks_[block].owners[word]; bits != 0; bits &= bits - 1) {
      const size_t slot = word * 64 + static_cast<size_t>(std::countr_zero(bits));
      if (slots_[slot].state == State::kRetained && slots_[slot].blocks.size() == blocks)
        return slot;
      lowest = std::min(lowest, slot);
    }
  }
  return lowest;
}

KvCache::Match KvCache::longest_prefix(std::span<const TokenId> tokens, uint64_t salt) const {
  if (!caching_ || tokens.empty())
    return {};
  const size_t size = static_cast<size_t>(block_size_);
  const size_t most = (tokens.size() - 1) / size;
  uint64_t hash = mix64(salt);
  int32_t deepest = kNone;
  size_t found = 0;
  for (; found < most; ++found) {
    hash = hash_block(hash, &tokens[found * size]);
    const int32_t block = find_block(hash);
    if (block == kNone)
      break;
    deepest = block;
  }
  if (deepest == kNone)
    return {};
  const size_t slot = best_owner(deepest, found);
  const SlotInfo& owner = slots_[slot];
  if (owner.salt != salt)
    return {};
  // Blocks that are not computed yet have no content to compare: only a collision can lead to them.
  const size_t most_same = std::min(found, static_cast<size_t>(owner.length) / size);
  size_t same = 0;
  while (same < most_same && same_tokens(owner.blocks[same], &tokens[same * size]))
    ++same;
  if (same == 0)
    return {};
  return {Slot(static_cast<int32_t>(slot)), Tokens(same * size)};
}

bool KvCache::in_place(const Match& match) const {
  if (!match.from)
    return false;
  const SlotInfo& s = slots_[index(*match.from)];
  return s.state == State::kRetained && s.length == match.keep.count();
}

Blocks KvCache::available(const Match& match) const {
  int32_t kept = 0;  // blocks of the match that only retained sequences hold: they will not be evicted for it
  for (int32_t i = 0; i < match.keep.count() / block_size_; ++i) {
    kept += blocks_[slots_[index(*match.from)].blocks[i]].runners == 0;
  }
  return Blocks(static_cast<int32_t>(free_blocks_.size()) + retained_ - kept);
}

Blocks KvCache::needed(const Match& match, Tokens tokens) const {
  const bool copies = geometry_.share_copies && !in_place(match);
  return blocks_for(tokens, geometry_.block_size) - Blocks(copies ? 0 : match.keep.count() / block_size_);
}

// ---------------------------------------------------------------- ownership

std::optional<Slot> KvCache::admit(const Match& match, uint64_t salt, std::vector<KvOp>& ops) {
  if (in_place(match)) {
    set_state(index(*match.from), State::kRunning);
    return match.from;
  }
  std::optional<size_t> slot = free_slot();
  if (!slot) {
    slot = least_recently_used(match.from);
    if (slot) {
      shorten_retained(*slot, 0, ops);
    } else if (match.from && slots_[index(*match.from)].state == State::kRetained) {  // the only one that is left
      shorten_retained(index(*match.from), static_cast<size_t>(match.keep.count() / block_size_), ops);
      set_state(index(*match.from), State::kRunning);
      return match.from;
    } else {
      return std::nullopt;
    }
  }
  SlotInfo& s = slots_[*slot];
  s.state = State::kRunning;  // owns nothing yet
  s.salt = salt;
  const Slot admitted(static_cast<int32_t>(*slot));
  if (match.from && !share(admitted, match, ops)) {
    s.state = State::kFree;
    return std::nullopt;
  }
  return admitted;
}

bool KvCache::share(Slot slot, const Match& match, std::vector<KvOp>& ops) {
  SlotInfo& source = slots_[index(*match.from)];
  source.last_used = ++uses_;
  const size_t count = static_cast<size_t>(match.keep.count() / block_size_);
  if (geometry_.share_copies) {
    const State before = source.state;
    set_state(index(*match.from), State::kRunning);  // not to be evicted for its own copy
    const bool room = take_blocks(slot, match.keep, ops);
    set_state(index(*match.from), before);
    if (!room)
      return false;
  } else {
    for (size_t i = 0; i < count; ++i) {
      slots_[index(slot)].blocks.push_back(source.blocks[i]);
      add_owner(source.blocks[i], index(slot));
    }
  }
  SlotInfo& s = slots_[index(slot)];
  s.length = match.keep.count();
  s.next_block_at = s.length + block_size_;
  for (size_t i = 0; i < count && geometry_.share_copies; ++i) {
    enter(s.blocks[i], blocks_[source.blocks[i]].hash, &contents_[static_cast<size_t>(source.blocks[i]) * block_size_]);
  }
  ops.push_back({KvOp::Kind::kShare, slot, *match.from, match.keep});
  return true;
}

bool KvCache::take_blocks(Slot slot, Tokens to, std::vector<KvOp>& ops) {
  SlotInfo& s = slots_[index(slot)];
  const Blocks want = blocks_for(to, geometry_.block_size);
  const auto more = want.count() - static_cast<int32_t>(s.blocks.size());
  if (want > geometry_.per_slot || !evict(more, ops))
    return false;
  for (int32_t i = 0; i < more; ++i) {
    const int32_t block = free_blocks_.back();
    free_blocks_.pop_back();
    s.blocks.push_back(block);
    add_owner(block, index(slot));
  }
  return true;
}

void KvCache::release(Slot slot, bool retain, std::vector<KvOp>& ops) {
  SlotInfo& s = slots_[index(slot)];
  CHECK(s.state == State::kRunning, "release of a slot that does not run");
  const size_t whole = static_cast<size_t>(s.length / block_size_);
  const bool held = s.length > 0;
  if (!caching_ || !retain || whole == 0 || shared(s.blocks[whole - 1])) {
    shorten(index(slot), 0);
    s.state = State::kFree;
    if (held)
      ops.push_back({KvOp::Kind::kRelease, slot, {}, Tokens(0)});
    return;
  }
  const Tokens keep(whole * static_cast<size_t>(block_size_));
  if (s.length > keep.count())
    ops.push_back({KvOp::Kind::kTruncate, slot, {}, keep});
  shorten(index(slot), whole);
  set_state(index(slot), State::kRetained);
  s.last_used = ++uses_;
}

void KvCache::lost(Slot slot) {
  CHECK(slots_[index(slot)].state == State::kRunning, "lost a slot that does not run");
  shorten(index(slot), 0);
  slots_[index(slot)].state = State::kFree;
}

void KvCache::register_blocks(Slot slot, std::span<const TokenId> tokens) {
  SlotInfo& s = slots_[index(slot)];
  s.length = static_cast<int32_t>(tokens.size());
  for (; s.next_block_at <= s.length; s.next_block_at += block_size_) {
    const size_t i = static_cast<size_t>(s.next_block_at / block_size_ - 1);
    const uint64_t parent = i == 0 ? mix64(s.salt) : blocks_[s.blocks[i - 1]].hash;
    const TokenId* content = &tokens[i * static_cast<size_t>(block_size_)];
    enter(s.blocks[i], hash_block(parent, content), content);
  }
}

Tokens KvCache::length(Slot slot) const {
  const bool known = slot.value() >= 0 && index(slot) < slots_.size();
  return Tokens(known ? slots_[index(slot)].length : 0);
}

// ---------------------------------------------------------------- eviction

// Shortens retained sequences until so many blocks are free.
bool KvCache::evict(int32_t blocks, std::vector<KvOp>& ops) {
  if (static_cast<int32_t>(free_blocks_.size()) + retained_ < blocks)
    return false;
  while (static_cast<int32_t>(free_blocks_.size()) < blocks) {
    const std::optional<size_t> victim = least_recently_used(std::nullopt);
    CHECK(victim, "retained blocks without a retained slot");
    // A block that others hold too gives no room: how far to go is found by counting those that do.
    size_t keep = slots_[*victim].blocks.size();
    auto room = static_cast<int32_t>(free_blocks_.size());
    for (; keep > 0 && room < blocks; --keep)
      room += !shared(slots_[*victim].blocks[keep - 1]);
    shorten_retained(*victim, keep, ops);
  }
  return true;
}

void KvCache::shorten_retained(size_t slot, size_t blocks, std::vector<KvOp>& ops) {
  const Slot name(static_cast<int32_t>(slot));
  shorten(slot, blocks);
  if (blocks == 0) {
    slots_[slot].state = State::kFree;
    ops.push_back({KvOp::Kind::kRelease, name, {}, Tokens(0)});
  } else {
    ops.push_back({KvOp::Kind::kTruncate, name, {}, Tokens(slots_[slot].length)});
  }
}

std::optional<size_t> KvCache::least_recently_used(std::optional<Slot> except) const {
  std::optional<size_t> best;
  for (size_t i = 0; i < slots_.size(); ++i) {
    if (slots_[i].state != State::kRetained || (except && index(*except) == i))
      continue;
    if (!best || slots_[i].last_used < slots_[*best].last_used)
      best = i;
  }
  return best;
}

std::optional<size_t> KvCache::free_slot() const {
  for (size_t i = 0; i < slots_.size(); ++i) {
    if (slots_[i].state == State::kFree)
      return i;
  }
  return std::nullopt;
}

// ---------------------------------------------------------------- bookkeeping

void KvCache::shorten(size_t slot, size_t blocks) {
  SlotInfo& s = slots_[slot];
  while (s.blocks.size() > blocks) {
    drop_owner(s.blocks.back(), slot);
    s.blocks.pop_back();
  }
  s.length = std::min(s.length, static_cast<int32_t>(blocks) * block_size_);
  s.next_block_at = caching_ ? s.length + block_size_ : INT32_MAX;
}

void KvCache::set_state(size_t slot, State state) {
  SlotInfo& s = slots_[slot];
  const int change = (state == State::kRunning) - (s.state == State::kRunning);
  for (const int32_t b : s.blocks) {
    count(b, -1);
    blocks_[b].runners = static_cast<int16_t>(blocks_[b].runners + change);
    count(b, +1);
  }
  s.state = state;
}

void KvCache::add_owner(int32_t block, size_t slot) {
  Block& b = blocks_[block];
  count(block, -1);
  b.owners[slot / 64] |= uint64_t{1} << slot % 64;
  b.runners = static_cast<int16_t>(b.runners + (slots_[slot].state == State::kRunning));
  count(block, +1);
}

void KvCache::drop_owner(int32_t block, size_t slot) {
  Block& b = blocks_[block];
  count(block, -1);
  b.owners[slot / 64] &= ~(uint64_t{1} << slot % 64);
  b.runners = static_cast<int16_t>(b.runners - (slots_[slot].state == State::kRunning));
  count(block, +1);
  if (owners(block) > 0)
    return;
  if (b.registered)
    leave(block);
  free_blocks_.push_back(block);
}

// Adds to the gauge that the block belongs to.
void KvCache::count(int32_t block, int change) {
  if (blocks_[block].runners > 0) {
    used_ += change;
  } else if (owners(block) > 0) {
    retained_ += change;
  }
}

int KvCache::owners(int32_t block) const {
  int n = 0;
  for (const uint64_t word : blocks_[block].owners)
    n += std::popcount(word);
  return n;
}

void KvCache::enter(int32_t block, uint64_t hash, const TokenId* tokens) {
  const size_t n = static_cast<size_t>(block_size_);
  std::copy_n(tokens, n, &contents_[static_cast<size_t>(block) * n]);
  int32_t& head = buckets_[hash & (buckets_.size() - 1)];
  blocks_[block].hash = hash;
  blocks_[block].registered = true;
  blocks_[block].next = head;
  head = block;
}

void KvCache::leave(int32_t block) {
  int32_t* link = &buckets_[blocks_[block].hash & (buckets_.size() - 1)];
  while (*link != block)
    link = &blocks_[*link].next;
  *link = blocks_[block].next;
  blocks_[block].registered = false;
}

void KvCache::verify() const {
  int32_t used_now = 0, retained_now = 0, free_now = 0;
  for (size_t b = 0; b < blocks_.size(); ++b) {
    int32_t holders = 0, running = 0;
    for (size_t i = 0; i < slots_.size(); ++i) {
      const SlotInfo& s = slots_[i];
      const auto n = std::count(s.blocks.begin(), s.blocks.end(), static_cast<int32_t>(b));
      CHECK(n <= 1, "a slot holds a block twice");
      CHECK((n == 1) == ((blocks_[b].owners[i / 64] >> i % 64 & 1) == 1), "owner bits");
      holders += static_cast<int32_t>(n);
      running += n == 1 && s.state == State::kRunning;
    }
    CHECK(running == blocks_[b].runners, "runners");
    CHECK(holders == 0 || static_cast<size_t>(holders) <= slots_.size());
    (running > 0 ? used_now : holders > 0 ? retained_now : free_now) += 1;
  }
  CHECK(used_now == used_ && retained_now == retained_, "gauges");
  CHECK(free_now == static_cast<int32_t>(free_blocks_.size()), "free blocks");
  CHECK(used_now + retained_now + free_now == geometry_.total.count(), "blocks are conserved");
  for (const SlotInfo& s : slots_) {
    CHECK(s.state != State::kFree || (s.blocks.empty() && s.length == 0), "a free slot owns something");
    CHECK(s.state != State::kRetained || s.length == static_cast<int32_t>(s.blocks.size()) * block_size_, "retained");
    CHECK(s.length <= static_cast<int32_t>(s.blocks.size()) * block_size_, "more tokens than room");
  }
}

}  // namespace goodput
