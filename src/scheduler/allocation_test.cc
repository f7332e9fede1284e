// next() and apply() do not allocate once every vector has reached its size: a simulator runs millions of them, and an
// allocator's lock or page fault would land in some request's gap. Counts calls of this program's operator new.
#include <atomic>
#include <cstdlib>
#include <new>

#include <gtest/gtest.h>

#include "scheduler/scheduler.h"
#include "scheduler/toy_executor.h"

namespace {
std::atomic<uint64_t> allocations{0};
}

// Inlining shows g++ 12 the malloc behind one and the free behind the other, which it takes for a mismatch.
#pragma GCC diagnostic ignored "-Wmismatched-new-delete"
void* operator new(size_t size) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  if (void* p = std::malloc(size != 0 ? size : 1))
    return p;
  throw std::bad_alloc();
}
void operator delete(void* p) noexcept { std::free(p); }
void operator delete(void* p, size_t) noexcept { std::free(p); }

namespace goodput {
namespace {

// Sequences that join, chunk, decode, are preempted and end, round after round.
TEST(SchedulerAllocations, NoneInSteadyState) {
  Settings s;
  s.max_num_seqs = 8;
  s.max_num_batched_tokens = Tokens(32);
  s.max_model_len = Tokens(128);
  s.block_size = Tokens(4);
  Capabilities c;
  c.kv = {.block_size = Tokens(4), .total = Blocks(80), .per_slot = Blocks(80), .slots = 12};
  c.max_batch_tokens = s.max_num_batched_tokens;
  c.max_len = s.max_model_len;
  const auto scheduler = std::move(*Scheduler::create(s, c));
  StepResult result;
  TimePoint now;
  uint64_t id = 0, counted = 0;
  for (int round = 0; round < 20; ++round) {
    for (int i = 0; i < 24; ++i, ++id) {
      ASSERT_TRUE(scheduler->submit(toy::request(id, 40, 20, static_cast<TokenId>(1000 * (id % 5)))));
    }
    for (int i = 0; i < 10'000 && !scheduler->idle(); ++i) {
      const uint64_t before = allocations.load();
      const Batch& batch = scheduler->next(now);
      const uint64_t after_next = allocations.load();
      if (batch.empty())
        continue;
      result.sequences.clear();
      for (const ScheduledSequence& q : batch.sequences) {
        result.sequences.push_back({.sampled = q.samples ? std::optional<TokenId>(q.first.count()) : std::nullopt});
      }
      const uint64_t before_apply = allocations.load();
      scheduler->apply(result, now);
      if (round >= 10)
        counted += (after_next - before) + (allocations.load() - before_apply);
    }
  }
  EXPECT_GT(scheduler->state().preemptions, 0u);
  EXPECT_EQ(counted, 0u);
}

}  // namespace
}  // namespace goodput
