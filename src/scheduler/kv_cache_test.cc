// Each operation on KV by itself, then random ones against a model that knows every slot's content.
#include "scheduler/kv_cache.h"

#include <map>
#include <numeric>

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "base/random.h"

namespace goodput {
namespace {

using Ops = std::vector<KvOp>;
using Kind = KvOp::Kind;

std::vector<TokenId> count_from(TokenId first, int n) {
  std::vector<TokenId> tokens(static_cast<size_t>(n));
  std::iota(tokens.begin(), tokens.end(), first);
  return tokens;
}

KvGeometry geometry(int total, int slots, int block = 4) {
  return {.block_size = Tokens(block), .total = Blocks(total), .per_slot = Blocks(total), .slots = slots};
}

// Admits without a match and computes all tokens.
Slot fill(KvCache& kv, const std::vector<TokenId>& tokens, Ops& ops, uint64_t salt = 0) {
  const auto slot = kv.admit({}, salt, ops);
  EXPECT_TRUE(slot);
  EXPECT_TRUE(kv.grow(*slot, Tokens(tokens.size()), ops));
  kv.commit(*slot, tokens);
  kv.verify();
  return *slot;
}

TEST(KvCache, LowestFreeSlotFirst) {
  KvCache kv(geometry(16, 3), true);
  Ops ops;
  EXPECT_EQ(kv.admit({}, 0, ops), Slot(0));
  EXPECT_EQ(kv.admit({}, 0, ops), Slot(1));
  kv.release(Slot(0), true, ops);
  EXPECT_EQ(kv.admit({}, 0, ops), Slot(0));
  EXPECT_EQ(kv.admit({}, 0, ops), Slot(2));
  EXPECT_EQ(kv.admit({}, 0, ops), std::nullopt) << "every slot runs";
  EXPECT_TRUE(ops.empty()) << "slots that held nothing need no op";
}

TEST(KvCache, GrowTakesBlocksAndFailsWithoutChange) {
  KvCache kv(geometry(3, 2), true);
  Ops ops;
  const Slot a = *kv.admit({}, 0, ops);
  EXPECT_TRUE(kv.grow(a, Tokens(5), ops));
  EXPECT_EQ(kv.used(), Blocks(2));
  EXPECT_FALSE(kv.grow(a, Tokens(13), ops));
  EXPECT_EQ(kv.used(), Blocks(2));
  EXPECT_EQ(kv.free(), Blocks(1));
  EXPECT_TRUE(kv.grow(a, Tokens(12), ops));
  kv.verify();
}

TEST(KvCache, OneSlotsShareIsBounded) {
  KvGeometry g = geometry(8, 2);
  g.per_slot = Blocks(2);
  KvCache kv(g, true);
  Ops ops;
  const Slot a = *kv.admit({}, 0, ops);
  EXPECT_TRUE(kv.grow(a, Tokens(8), ops));
  EXPECT_FALSE(kv.grow(a, Tokens(9), ops));
}

TEST(KvCache, WholeBlocksOfRunningSequencesAreShared) {
  KvCache kv(geometry(16, 4), true);
  Ops ops;
  const auto prompt = count_from(0, 11);
  const Slot a = fill(kv, prompt, ops);
  const auto match = kv.longest_prefix(prompt, 0);
  EXPECT_EQ(match.from, a);
  EXPECT_EQ(match.keep, Tokens(8)) << "two whole blocks of 11 tokens";
  EXPECT_EQ(kv.needed(match, Tokens(11)), Blocks(1));
  const Slot b = *kv.admit(match, 0, ops);
  EXPECT_EQ(ops, (Ops{{Kind::kShare, b, a, Tokens(8)}}));
  EXPECT_EQ(kv.used(), Blocks(3)) << "shared blocks are counted once";
  EXPECT_EQ(kv.length(b), Tokens(8));
  kv.verify();
  ops.clear();
  kv.release(a, false, ops);
  EXPECT_EQ(kv.used(), Blocks(2)) << "the donor may go";
  EXPECT_EQ(kv.longest_prefix(prompt, 0).from, b);
  kv.verify();
}

TEST(KvCache, TheLastTokenIsAlwaysComputed) {
  KvCache kv(geometry(16, 4), true);
  Ops ops;
  const auto prompt = count_from(0, 8);
  fill(kv, prompt, ops);
  EXPECT_EQ(kv.longest_prefix(prompt, 0).keep, Tokens(4));
  EXPECT_EQ(kv.longest_prefix(count_from(0, 9), 0).keep, Tokens(8));
  EXPECT_EQ(kv.longest_prefix(count_from(0, 1), 0).from, std::nullopt);
  EXPECT_EQ(kv.longest_prefix({}, 0).from, std::nullopt);
}

TEST(KvCache, SaltsKeepApart) {
  KvCache kv(geometry(16, 4), true);
  Ops ops;
  fill(kv, count_from(0, 8), ops, 1);
  EXPECT_EQ(kv.longest_prefix(count_from(0, 9), 2).from, std::nullopt);
  EXPECT_EQ(kv.longest_prefix(count_from(0, 9), 1).keep, Tokens(8));
}

TEST(KvCache, OnlyComputedBlocksAreFound) {
  KvCache kv(geometry(16, 4), true);
  Ops ops;
  const auto prompt = count_from(0, 16);
  const Slot a = *kv.admit({}, 0, ops);
  EXPECT_TRUE(kv.grow(a, Tokens(16), ops));
  EXPECT_EQ(kv.longest_prefix(prompt, 0).from, std::nullopt);
  kv.commit(a, std::span(prompt).first(7));
  EXPECT_EQ(kv.longest_prefix(prompt, 0).keep, Tokens(4));
  kv.commit(a, std::span(prompt).first(9));
  EXPECT_EQ(kv.longest_prefix(prompt, 0).keep, Tokens(8));
}

TEST(KvCache, RetainsWholeBlocksAndReusesThemInPlace) {
  KvCache kv(geometry(16, 4), true);
  Ops ops;
  const Slot a = fill(kv, count_from(0, 11), ops);
  kv.release(a, true, ops);
  EXPECT_EQ(ops, (Ops{{Kind::kTruncate, a, {}, Tokens(8)}}));
  EXPECT_EQ(kv.used(), Blocks(0));
  EXPECT_EQ(kv.retained(), Blocks(2));
  ops.clear();
  const auto match = kv.longest_prefix(count_from(0, 20), 0);
  EXPECT_EQ(match.keep, Tokens(8));
  EXPECT_EQ(kv.admit(match, 0, ops), a);
  EXPECT_TRUE(ops.empty()) << "nothing moves";
  EXPECT_EQ(kv.used(), Blocks(2));
  kv.verify();
}

TEST(KvCache, ALongerRetainedSequenceIsSharedFromSoThatItsTailStaysFindable) {
  KvCache kv(geometry(16, 4), true);
  Ops ops;
  const auto session = count_from(0, 16);
  const Slot a = fill(kv, session, ops);
  kv.release(a, true, ops);
  auto other = count_from(0, 8);
  other.push_back(99);
  ops.clear();
  const Slot b = *kv.admit(kv.longest_prefix(other, 0), 0, ops);
  EXPECT_EQ(ops, (Ops{{Kind::kShare, b, a, Tokens(8)}}));
  EXPECT_EQ(kv.longest_prefix(count_from(0, 17), 0).keep, Tokens(16));
  kv.verify();
}

TEST(KvCache, WithoutAFreeSlotTheOnlyRetainedOneIsShortenedInPlace) {
  KvCache kv(geometry(16, 1), true);
  Ops ops;
  const Slot a = fill(kv, count_from(0, 16), ops);
  kv.release(a, true, ops);
  auto other = count_from(0, 8);
  other.push_back(99);
  ops.clear();
  EXPECT_EQ(kv.admit(kv.longest_prefix(other, 0), 0, ops), a);
  EXPECT_EQ(ops, (Ops{{Kind::kTruncate, a, {}, Tokens(8)}}));
  kv.verify();
}

TEST(KvCache, WithoutAFreeSlotTheLeastRecentlyUsedIsEvicted) {
  KvCache kv(geometry(16, 2), true);
  Ops ops;
  const Slot a = fill(kv, count_from(0, 8), ops);
  const Slot b = fill(kv, count_from(100, 8), ops);
  kv.release(b, true, ops);
  kv.release(a, true, ops);
  ops.clear();
  EXPECT_EQ(kv.admit({}, 0, ops), b);
  EXPECT_EQ(ops, (Ops{{Kind::kRelease, b, {}, Tokens(0)}}));
  EXPECT_EQ(kv.longest_prefix(count_from(0, 9), 0).keep, Tokens(8));
  kv.verify();
}

TEST(KvCache, GrowEvictsTailsOfTheLeastRecentlyUsedFirst) {
  KvCache kv(geometry(6, 3), true);
  Ops ops;
  const Slot a = fill(kv, count_from(0, 12), ops);
  const Slot b = fill(kv, count_from(100, 8), ops);
  kv.release(a, true, ops);
  kv.release(b, true, ops);
  ops.clear();
  const Slot c = *kv.admit({}, 0, ops);
  EXPECT_TRUE(kv.grow(c, Tokens(8), ops));  // one block is free
  EXPECT_EQ(ops, (Ops{{Kind::kTruncate, a, {}, Tokens(8)}}));
  ops.clear();
  EXPECT_TRUE(kv.grow(c, Tokens(20), ops));
  EXPECT_EQ(ops, (Ops{{Kind::kRelease, a, {}, Tokens(0)}, {Kind::kTruncate, b, {}, Tokens(4)}}));
  kv.verify();
  EXPECT_EQ(kv.longest_prefix(count_from(100, 9), 0).keep, Tokens(4));
}

TEST(KvCache, EvictionSparesWhatARunningSequenceShares) {
  KvCache kv(geometry(4, 3), true);
  Ops ops;
  const Slot a = fill(kv, count_from(0, 12), ops);
  auto other = count_from(0, 8);
  other.push_back(99);
  const Slot b = *kv.admit(kv.longest_prefix(other, 0), 0, ops);
  kv.release(a, true, ops);
  EXPECT_EQ(kv.retained(), Blocks(1)) << "the other two are used by b";
  EXPECT_TRUE(kv.grow(b, Tokens(16), ops));
  EXPECT_FALSE(kv.grow(b, Tokens(17), ops));
  EXPECT_EQ(kv.length(b), Tokens(8));
  kv.verify();
}

TEST(KvCache, ASequenceThatAnotherContainsIsNotRetained) {
  KvCache kv(geometry(16, 3), true);
  Ops ops;
  const Slot a = fill(kv, count_from(0, 8), ops);
  const Slot b = *kv.admit(kv.longest_prefix(count_from(0, 13), 0), 0, ops);
  ops.clear();
  kv.release(a, true, ops);
  EXPECT_EQ(ops, (Ops{{Kind::kRelease, a, {}, Tokens(0)}}));
  EXPECT_EQ(kv.length(b), Tokens(8));
  kv.verify();
}

TEST(KvCache, LossFreesTheSlotWithoutAnOp) {
  KvCache kv(geometry(16, 3), true);
  Ops ops;
  const Slot a = fill(kv, count_from(0, 8), ops);
  kv.lost(a);
  EXPECT_TRUE(ops.empty());
  EXPECT_EQ(kv.used() + kv.retained(), Blocks(0));
  EXPECT_EQ(kv.longest_prefix(count_from(0, 9), 0).from, std::nullopt);
  kv.verify();
}

TEST(KvCache, EqualBlocksComputedTwiceStayFindableWhenOneGoes) {
  KvCache kv(geometry(16, 3), true);
  Ops ops;
  const Slot a = fill(kv, count_from(0, 8), ops);
  const Slot b = fill(kv, count_from(0, 8), ops);
  kv.release(b, false, ops);
  EXPECT_EQ(kv.longest_prefix(count_from(0, 9), 0).from, a);
  const Slot c = fill(kv, count_from(0, 8), ops);
  kv.release(a, false, ops);
  EXPECT_EQ(kv.longest_prefix(count_from(0, 9), 0).from, c);
}

TEST(KvCache, CachingOffOrNoTruncationMatchesAndRetainsNothing) {
  KvGeometry fixed = geometry(16, 3);
  fixed.can_truncate = false;
  for (KvCache kv : {KvCache(geometry(16, 3), false), KvCache(fixed, true)}) {
    Ops ops;
    const Slot a = fill(kv, count_from(0, 8), ops);
    EXPECT_EQ(kv.longest_prefix(count_from(0, 9), 0).from, std::nullopt);
    kv.release(a, true, ops);
    EXPECT_EQ(ops, (Ops{{Kind::kRelease, a, {}, Tokens(0)}}));
    EXPECT_EQ(kv.free(), Blocks(16));
  }
}

TEST(KvCache, SharingThatCopiesTakesBlocksOfItsOwn) {
  KvGeometry g = geometry(8, 2);
  g.per_slot = Blocks(4);
  g.share_copies = true;
  KvCache kv(g, true);
  Ops ops;
  const Slot a = fill(kv, count_from(0, 9), ops);
  const auto match = kv.longest_prefix(count_from(0, 12), 0);
  EXPECT_EQ(kv.needed(match, Tokens(12)), Blocks(3));
  const Slot b = *kv.admit(match, 0, ops);
  EXPECT_EQ(kv.used(), Blocks(5));
  kv.release(a, false, ops);
  EXPECT_EQ(kv.longest_prefix(count_from(0, 12), 0).from, b) << "the copy is findable";
  kv.verify();
}

TEST(KvCache, LengthOfSlotsOutsideTheGeometryIsNothing) {
  KvCache kv(geometry(4, 2), true);
  EXPECT_EQ(kv.length(Slot(-1)), Tokens(0));
  EXPECT_EQ(kv.length(Slot(2)), Tokens(0));
}

// Random operations against a model that knows each slot's content: every match is true, the gauges add up.
void random_operations(uint64_t seed) {
  Random random(seed, "kv");
  const auto pick = [&](int64_t low, int64_t high) { return random.uniform_int(low, high); };
  KvGeometry g = geometry(static_cast<int>(pick(1, 24)), static_cast<int>(pick(1, 6)), static_cast<int>(pick(1, 4)));
  g.share_copies = pick(0, 3) == 0;
  const uint64_t hash_mask = pick(0, 1) ? ~uint64_t{0} : static_cast<uint64_t>(pick(0, 3));
  KvCache kv(g, pick(0, 5) > 0, hash_mask);
  struct Content {
    std::vector<TokenId> tokens;
    uint64_t salt;
  };
  std::map<Slot, Content> content;  // of running and retained slots
  std::vector<Slot> running;
  Ops ops;
  const auto carry_out = [&] {
    for (const KvOp& op : ops) {
      if (op.kind == Kind::kShare) {
        auto& from = content.at(op.from);
        content[op.slot] = {{from.tokens.begin(), from.tokens.begin() + op.keep.count()}, from.salt};
      } else {
        content.at(op.slot).tokens.resize(static_cast<size_t>(op.keep.count()));
      }
    }
    ops.clear();
  };
  for (int i = 0; i < 200; ++i) {
    if (running.empty() || pick(0, 3) == 0) {
      const auto prompt = count_from(static_cast<TokenId>(pick(0, 2)), static_cast<int>(pick(1, 20)));
      const auto salt = static_cast<uint64_t>(pick(0, 1));
      const auto match = kv.longest_prefix(prompt, salt);
      ASSERT_LT(match.keep.count(), static_cast<int>(prompt.size()));
      ASSERT_EQ(match.keep.count() % g.block_size.count(), 0);
      if (kv.needed(match, Tokens(prompt.size())) > kv.available(match))
        continue;
      const auto slot = kv.admit(match, salt, ops);
      carry_out();
      if (!slot)
        continue;
      Content& c = content[*slot];
      if (match.keep == Tokens(0))
        c = {{}, salt};
      ASSERT_EQ(c.salt, salt);
      ASSERT_EQ(c.tokens, (std::vector<TokenId>(prompt.begin(), prompt.begin() + match.keep.count())));
      ASSERT_TRUE(kv.grow(*slot, Tokens(prompt.size()), ops)) << "available blocks can be had";
      carry_out();
      c.tokens = {prompt.begin(), prompt.begin() + pick(match.keep.count(), static_cast<int64_t>(prompt.size()))};
      kv.commit(*slot, c.tokens);
      running.push_back(*slot);
    } else {
      const auto which = static_cast<size_t>(pick(0, static_cast<int64_t>(running.size()) - 1));
      const Slot slot = running[which];
      Content& c = content.at(slot);
      const int64_t what = pick(0, 9);
      if (what < 6) {
        if (kv.grow(slot, Tokens(c.tokens.size() + 1), ops)) {
          c.tokens.push_back(static_cast<TokenId>(c.tokens.size() + static_cast<size_t>(pick(0, 2))));
          kv.commit(slot, c.tokens);
        }
      } else {
        what == 6 ? kv.lost(slot) : kv.release(slot, what > 7, ops);
        if (what == 6)
          c.tokens.clear();
        running.erase(running.begin() + static_cast<std::ptrdiff_t>(which));
      }
      carry_out();
    }
    kv.verify();
    for (const auto& [slot, c] : content)
      ASSERT_EQ(kv.length(slot), Tokens(c.tokens.size()));
  }
}

TEST(KvCache, RandomOperationsKeepContentAndCounts) {
  for (uint64_t seed = 0; seed < 500 && !HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    random_operations(seed);
  }
  EXPECT_TRUE(rc::check([](uint64_t seed) {
    random_operations(seed);
    RC_ASSERT(!::testing::Test::HasFailure());
  }));
}

}  // namespace
}  // namespace goodput
