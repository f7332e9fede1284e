// For tests: an executor that is nothing but its memory. Each slot remembers which token was computed under which salt
// at each position, so the next token can be a hash of the whole content of the slot: it is right only if every op,
// every shared prefix and every recomputation was right. Holds the scheduler's batches against the contract as it goes.
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include <gtest/gtest.h>

#include "base/random.h"
#include "scheduler/scheduler.h"

namespace goodput::toy {

// What follows these tokens.
inline TokenId token_after(std::span<const TokenId> tokens) {
  uint64_t h = 1;
  for (const TokenId t : tokens)
    h = mix64(h ^ static_cast<uint32_t>(t));
  return static_cast<TokenId>(h % 1000);
}

// What an undisturbed run of the request would generate, without the stop token.
inline std::vector<TokenId> expected_output(const Request& r) {
  std::vector<TokenId> all = r.prompt, out;
  while (static_cast<int64_t>(out.size()) < r.max_new.count()) {
    const TokenId t = token_after(all);
    if (std::find(r.stop_tokens.begin(), r.stop_tokens.end(), t) != r.stop_tokens.end())
      break;
    all.push_back(t);
    out.push_back(t);
  }
  return out;
}

class Executor {
 public:
  explicit Executor(int slots) : slots_(static_cast<size_t>(slots)) {}

  // `fault` may turn the outcome of a sequence (by request) into a loss or a failure.
  const StepResult& run(const Batch& batch, const std::map<RequestId, uint64_t>& salts,
                        const std::function<SequenceResult::Status(RequestId)>& fault = {}) {
    for (const KvOp& op : batch.ops)
      carry_out(op);
    result_.sequences.clear();
    for (const ScheduledSequence& s : batch.sequences) {
      auto& cells = slots_.at(static_cast<size_t>(s.slot.value()));
      EXPECT_EQ(s.first.count(), cells.size()) << "first is the KV length of the slot";
      EXPECT_FALSE(s.tokens.empty());
      for (const TokenId t : s.tokens)
        cells.push_back({t, salts.at(s.id)});
      std::vector<TokenId> tokens;
      for (const Cell& c : cells) {
        EXPECT_EQ(c.salt, salts.at(s.id)) << "KV of another salt";
        tokens.push_back(c.token);
      }
      SequenceResult r;
      if (fault)
        r.status = fault(s.id);
      if (r.status == SequenceResult::Status::kKvLost)
        cells.clear();
      if (s.samples && r.status == SequenceResult::Status::kOk)
        r.sampled = token_after(tokens);
      result_.sequences.push_back(r);
    }
    result_.duration = microseconds(100);
    return result_;
  }

  size_t length(Slot slot) const { return slots_.at(static_cast<size_t>(slot.value())).size(); }
  int slots() const { return static_cast<int>(slots_.size()); }

 private:
  struct Cell {
    TokenId token;
    uint64_t salt;
  };

  void carry_out(const KvOp& op) {
    auto& cells = slots_.at(static_cast<size_t>(op.slot.value()));
    const auto keep = static_cast<size_t>(op.keep.count());
    switch (op.kind) {
      case KvOp::Kind::kShare: {
        const auto& from = slots_.at(static_cast<size_t>(op.from.value()));
        EXPECT_TRUE(cells.empty()) << "a prefix is shared into an empty slot";
        ASSERT_LE(keep, from.size());
        cells.assign(from.begin(), from.begin() + static_cast<std::ptrdiff_t>(keep));
        break;
      }
      case KvOp::Kind::kTruncate:
        ASSERT_LT(keep, cells.size());
        cells.erase(cells.begin() + static_cast<std::ptrdiff_t>(keep), cells.end());
        break;
      case KvOp::Kind::kRelease:
        EXPECT_FALSE(cells.empty()) << "release of an empty slot";
        cells.clear();
        break;
    }
  }

