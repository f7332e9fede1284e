// The invariants that scheduler.h promises, over random settings, geometries, traffic, cancels and faults, with an
// executor that remembers every cell.
#include <algorithm>
#include <map>
#include <memory>
#include <set>

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "base/random.h"
#include "scheduler/scheduler.h"
#include "scheduler/toy_executor.h"

namespace goodput {
namespace {

struct Case {
  Settings settings;
  Capabilities capabilities;
  std::vector<Request> requests;
  double faults = 0, cancels = 0;
  uint64_t seed = 0;
};

Case random_case(uint64_t seed) {
  Random random(seed, "case");
  const auto pick = [&](int64_t low, int64_t high) { return random.uniform_int(low, high); };
  Case c;
  c.seed = seed;
  Settings& s = c.settings;
  s.block_size = Tokens(pick(1, 8));
  s.max_num_seqs = static_cast<int>(pick(1, 8));
  s.max_model_len = Tokens(pick(8, 80));
  s.max_num_batched_tokens = Tokens(pick(s.max_num_seqs, 48));
  s.enable_prefix_caching = pick(0, 3) > 0;
  s.enable_chunked_prefill = pick(0, 3) > 0;
  if (!s.enable_chunked_prefill) {
    s.max_num_batched_tokens = std::max(s.max_num_batched_tokens, s.max_model_len);
  } else if (pick(0, 2) == 0) {
    s.long_prefill_token_threshold = Tokens(pick(1, 16));
  }
  s.scheduling_policy = pick(0, 1) ? SchedulingPolicy::kPriority : SchedulingPolicy::kFcfs;
  s.batching = pick(0, 3) == 0 ? Batching::kStatic : Batching::kContinuous;
  s.static_batch_wait = microseconds(pick(0, 2000));
  s.max_num_queued_reqs = static_cast<int>(pick(1, 40));

  KvGeometry& kv = c.capabilities.kv;
  kv.block_size = s.block_size;
  kv.slots = static_cast<int>(pick(s.max_num_seqs, s.max_num_seqs + 6));
  const int32_t one = blocks_for(s.max_model_len, s.block_size).count();
  kv.total = Blocks(pick(std::max(1, one / 2), 3 * one));
  kv.per_slot = kv.total;
  kv.can_truncate = pick(0, 7) > 0;
  if (pick(0, 3) == 0) {  // streams
    kv.share_copies = true;
    kv.per_slot = Blocks(pick(std::max(1, one / 2), one));
    kv.total = kv.per_slot * kv.slots;
  }
  c.capabilities.max_batch_tokens = s.max_num_batched_tokens;
  c.capabilities.max_len = s.max_model_len;

  const int n = static_cast<int>(pick(1, 40));
  for (int i = 0; i < n; ++i) {
    Request r;
    r.id = RequestId(static_cast<uint64_t>(i) + 100);
    r.priority = static_cast<int>(pick(-2, 2));
    r.cache_salt = static_cast<uint64_t>(pick(0, 1));
    r.max_new = Tokens(pick(1, 20));
    const int64_t document = pick(0, 2);  // few distinct beginnings, so that prefixes meet
    const int64_t length = pick(1, s.max_model_len.count());
    const int64_t common = pick(0, length);
    for (int64_t k = 0; k < length; ++k) {
      r.prompt.push_back(static_cast<TokenId>(k < common ? 10 * document + k % 7 : pick(500, 510)));
    }
    if (pick(0, 2) == 0) {
      for (TokenId t = 0; t < 60; ++t)
        r.stop_tokens.push_back(t);
    }
    c.requests.push_back(std::move(r));
  }
  if (pick(0, 2) == 0)
    c.faults = 0.02;
  if (pick(0, 2) == 0)
    c.cancels = 0.05;
  return c;
}

// What was seen of a request.
struct Seen {
  Request request;
  std::vector<TokenId> output;
  int scheduled = 0, ended = 0;
  bool cancelled = false, failed = false;
  int lost = 0;
  FinishReason reason = FinishReason::kNone;
};

// Drives one case to its end; returns a hash of every batch.
class Driver {
 public:
  explicit Driver(const Case& c) : case_(c), random_(c.seed, "drive"), executor_(c.capabilities.kv.slots) {
    auto made = Scheduler::create(c.settings, c.capabilities);
    EXPECT_TRUE(made) << describe(made.error());
    scheduler_ = std::move(*made);
  }

