// See engine.h. One thread owns the core; all that others ask passes through the intake.
#include "engine/engine.h"

#include <algorithm>
#include <atomic>
#include <thread>
#include <unordered_map>
#include <utility>

#include "base/check.h"
#include "engine/intake.h"

namespace goodput {
namespace {

constexpr TimePoint kNever{Nanos(INT64_MAX / 2)};

}  // namespace

struct Engine::Impl {
  using Owner = std::function<void(const RequestUpdate&)>;

  std::unique_ptr<EngineCore> core;
  std::unique_ptr<Clock> clock;
  const bool modelled;
  Intake intake;
  Wakeup work;     // something came in: ends an idle wait
  Wakeup stop;     // ends the wait for a step's modelled end
  Wakeup drained;  // nothing is open any more: ends drain()'s wait
  std::atomic<bool> stopping{false};

  // The engine's thread alone.
  std::unordered_map<RequestId, Owner> owners;  // of the requests in the core
  Intake::Taken taken;
  std::thread thread;  // last: it uses all of the above

  Impl(std::unique_ptr<EngineCore> c, std::unique_ptr<Clock> k)
      : core(std::move(c)),
        clock(std::move(k)),
        modelled(core->modelled_time()),
        intake(core->settings(), core->capabilities().kv, *clock) {}

  void end_one(RequestId id, const Owner& owner, FinishReason reason, TimePoint at) {
    RequestUpdate update;
    update.event.kind = Event::Kind::kEnded;
    update.event.id = id;
    update.event.reason = reason;
    update.at = update.started = at;
    if (owner)
      owner(update);
    if (intake.ended(id))
      drained.notify();
  }

  void deliver(std::span<const Event> events, TimePoint started, TimePoint at) {
    for (const Event& event : events) {
      const auto it = owners.find(event.id);
      CHECK(it != owners.end(), "an event for a request that is not there");
      if (it->second)
        it->second({event, at, started, &event != &events.back()});
      if (event.kind != Event::Kind::kEnded)
        continue;
      owners.erase(it);
      if (intake.ended(event.id))
        drained.notify();
    }
  }

  // Everything that counts from `now` or earlier; requests only between steps.
  void take(TimePoint now, bool requests) {
    intake.take(now, requests, taken);
    core->add_tokenization(taken.tokenization);
    for (const auto& [request, reason] : taken.cancelled)
      end_one(request.request.id, request.on_update, reason, now);
    for (const auto& [id, reason] : taken.finishes)
      core->finish(id, reason);
    for (EngineRequest& request : taken.requests) {
      const RequestId id = request.request.id;
      if (core->submit(std::move(request.request), request.sampling)) {
        owners.emplace(id, std::move(request.on_update));
      } else {
        end_one(id, request.on_update, FinishReason::kError, now);
      }
    }
  }

  // The next time at which there is something to do. On modelled time that is exactly when it counts from, however late
  // this thread woke; on real time it is now.
  TimePoint wait_for_work(TimePoint now, std::optional<TimePoint> wake) {
    while (!stopping.load()) {
      const TimePoint when = std::min(wake.value_or(kNever), intake.next().value_or(kNever));
      if (when <= now)
        return now;
      if (clock->wait_until(when, work))
        return modelled ? when : std::max(now, clock->now());
    }
    return now;
  }

  // The end of the step in flight: logical where time is modelled, what the clock says where it is real.
  TimePoint wait_for_end(TimePoint until) {
    if (!modelled)
      return std::max(until, clock->now());
    while (!stopping.load() && !clock->wait_until(until, stop)) {
    }
    return until;
  }

  void run() {
    TimePoint now = clock->now();
    while (!stopping.load()) {
      take(now, true);
      const EngineCore::Step step = core->begin(now);
      intake.publish(core->state());  // before owners hear: who hears of the last end must find it in the state
      deliver(core->take_events(), now, now);
      if (!step.ran) {
        now = wait_for_work(now, step.until);
        continue;
      }
      now = wait_for_end(*step.until);
      if (stopping.load())
        break;
      take(now, false);
      const std::span<const Event> events = core->end(now);
      intake.publish(core->state());
      deliver(events, core->step_start(), now);
    }
    abort_all(now);
  }

  // The engine goes: each owner hears of it once, in the order of their requests.
  void abort_all(TimePoint now) {
    std::vector<std::pair<RequestId, Owner>> left;
    for (auto& [id, owner] : owners)
      left.emplace_back(id, std::move(owner));
    owners.clear();
    intake.take_all(taken);
    for (EngineRequest& r : taken.requests)
      left.emplace_back(r.request.id, std::move(r.on_update));
    for (auto& [r, reason] : taken.cancelled)
      left.emplace_back(r.request.id, std::move(r.on_update));
    std::sort(left.begin(), left.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    for (const auto& [id, owner] : left)
      end_one(id, owner, FinishReason::kAbort, now);
  }
};

Engine::Engine(std::unique_ptr<EngineCore> core, std::unique_ptr<Clock> clock)
    : impl_(std::make_unique<Impl>(std::move(core), std::move(clock))) {
  impl_->thread = std::thread([impl = impl_.get()] { impl->run(); });
}

Engine::~Engine() {
  impl_->intake.close();
  impl_->stopping.store(true);
  impl_->work.notify();
  impl_->stop.notify();
  impl_->thread.join();
}

Result<RequestId> Engine::submit(EngineRequest request) {
  const RequestId id = TRY(impl_->intake.submit(std::move(request)));
  impl_->work.notify();
  return id;
}

void Engine::finish(RequestId id, FinishReason reason) {
  impl_->intake.finish(id, reason);
  impl_->work.notify();
}

void Engine::add_tokenization(Nanos time) { impl_->intake.add_tokenization(time); }
SchedulerState Engine::state() const { return impl_->intake.state(); }
const Clock& Engine::clock() const { return *impl_->clock; }

bool Engine::drain(Nanos limit) {
  Impl& i = *impl_;
  i.intake.close();
  const TimePoint deadline = i.clock->now() + limit;
  while (!i.intake.none_open()) {
    if (!i.clock->wait_until(deadline, i.drained))
      continue;
    if (i.intake.none_open())
      return true;
    i.intake.finish_all(FinishReason::kAbort);
    i.work.notify();
    while (!i.intake.none_open())
      i.clock->wait_until(kNever, i.drained);
    return false;
  }
  return true;
}

}  // namespace goodput