  std::vector<std::vector<Cell>> slots_;
  StepResult result_;
};

// A scheduler, this executor and a clock that moves 1 ms a step, for tests that play one scene.
class Rig {
 public:
  Rig(const Settings& settings, Capabilities capabilities) : executor_(capabilities.kv.slots) {
    capabilities.max_batch_tokens = settings.max_num_batched_tokens;
    capabilities.max_len = settings.max_model_len;
    capabilities.kv.block_size = settings.block_size;
    if (capabilities.kv.per_slot == Blocks(0))
      capabilities.kv.per_slot = capabilities.kv.total;
    auto made = Scheduler::create(settings, capabilities);
    EXPECT_TRUE(made) << (made ? "" : describe(made.error()));
    scheduler = std::move(*made);
  }

  Result<void> submit(Request r) {
    salts_[r.id] = r.cache_salt;
    return scheduler->submit(std::move(r));
  }

  // One next(), run() and apply(). `faults`: what becomes of these requests in this step.
  std::vector<Event> step(const std::map<RequestId, SequenceResult::Status>& faults = {}) {
    begin();
    return empty ? std::vector<Event>{} : end(faults);
  }
  // Its two halves; between them the batch is in flight.
  void begin() {
    running_before = scheduler->state().running;
    const Batch& batch = scheduler->next(now);
    empty = batch.empty();
    wake_at = batch.wake_at;
    ops = batch.ops;
    computed.clear();
    order.clear();
    for (const ScheduledSequence& s : batch.sequences) {
      computed[s.id.value()] = static_cast<int>(s.tokens.size());
      order.push_back(s.id.value());
    }
    shape = batch.shape();
    batch_ = &batch;
  }
  std::vector<Event> end(const std::map<RequestId, SequenceResult::Status>& faults = {}) {
    const StepResult& result = executor_.run(*batch_, salts_, [&](RequestId id) {
      const auto it = faults.find(id);
      return it == faults.end() ? SequenceResult::Status::kOk : it->second;
    });
    now += milliseconds(1);
    const auto events = scheduler->apply(result, now);
    for (int slot = 0; slot < executor_.slots(); ++slot) {
      EXPECT_EQ(static_cast<size_t>(scheduler->kv_length(Slot(slot)).count()), executor_.length(Slot(slot)));
    }
    return {events.begin(), events.end()};
  }
  // Until idle; every event.
  std::vector<Event> drain() {
    std::vector<Event> all;
    for (int i = 0; i < 10'000 && !scheduler->idle(); ++i) {
      const std::vector<Event> some = step();
      all.insert(all.end(), some.begin(), some.end());
      if (empty)
        now = wake_at.value_or(now);
    }
    EXPECT_TRUE(scheduler->idle());
    return all;
  }

  std::unique_ptr<Scheduler> scheduler;
  TimePoint now;
  // Of the last batch.
  bool empty = true;
  std::optional<TimePoint> wake_at;
  std::vector<KvOp> ops;
  std::map<uint64_t, int> computed;  // tokens by request
  std::vector<uint64_t> order;       // requests as they stand in the batch
  int running_before = 0;            // sequences admitted before it was made
  StepShape shape;

 private:
  Executor executor_;
  std::map<RequestId, uint64_t> salts_;
  const Batch* batch_ = nullptr;
};

// A request whose prompt is `length` tokens: first, first + 1, …
inline Request request(uint64_t id, int length, int max_new, TokenId first = 0) {
  Request r{.id = RequestId(id), .max_new = Tokens(max_new)};
  for (int i = 0; i < length; ++i)
    r.prompt.push_back(first + i);
  return r;
}

inline std::vector<TokenId> tokens_of(std::span<const Event> events, uint64_t id) {
  std::vector<TokenId> tokens;
  for (const Event& e : events) {
    if (e.kind == Event::Kind::kToken && e.id == RequestId(id))
      tokens.push_back(e.token);
  }
  return tokens;
}

inline std::vector<Event> of_kind(std::span<const Event> events, Event::Kind kind) {
  std::vector<Event> some;
  for (const Event& e : events) {
    if (e.kind == kind)
      some.push_back(e);
  }
  return some;
}

}  // namespace goodput::toy