  uint64_t run() {
    size_t next = 0, steps = 0;
    while (next < case_.requests.size() || !scheduler_->idle()) {
      while (next < case_.requests.size() && random_.uniform() < 0.3)
        submit(case_.requests[next++]);
      step();
      if (::testing::Test::HasFailure())
        return 0;
      EXPECT_LT(++steps, 40'000u) << "all end within a bounded number of steps";
      if (steps >= 40'000)
        return 0;
    }
    check_end();
    return hash_;
  }

  const std::map<RequestId, Seen>& seen() const { return seen_; }
  SchedulerState state() const { return scheduler_->state(); }

 private:
  void submit(Request r) {
    r.arrival = now_;
    const bool accepted = scheduler_->submit(r).has_value();
    if (!accepted)
      return;
    salts_[r.id] = r.cache_salt;
    seen_[r.id].request = std::move(r);
  }

  void maybe_cancel() {
    if (case_.cancels == 0 || seen_.empty() || random_.uniform() > case_.cancels)
      return;
    auto it = seen_.begin();
    std::advance(it, random_.uniform_int(0, static_cast<int64_t>(seen_.size()) - 1));
    it->second.cancelled = true;
    scheduler_->finish(it->first, FinishReason::kAbort);
  }

  void step() {
    maybe_cancel();
    const Batch& batch = scheduler_->next(now_);
    if (batch.empty()) {
      EXPECT_TRUE(!batch.wake_at || *batch.wake_at > now_);
      now_ = batch.wake_at.value_or(now_ + microseconds(50));
      return;
    }
    check_batch(batch);
    const StepResult& result = executor_.run(batch, salts_, [this](RequestId id) { return fault(id); });
    maybe_cancel();
    now_ += result.duration;
    for (const Event& e : scheduler_->apply(result, now_))
      hear(e);
    check_kv();
  }

  SequenceResult::Status fault(RequestId id) {
    if (case_.faults == 0 || random_.uniform() > case_.faults)
      return SequenceResult::Status::kOk;
    if (random_.uniform() < 0.3) {
      seen_[id].failed = true;
      return SequenceResult::Status::kFailed;
    }
    ++seen_[id].lost;
    return SequenceResult::Status::kKvLost;
  }

  void check_batch(const Batch& batch) {
    Tokens total{0};
    int last_slot = -1;
    for (const ScheduledSequence& s : batch.sequences) {
      EXPECT_GT(s.slot.value(), last_slot) << "sorted by slot, each once";
      last_slot = s.slot.value();
      total += Tokens(s.tokens.size());
      EXPECT_TRUE(!s.decode || s.tokens.size() == 1);
      const auto threshold = static_cast<size_t>(case_.settings.long_prefill_token_threshold.count());
      EXPECT_TRUE(threshold == 0 || s.tokens.size() <= threshold);
      hash_ = mix64(hash_, s.id.value());
      hash_ = mix64(hash_, mix64(static_cast<uint64_t>(s.slot.value()), static_cast<uint64_t>(s.first.count())));
      hash_ = mix64(hash_, mix64(s.tokens.size(), s.samples));
    }
    for (const KvOp& op : batch.ops) {
      hash_ = mix64(hash_, mix64(static_cast<uint64_t>(op.slot.value()), static_cast<uint64_t>(op.keep.count())));
    }
    EXPECT_EQ(total, batch.total);
    EXPECT_LE(total, case_.settings.max_num_batched_tokens);
    const SchedulerState state = scheduler_->state();
    EXPECT_LE(state.running, case_.settings.max_num_seqs);
    EXPECT_LE(state.used + state.retained, state.total);
  }

  void check_kv() {
    for (int slot = 0; slot < executor_.slots(); ++slot) {
      EXPECT_EQ(scheduler_->kv_length(Slot(slot)).count(), executor_.length(Slot(slot))) << "slot " << slot;
    }
  }

  void hear(const Event& e) {
    Seen& s = seen_.at(e.id);
    EXPECT_EQ(s.ended, 0) << "kEnded is the last event";
    switch (e.kind) {
      case Event::Kind::kScheduled:
        ++s.scheduled;
        break;
      case Event::Kind::kToken:
        EXPECT_EQ(s.scheduled, 1);
        s.output.push_back(e.token);
        break;
      case Event::Kind::kPreempted:
        EXPECT_EQ(e.in_prefill, s.output.empty());
        break;
      case Event::Kind::kEnded:
        ++s.ended;
        s.reason = e.reason;
        break;
    }
  }

  void check_end() {
    for (const auto& [id, s] : seen_) {
      EXPECT_EQ(s.ended, 1) << "each accepted request ends exactly once";
      const std::vector<TokenId> expected = toy::expected_output(s.request);
      if (s.reason == FinishReason::kAbort) {
        EXPECT_TRUE(s.cancelled);
      } else if (s.reason == FinishReason::kError) {
        EXPECT_TRUE(s.failed || s.lost >= 2);
      } else {
        EXPECT_EQ(s.output, expected) << "tokens are those of an undisturbed run";
        EXPECT_EQ(s.reason, static_cast<int64_t>(expected.size()) == s.request.max_new.count() ? FinishReason::kLength
                                                                                               : FinishReason::kStop);
      }
      ASSERT_LE(s.output.size(), expected.size());
      EXPECT_TRUE(std::equal(s.output.begin(), s.output.end(), expected.begin()));
    }
    EXPECT_EQ(scheduler_->state().used, Blocks(0));
    EXPECT_EQ(scheduler_->state().running, 0);
    EXPECT_EQ(scheduler_->state().waiting, 0);
  }

  const Case& case_;
  Random random_;
  toy::Executor executor_;
  std::unique_ptr<Scheduler> scheduler_;
  TimePoint now_;
  std::map<RequestId, uint64_t> salts_;
  std::map<RequestId, Seen> seen_;
  uint64_t hash_ = 0;
};

TEST(SchedulerProperty, InvariantsHoldOverRandomTraffic) {
  EXPECT_TRUE(rc::check([](uint64_t seed) {
    const Case c = random_case(seed);
    Driver(c).run();
    RC_ASSERT(!::testing::Test::HasFailure());
  }));
}

TEST(SchedulerProperty, InvariantsHoldOnManyFixedSeeds) {
  uint64_t preemptions = 0, hits = 0, ended = 0;
  for (uint64_t seed = 0; seed < 3000 && !HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    const Case c = random_case(seed);
    Driver driver(c);
    driver.run();
    preemptions += driver.state().preemptions;
    hits += driver.state().prefix_hit_tokens;
    ended += driver.seen().size();
  }
  // The traffic does reach what it is meant to test.
  EXPECT_GT(preemptions, 1000u);
  EXPECT_GT(hits, 10'000u);
  EXPECT_GT(ended, 10'000u);
}

TEST(SchedulerProperty, SameCallsGiveTheSameBatches) {
  EXPECT_TRUE(rc::check([](uint64_t seed) {
    const Case c = random_case(seed);
    RC_ASSERT(Driver(c).run() == Driver(c).run());
  }));
}

}  // namespace
}  // namespace goodput
