// See intake.h.
#include "engine/intake.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/limits.h"
#include "scheduler/can_ever_run.h"

namespace goodput {
Intake::Intake(const Settings& settings, const KvGeometry& kv, const Clock& clock)
    : settings_(settings), kv_(kv), clock_(clock) {}

int Intake::queued(TimePoint now) const {
  const auto ahead = std::upper_bound(waiting_.begin(), waiting_.end(), now,
                                      [](TimePoint t, const Waiting& w) { return t < w.entry; });
  return state_.waiting + moving_ + static_cast<int>(ahead - waiting_.begin());
}

Result<RequestId> Intake::submit(EngineRequest request) {
  TRY(can_ever_run(request.request, settings_, kv_));
  std::lock_guard lock(mutex_);
  if (closed_)
    return fail(ErrorCode::kFailed, "the engine is shutting down and takes no more requests");
  const TimePoint now = clock_.now();
  const TimePoint entry = std::max(request.request.arrival, now);
  if (entry > now) {
    if (waiting_.size() >= limits::kMaxAheadRequests) {
      return fail(ErrorCode::kExhausted, "too many requests were submitted ahead of their arrival");
    }
  } else if (queued(now) >= settings_.max_num_queued_reqs) {
    return fail(ErrorCode::kExhausted, fmt::format("the queue is full: {} requests wait (max_num_queued_reqs)",
                                                   settings_.max_num_queued_reqs));
  }
  const RequestId id(++last_id_);
  request.request.id = id;
  const auto place = std::upper_bound(waiting_.begin(), waiting_.end(), entry,
                                      [](TimePoint t, const Waiting& w) { return t < w.entry; });
  waiting_.insert(place, Waiting{entry, std::move(request)});
  open_.emplace(id, Stage::kWaiting);
  return id;
}

void Intake::finish_locked(RequestId id, Stage& stage, FinishReason reason) {
  if (stage == Stage::kEntered) {
    finishing_.push_back({clock_.now(), {id, reason}});
  } else if (stage == Stage::kWaiting) {
    const auto it =
        std::find_if(waiting_.begin(), waiting_.end(), [id](const Waiting& w) { return w.request.request.id == id; });
    cancelled_.push_back({std::move(it->request), reason});
    waiting_.erase(it);
  }
  stage = Stage::kFinishing;
}

void Intake::finish(RequestId id, FinishReason reason) {
  std::lock_guard lock(mutex_);
  const auto it = open_.find(id);
  if (it != open_.end())
    finish_locked(id, it->second, reason);
}

void Intake::finish_all(FinishReason reason) {
  std::lock_guard lock(mutex_);
  for (auto& [id, stage] : open_)
    finish_locked(id, stage, reason);
}

void Intake::add_tokenization(Nanos time) {
  std::lock_guard lock(mutex_);
  tokenization_ += time;
}

void Intake::close() {
  std::lock_guard lock(mutex_);
  closed_ = true;
}

SchedulerState Intake::state() const {
  std::lock_guard lock(mutex_);
  return state_;
}

void Intake::take(TimePoint now, bool requests, Taken& out) {
  out.finishes.clear();
  out.requests.clear();
  out.cancelled.clear();
  std::lock_guard lock(mutex_);
  out.tokenization = std::exchange(tokenization_, Nanos(0));
  std::swap(out.cancelled, cancelled_);
  std::erase_if(finishing_, [&](const Finishing& f) {
    if (f.when <= now)
      out.finishes.push_back(f.finish);
    return f.when <= now;
  });
  while (requests && !waiting_.empty() && waiting_.front().entry <= now) {
    open_[waiting_.front().request.request.id] = Stage::kEntered;
    out.requests.push_back(std::move(waiting_.front().request));
    waiting_.pop_front();
    ++moving_;
  }
}

void Intake::take_all(Taken& out) { take(TimePoint(Nanos(INT64_MAX)), true, out); }

std::optional<TimePoint> Intake::next() const {
  std::lock_guard lock(mutex_);
  std::optional<TimePoint> earliest;
  const auto consider = [&earliest](TimePoint t) { earliest = std::min(t, earliest.value_or(t)); };
  if (!cancelled_.empty())
    consider(clock_.now());
  if (!waiting_.empty())
    consider(waiting_.front().entry);
  for (const Finishing& f : finishing_)
    consider(f.when);
  return earliest;
}

void Intake::publish(const SchedulerState& state) {
  std::lock_guard lock(mutex_);
  state_ = state;
  moving_ = 0;
}

bool Intake::ended(RequestId id) {
  std::lock_guard lock(mutex_);
  open_.erase(id);
  return open_.empty();
}

bool Intake::none_open() const {
  std::lock_guard lock(mutex_);
  return open_.empty();
}

}  // namespace goodput
