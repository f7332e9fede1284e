// See engine_core.h.
#include "engine/engine_core.h"

#include <utility>
#include <vector>

#include "base/check.h"

namespace goodput {
namespace {

#ifdef NDEBUG
constexpr bool kCheckAccounting = false;
#else
constexpr bool kCheckAccounting = true;
#endif

// Batches without sequences that may follow each other in one begin(): releases, then events. More would be a scheduler
// that never comes to rest.
constexpr int kMaxOpsOnly = 16;

}  // namespace

struct EngineCore::Impl {
  std::unique_ptr<Scheduler> scheduler;
  std::unique_ptr<Executor> executor;
  StepSink* steps = nullptr;
  Capabilities capabilities;
  bool check_accounting = kCheckAccounting;

  const Batch* batch = nullptr;        // in flight
  const StepResult* result = nullptr;  // of it
  TimePoint start, until;
  SchedulerState state;        // as the batch in flight was made; only where there is a sink
  StepShape shape;             // the same
  Nanos tokenization;          // since the last record
  std::vector<Event> pending;  // of batches without sequences
  StepResult nothing;          // the result of a batch without ops and sequences

  void close_ended(std::span<const Event> events) {
    for (const Event& event : events) {
      if (event.kind == Event::Kind::kEnded)
        executor->close(event.id);
    }
  }

  void check() const {
    if (!check_accounting)
      return;
    for (int slot = 0; slot < capabilities.kv.slots; ++slot) {
      const auto held = executor->kv_length(Slot(slot));
      if (held)
        CHECK(*held == scheduler->kv_length(Slot(slot)), "scheduler and executor differ on a slot's KV length");
    }
  }

  // A batch without sequences takes no time that counts.
  void carry_out(const Batch& ops, TimePoint now) {
    const StepResult& done = ops.ops.empty() ? nothing : executor->run(ops);
    const std::span<const Event> events = scheduler->apply(done, now);
    close_ended(events);
    pending.insert(pending.end(), events.begin(), events.end());
    check();
  }

  void record(TimePoint now, std::span<const Event> events) {
    StepRecord r;
    r.start = start;
    r.duration = now - start;
    r.decode = result->decode;
    r.sampling = result->sampling;
    r.host = r.duration - r.decode - r.sampling;
    r.tokenization = std::exchange(tokenization, Nanos(0));
    r.shape = shape;
    r.shape.passes = result->passes;
    r.running = state.running;
    r.waiting = state.waiting;
    for (const Event& event : events)
      r.preempted += event.kind == Event::Kind::kPreempted;
    r.used = state.used;
    r.retained = state.retained;
    steps->write(r);
  }
};

EngineCore::EngineCore(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
EngineCore::~EngineCore() = default;

Result<std::unique_ptr<EngineCore>> EngineCore::create(const Settings& settings, std::unique_ptr<Executor> executor,
                                                       StepSink* steps, std::optional<bool> check_accounting) {
  auto impl = std::make_unique<Impl>();
  impl->capabilities = executor->capabilities();
  impl->scheduler = TRY(Scheduler::create(settings, impl->capabilities));
  impl->executor = std::move(executor);
  impl->steps = steps;
  impl->check_accounting = check_accounting.value_or(kCheckAccounting);
  return std::unique_ptr<EngineCore>(new EngineCore(std::move(impl)));
}

Result<void> EngineCore::submit(Request request, const SamplingParams& params) {
  const RequestId id = request.id;
  TRY(impl_->executor->open(id, params));
  auto accepted = impl_->scheduler->submit(std::move(request));
  if (!accepted)
    impl_->executor->close(id);
  return accepted;
}

void EngineCore::finish(RequestId id, FinishReason reason) { impl_->scheduler->finish(id, reason); }

EngineCore::Step EngineCore::begin(TimePoint now) {
  Impl& i = *impl_;
  CHECK(i.batch == nullptr, "a batch is in flight");
  i.pending.clear();
  for (int round = 0; round < kMaxOpsOnly; ++round) {
    const Batch& batch = i.scheduler->next(now);
    if (batch.empty())
      return {false, batch.wake_at};
    if (batch.sequences.empty()) {
      i.carry_out(batch, now);
      continue;
    }
    if (i.steps != nullptr) {
      i.state = i.scheduler->state();
      i.shape = batch.shape();
    }
    i.batch = &batch;
    i.result = &i.executor->run(batch);
    CHECK(i.result->sequences.size() == batch.sequences.size(), "an executor answers for every sequence");
    i.start = now;
    i.until = now + i.result->duration;
    return {true, i.until};
  }
  CHECK(false, "the scheduler gives batches without sequences for ever");
  return {};
}

std::span<const Event> EngineCore::end(TimePoint now) {
  Impl& i = *impl_;
  CHECK(i.batch != nullptr, "no batch is in flight");
  CHECK(now >= i.until, "a step cannot end before it has lasted its time");
  const std::span<const Event> events = i.scheduler->apply(*i.result, now);
  i.batch = nullptr;
  i.close_ended(events);
  i.check();
  if (i.steps != nullptr)
    i.record(now, events);
  return events;
}

std::span<const Event> EngineCore::take_events() { return impl_->pending; }

bool EngineCore::idle() const { return impl_->batch == nullptr && impl_->scheduler->idle(); }
SchedulerState EngineCore::state() const { return impl_->scheduler->state(); }
const Settings& EngineCore::settings() const { return impl_->scheduler->settings(); }
Capabilities EngineCore::capabilities() const { return impl_->capabilities; }
bool EngineCore::modelled_time() const { return impl_->executor->modelled_time(); }
TimePoint EngineCore::step_start() const { return impl_->start; }
void EngineCore::add_tokenization(Nanos time) { impl_->tokenization += time; }

const Batch& EngineCore::batch() const {
  CHECK(impl_->batch != nullptr, "no batch is in flight");
  return *impl_->batch;
}

}  // namespace goodput
