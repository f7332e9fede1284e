// The front of the scheduler: requests in, batches out, results in, events out. What goes into a batch is decided by
// the passes (passes.h); this file keeps who is alive and who is told what. The owner's thread; no clock, no I/O.
#include "scheduler/scheduler.h"

#include <algorithm>
#include <unordered_map>

#include <fmt/format.h>

#include "base/check.h"
#include "scheduler/can_ever_run.h"
#include "scheduler/passes.h"

namespace goodput {

struct Scheduler::Impl {
  Impl(const Settings& settings, const Capabilities& c) : s(settings, c.kv), capabilities(c) {
    by_slot.resize(static_cast<size_t>(c.kv.slots));
    const auto seats = static_cast<size_t>(settings.max_num_seqs);
    in_batch.reserve(seats);
    ended.reserve(seats);
    finishing.reserve(seats);
    told.reserve(4 * seats);
  }

  Result<void> check(const Request&) const;
  void release_ended();
  void collect();
  void apply_to(Sequence&, const SequenceResult&, size_t computed);
  void take(Sequence&, TokenId);
  void end(Sequence&, FinishReason, TokenId token = 0);
  void forget_left();

  Scheduling s;
  Capabilities capabilities;
  StepCost cost;  // for passes that weigh time; none of today's does
  uint64_t submitted = 0;
  bool in_flight = false;
  bool left = false;  // somebody in `running` no longer runs
  std::unordered_map<RequestId, std::unique_ptr<Sequence>> alive;
  std::vector<std::unique_ptr<Sequence>> ended;  // told; until the next next()
  std::vector<Sequence*> finishing;              // finish() while in flight
  std::vector<Sequence*> in_batch;               // parallel to batch.sequences
  std::vector<Sequence*> by_slot;                // scratch: the batch in order of slots
  std::vector<Event> told;                       // what the last apply() returned
};

// ---------------------------------------------------------------- in and out

Result<std::unique_ptr<Scheduler>> Scheduler::create(const Settings& settings, const Capabilities& c) {
  TRY(validate(settings));
  const auto refuse = [](std::string_view setting, int64_t value, std::string_view bound, int64_t limit) {
    return fail(ErrorCode::kUsage, fmt::format("{} is {}, but the executor's {} is {}", setting, value, bound, limit));
  };
  const int slots = c.kv.slots;
  if (slots < 1 || slots > limits::kMaxSlots || c.kv.total < Blocks(1) || c.kv.per_slot < Blocks(1)) {
    return fail(ErrorCode::kUsage, fmt::format("the executor offers {} slots and {} KV blocks ({} per slot): expected "
                                               "1..{} slots and at least one block",
                                               slots, c.kv.total.count(), c.kv.per_slot.count(), limits::kMaxSlots));
  }
  if (settings.max_num_seqs > slots)
    return refuse("max_num_seqs", settings.max_num_seqs, "number of slots", slots);
  if (settings.block_size != c.kv.block_size) {
    return refuse("block_size", settings.block_size.count(), "block size", c.kv.block_size.count());
  }
  if (settings.max_num_batched_tokens > c.max_batch_tokens) {
    return refuse("max_num_batched_tokens", settings.max_num_batched_tokens.count(), "largest batch",
                  c.max_batch_tokens.count());
  }
  if (settings.max_model_len > c.max_len) {
    return refuse("max_model_len", settings.max_model_len.count(), "longest sequence", c.max_len.count());
  }
  return std::unique_ptr<Scheduler>(new Scheduler(std::make_unique<Impl>(settings, c)));
}

Scheduler::Scheduler(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Scheduler::~Scheduler() = default;

Result<void> Scheduler::Impl::check(const Request& r) const {
  const auto refuse = [&](std::string why) {
    return fail(ErrorCode::kUsage, std::move(why), fmt::format("request {}", r.id.value()));
  };
  if (const auto possible = can_ever_run(r, s.settings, capabilities.kv); !possible)
    return refuse(possible.error().message);
  if (alive.contains(r.id))
    return refuse("a request with this id is still being served");
  if (static_cast<int>(s.waiting.size()) >= s.settings.max_num_queued_reqs) {
    return fail(ErrorCode::kExhausted,
                fmt::format("the queue is full: {} requests wait (max_num_queued_reqs)", s.waiting.size()),
                fmt::format("request {}", r.id.value()));
  }
  return {};
}

Result<void> Scheduler::submit(Request request) {
  Impl& m = *impl_;
  TRY(m.check(request));
  auto sequence = std::make_unique<Sequence>();
  sequence->key = order_key(m.s.settings.scheduling_policy, request, m.submitted++);
  sequence->prompt = Tokens(request.prompt.size());
  sequence->tokens = std::move(request.prompt);
  sequence->tokens.reserve(sequence->tokens.size() + static_cast<size_t>(request.max_new.count()));
  sequence->request = std::move(request);
  m.s.waiting.insert(*sequence);
  m.alive.emplace(sequence->request.id, std::move(sequence));
  return {};
}

void Scheduler::finish(RequestId id, FinishReason reason) {
  Impl& m = *impl_;
  const auto it = m.alive.find(id);
  if (it == m.alive.end())
    return;
  Sequence& sequence = *it->second;
  if (sequence.state == Sequence::State::kWaiting) {
    m.s.waiting.erase(sequence);
    m.end(sequence, reason);
  } else if (!m.in_flight) {
    m.end(sequence, reason);
    m.forget_left();
  } else if (sequence.finish == FinishReason::kNone) {
    sequence.finish = reason;
    m.finishing.push_back(&sequence);
  }
}

void Scheduler::set_cost(const StepCost& cost) { impl_->cost = cost; }

bool Scheduler::idle() const {
  const Impl& m = *impl_;
  return m.alive.empty() && m.ended.empty() && m.s.events.empty() && !m.in_flight;
}

SchedulerState Scheduler::state() const {
  const Scheduling& s = impl_->s;
  return {.running = static_cast<int>(s.running.size()),
          .waiting = static_cast<int>(s.waiting.size()),
          .used = s.kv.used(),
          .retained = s.kv.retained(),
          .total = s.kv.total(),
          .preemptions = s.preemptions,
          .prefix_query_tokens = s.prefix_query_tokens,
          .prefix_hit_tokens = s.prefix_hit_tokens};
}

const Settings& Scheduler::settings() const { return impl_->s.settings; }
Tokens Scheduler::kv_length(Slot slot) const { return impl_->s.kv.length(slot); }

// ---------------------------------------------------------------- next

// Here and not in apply(), so that after apply() slots hold what the executor's hold: ops travel with a batch.
void Scheduler::Impl::release_ended() {
  for (const std::unique_ptr<Sequence>& e : ended) {
    if (e->slot)
      s.kv.release(*e->slot, e->finish != FinishReason::kError, s.batch.ops);
  }
  ended.clear();
}

// Sequences in order of slots: executors with one KV stream per slot need consecutive, ascending ones for one pass.
void Scheduler::Impl::collect() {
  std::fill(by_slot.begin(), by_slot.end(), nullptr);
  for (Sequence* r : s.running) {
    if (r->planned > Tokens(0))
      by_slot[static_cast<size_t>(r->slot->value())] = r;
  }
  for (Sequence* r : by_slot) {
    if (r == nullptr)
      continue;
    const auto first = static_cast<size_t>(r->computed.count());
    const auto count = static_cast<size_t>(r->planned.count());
    s.batch.sequences.push_back({.id = r->request.id,
                                 .slot = *r->slot,
                                 .first = r->computed,
                                 .tokens = std::span<const TokenId>(r->tokens).subspan(first, count),
                                 .samples = r->uncomputed() == r->planned,
                                 .decode = r->decodes()});
    in_batch.push_back(r);
    if (!r->told_scheduled) {
      r->told_scheduled = true;
      s.events.push_back({.kind = Event::Kind::kScheduled, .id = r->request.id, .cached = r->cached});
    }
  }
}

const Batch& Scheduler::next(TimePoint now) {
  Impl& m = *impl_;
  CHECK(!m.in_flight, "next() while a batch is in flight");
  Scheduling& s = m.s;
  s.now = now;
  s.preempted = false;
  s.batch.ops.clear();
  s.batch.sequences.clear();
  s.batch.total = Tokens(0);
  s.batch.wake_at.reset();
  m.in_batch.clear();
  m.release_ended();
  for (const Pass pass : passes(s.settings.batching))
    pass(s);
  m.collect();
  s.batch.live = s.settings.block_size * (s.kv.used() + s.kv.retained()).count();
  s.batch.events = !s.events.empty();
  m.in_flight = !s.batch.empty();
  if (m.in_flight)
    ++s.batch.step;
  return s.batch;
}

// ---------------------------------------------------------------- apply

void Scheduler::Impl::end(Sequence& sequence, FinishReason reason, TokenId token) {
  left = left || sequence.state == Sequence::State::kRunning;
  sequence.state = Sequence::State::kEnded;
  sequence.finish = reason;
  s.events.push_back({.kind = Event::Kind::kEnded, .id = sequence.request.id, .token = token, .reason = reason});
  const auto it = alive.find(sequence.request.id);
  ended.push_back(std::move(it->second));
  alive.erase(it);
}

void Scheduler::Impl::forget_left() {
  if (!left)
    return;
  left = false;
  std::erase_if(s.running, [](const Sequence* r) { return r->state != Sequence::State::kRunning; });
}

void Scheduler::Impl::take(Sequence& sequence, TokenId token) {
  const std::vector<TokenId>& stops = sequence.request.stop_tokens;
  if (std::find(stops.begin(), stops.end(), token) != stops.end()) {
    end(sequence, FinishReason::kStop, token);
    return;
  }
  sequence.tokens.push_back(token);
  s.events.push_back({.kind = Event::Kind::kToken, .id = sequence.request.id, .token = token});
  // max_model_len needs no look: submit() has seen that prompt and max_new fit.
  if (sequence.generated() >= sequence.request.max_new)
    end(sequence, FinishReason::kLength);
}

// A sequence that is to be finished keeps what it computed, but says no more; apply() ends it.
void Scheduler::Impl::apply_to(Sequence& sequence, const SequenceResult& result, size_t computed) {
  const bool finishing_now = sequence.finish != FinishReason::kNone;
  sequence.planned = Tokens(0);
  if (result.status == SequenceResult::Status::kKvLost) {
    s.kv.lost(*sequence.slot);
    sequence.slot.reset();
    left = true;
    if (finishing_now)
      return;
    if (sequence.lost)
      return end(sequence, FinishReason::kError);
    sequence.lost = true;
    return requeue(s, sequence);
  }
  sequence.computed += Tokens(computed);
  s.kv.commit(*sequence.slot,
              std::span<const TokenId>(sequence.tokens).first(static_cast<size_t>(sequence.computed.count())));
  if (result.status == SequenceResult::Status::kFailed)
    return end(sequence, FinishReason::kError);
  if (finishing_now || sequence.uncomputed() > Tokens(0))
    return;
  CHECK(result.sampled, "a sequence whose last token was computed has no sampled token");
  take(sequence, *result.sampled);
}

std::span<const Event> Scheduler::apply(const StepResult& result, TimePoint) {
  Impl& m = *impl_;
  CHECK(m.in_flight, "apply() without a batch in flight");
  CHECK(result.sequences.size() == m.in_batch.size(), "results are not parallel to the batch");
  m.in_flight = false;
  m.s.batch.total = Tokens(0);
  for (size_t i = 0; i < m.in_batch.size(); ++i) {
    m.apply_to(*m.in_batch[i], result.sequences[i], m.s.batch.sequences[i].tokens.size());
  }
  for (Sequence* f : m.finishing) {
    if (f->state != Sequence::State::kEnded)  // it may have failed at the same time
      m.end(*f, f->finish);
  }
  m.finishing.clear();
  m.forget_left();
  m.told.swap(m.s.events);
  m.s.events.clear();
  return m.told;
}

}  // namespace goodput
