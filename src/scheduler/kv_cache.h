// Who owns which KV. The sole owner of slots (sequence ids of the executor) and blocks (the accounting unit): every
// change of ownership is made here and appended as a KvOp for the executor, so that both sides always agree.
//
// A slot is free, running, or retained (its request has ended or was preempted; its KV stays until the room is needed).
// A block belongs to one slot, or to several that share a prefix of whole blocks, and is counted once:
//     used (of a running slot) + retained (of retained slots only) + free == total.
// Prefixes are found by a chained hash of (salt, blocks) and then verified token by token: an equal hash is never
// believed. A sequence keeps its blocks from position 0 on, so one that holds a block also holds all before it, and a
// retained sequence can be shortened from its tail without harm to those that share its beginning.
// One thread (the scheduler's). No allocation in steady state: slots keep their vectors.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <vector>

#include "base/limits.h"
#include "scheduler/batch.h"
#include "scheduler/capabilities.h"

namespace goodput {

class KvCache {
 public:
  // The longest prefix that some slot holds: whole blocks, less than the sequence's tokens, so that its last token is
  // always computed. Without `from`, keep is 0.
  struct Match {
    std::optional<Slot> from;
    Tokens keep{0};
  };

  // `prefix_caching` off: nothing is matched or retained. The same where the executor cannot truncate. `hash_mask`:
  // tests narrow the hash, so that collisions are common.
  KvCache(const KvGeometry&, bool prefix_caching, uint64_t hash_mask = ~uint64_t{0});

  Match longest_prefix(std::span<const TokenId> tokens, uint64_t salt) const;
  bool caching() const { return caching_; }

  // Blocks that could be had for a sequence beyond those of `match`: free and evictable ones.
  Blocks available(const Match& match) const;
  // Blocks that a sequence of so many tokens needs beyond those of `match`.
  Blocks needed(const Match& match, Tokens tokens) const;

  // A running slot that holds match.keep tokens: the matched one itself where it is retained and nothing of it is lost
  // by that, else the lowest free slot, with the prefix shared. If none is free the least recently used retained slot
  // is evicted. nullopt: every slot runs, or copies of shared blocks do not fit.
  std::optional<Slot> admit(const Match&, uint64_t salt, std::vector<KvOp>& ops);
  // Makes room for `to` tokens in a running slot, shortening retained sequences, least recently used first. False:
  // there is no room, and nothing has changed.
  bool grow(Slot slot, Tokens to, std::vector<KvOp>& ops) {
    if (to.count() <= static_cast<int64_t>(slots_[index(slot)].blocks.size()) * block_size_)
      return true;
    return take_blocks(slot, to, ops);
  }
  // The running slot has computed exactly `tokens`, an extension of what it held, within the room it has.
  void commit(Slot slot, std::span<const TokenId> tokens) {
    SlotInfo& s = slots_[index(slot)];
    const auto length = static_cast<int32_t>(tokens.size());
    if (length < s.next_block_at) {
      s.length = length;
    } else {
      register_blocks(slot, tokens);
    }
  }
  // A running slot ends. `retain`: its whole blocks stay, to be found, unless another slot holds them too.
  void release(Slot, bool retain, std::vector<KvOp>& ops);
  // The executor has emptied the running slot by itself: free, without an op.
  void lost(Slot);

  Tokens length(Slot) const;  // KV tokens; 0 unless running or retained
  Blocks used() const { return Blocks(used_); }
  Blocks retained() const { return Blocks(retained_); }
  Blocks free() const { return Blocks(static_cast<int32_t>(free_blocks_.size())); }
  Blocks total() const { return geometry_.total; }
  // Recounts everything and CHECKs it against the counters and the links; for tests.
  void verify() const;

 private:
  static constexpr int32_t kNone = -1;
  enum class State : uint8_t { kFree, kRunning, kRetained };

  struct SlotInfo {
    State state = State::kFree;
    int32_t length = 0;         // tokens computed
    int32_t next_block_at = 0;  // the length at which the next block is whole
    uint64_t salt = 0;
    uint64_t last_used = 0;
    std::vector<int32_t> blocks;
  };
  struct Block {
    std::array<uint64_t, limits::kMaxSlots / 64> owners{};  // bit per slot
    uint64_t hash = 0;                                      // of the chain up to and including this block
    int32_t next = kNone;                                   // in its bucket
    int16_t runners = 0;                                    // owners that run
    bool registered = false;                                // whole, and in the table
  };

  static size_t index(Slot slot) { return static_cast<size_t>(slot.value()); }
  uint64_t hash_block(uint64_t parent, const TokenId* tokens) const;
  bool same_tokens(int32_t block, const TokenId* tokens) const;
  int32_t find_block(uint64_t hash) const;
  size_t best_owner(int32_t block, size_t blocks) const;
  bool in_place(const Match&) const;
  int owners(int32_t block) const;
  bool shared(int32_t block) const { return owners(block) > 1; }

  bool share(Slot, const Match&, std::vector<KvOp>& ops);
  bool take_blocks(Slot, Tokens to, std::vector<KvOp>& ops);
  bool evict(int32_t blocks, std::vector<KvOp>& ops);
  void shorten_retained(size_t slot, size_t blocks, std::vector<KvOp>& ops);
  std::optional<size_t> least_recently_used(std::optional<Slot> except) const;
  std::optional<size_t> free_slot() const;

  void register_blocks(Slot, std::span<const TokenId> tokens);
  void enter(int32_t block, uint64_t hash, const TokenId* tokens);
  void leave(int32_t block);
  void add_owner(int32_t block, size_t slot);
  void drop_owner(int32_t block, size_t slot);
  void count(int32_t block, int change);
  void set_state(size_t slot, State);
  void shorten(size_t slot, size_t blocks);

  KvGeometry geometry_;
  int32_t block_size_;
  bool caching_;
  uint64_t hash_mask_;
  int32_t used_ = 0, retained_ = 0;
  uint64_t uses_ = 0;
  std::vector<SlotInfo> slots_;
  std::vector<Block> blocks_;
  std::vector<TokenId> contents_;     // of registered blocks, block_size each
  std::vector<int32_t> free_blocks_;  // a stack
  std::vector<int32_t> buckets_;      // first block of each
};

}  // namespace goodput
