// See simulate.h. One thread; the only state besides the core is the records themselves: a request's id is its place.
#include "simulate/simulate.h"

#include <algorithm>
#include <queue>
#include <utility>

#include "base/check.h"
#include "engine/request_times.h"
#include "engine/simulated_executor.h"

namespace goodput {
namespace {

// Priming starts so long before time zero; virtual time costs nothing, and more than a day of it is a mistake.
constexpr Nanos kPrimingSpan = seconds(86'400);

Request to_request(const ScheduledRequest& scheduled, RequestId id, TimePoint arrival) {
  Request r;
  r.id = id;
  r.arrival = arrival;
  r.prompt = scheduled.prompt;
  r.max_new = scheduled.output;
  r.priority = scheduled.priority;
  return r;
}

// When the next request of the schedule comes. Open loop: at its time. Closed loop: when a place is free.
class Arrivals {
 public:
  Arrivals(const std::vector<ScheduledRequest>& requests, const SimulateOptions& options)
      : requests_(requests), closed_(options.concurrency > 0), think_(options.think_time) {
    for (int i = 0; i < options.concurrency; ++i)
      places_.push(TimePoint());
  }

  std::optional<TimePoint> next() const {
    if (index_ == requests_.size())
      return {};
    if (!closed_)
      return TimePoint(requests_[index_].at);
    return places_.empty() ? std::nullopt : std::optional(places_.top());
  }
  size_t take() {
    if (closed_)
      places_.pop();
    return index_++;
  }
  void place_free(TimePoint at) {
    if (closed_)
      places_.push(at + think_);
  }
  size_t taken() const { return index_; }

 private:
  const std::vector<ScheduledRequest>& requests_;
  const bool closed_;
  const Nanos think_;
  size_t index_ = 0;
  std::priority_queue<TimePoint, std::vector<TimePoint>, std::greater<>> places_;
};

class Simulation {
 public:
  Simulation(const Schedule& schedule, const SimulateOptions& options, EngineCore& core)
      : schedule_(schedule),
        options_(options),
        core_(core),
        arrivals_(schedule.requests, options),
        overhead_(options.request_overhead + options.token_overhead) {}

  // Runs each priming request alone, before time zero.
  Result<void> prime() {
    TimePoint now = TimePoint() - kPrimingSpan;
    uint64_t id = schedule_.requests.size();
    for (const ScheduledRequest& request : schedule_.priming) {
      TRY(core_.submit(to_request(request, RequestId(++id), now), {}));
      while (!core_.idle()) {
        const EngineCore::Step step = core_.begin(now);
        if (!step.ran && !step.until)
          continue;  // only what the last request left was carried out
        now = *step.until;
        if (step.ran)
          core_.end(now);
        if (now >= TimePoint())
          return fail(ErrorCode::kFailed, "priming the shared documents takes more than a day");
      }
    }
    return {};
  }

  SimulateResult play(uint64_t max_steps) {
    prepare_records();
    TimePoint now;
    while (result_.steps < max_steps) {
      enter_arrived(now);
      const EngineCore::Step step = core_.begin(now);
      hear(core_.take_events(), now, now);
      if (step.ran) {
        now = finish_step(now, *step.until);
        continue;
      }
      std::optional<TimePoint> next = arrivals_.next();
      if (step.until)
        next = std::min(*step.until, next.value_or(*step.until));
      if (!next)
        break;
      now = std::max(now, *next);
    }
    CHECK(result_.steps == max_steps || core_.idle(), "requests wait and nothing will ever wake them");
    for (size_t i = 0; i < arrivals_.taken(); ++i) {
      if (result_.records[i].outcome == Outcome::kNotSent)
        result_.records[i].outcome = Outcome::kUnfinished;
    }
    result_.state = core_.state();
    return std::move(result_);
  }

 private:
  void prepare_records() {
    result_.records.resize(schedule_.requests.size());
    for (size_t i = 0; i < result_.records.size(); ++i) {
      const ScheduledRequest& request = schedule_.requests[i];
      RequestRecord& record = result_.records[i];
      record.index = request.index;
      record.cls = request.cls;
      record.asked_output = request.output;
      record.scheduled = TimePoint(request.at);
    }
  }

  void enter_arrived(TimePoint now) {
    for (auto at = arrivals_.next(); at && *at <= now; at = arrivals_.next())
      enter(arrivals_.take(), *at);
  }

  // The client's side of a request that is sent at once and received at once.
  void enter(size_t i, TimePoint at) {
    RequestRecord& record = result_.records[i];
    record.scheduled = at;
    record.dispatched = record.connected = record.sent = at;
    record.attempts = 1;
    auto accepted = core_.submit(to_request(schedule_.requests[i], RequestId(i + 1), at), {});
    if (!accepted)
      return refuse(record, accepted.error().code);
    record.events.reserve(static_cast<size_t>(record.asked_output.count()));
    record.server.emplace();
    record.server->arrived = record.server->queued = at;
  }

  void refuse(RequestRecord& record, ErrorCode code) {
    const bool full = code == ErrorCode::kExhausted;
    record.outcome = full ? Outcome::kRejected : Outcome::kError;
    record.error = full ? ErrorKind::kNone : ErrorKind::kHttpStatus;
    record.http_status = full ? 503 : 400;
    record.closed = record.scheduled + options_.request_overhead;
    arrivals_.place_free(*record.closed);
  }

  TimePoint finish_step(TimePoint start, TimePoint end) {
    const Batch& batch = core_.batch();
    ++result_.steps;
    result_.sequence_steps += batch.sequences.size();
    if (options_.on_batch)
      options_.on_batch(batch, start, end);
    hear(core_.end(end), start, end);
    return end;
  }

  void hear(std::span<const Event> events, TimePoint start, TimePoint end) {
    for (const Event& event : events) {
      const size_t i = event.id.value() - 1;
      if (i >= result_.records.size())
        continue;  // a priming request's
      RequestRecord& record = result_.records[i];
      add_event(*record.server, event, start, end);
      switch (event.kind) {
        case Event::Kind::kScheduled:
          record.cached_tokens = event.cached;
          break;
        case Event::Kind::kToken:
          hear_token(record, end + overhead_);
          break;
        case Event::Kind::kPreempted:
          break;
        case Event::Kind::kEnded:
          hear_end(record, event, end);
          break;
      }
    }
  }

  static void hear_token(RequestRecord& record, TimePoint at) {
    if (record.events.empty()) {
      record.http_status = 200;
      record.first_chunk = record.first_token = record.first_answer = at;
    }
    TokenEvent& token = record.events.emplace_back();
    token.user = at - record.scheduled;
    token.tokens = 1;
  }

  void hear_end(RequestRecord& record, const Event& event, TimePoint end) {
    record.finish = event.reason;
    const bool ok = event.reason == FinishReason::kLength || event.reason == FinishReason::kStop;
    record.outcome = ok ? Outcome::kOk : Outcome::kError;
    record.error = ok ? ErrorKind::kNone : ErrorKind::kErrorObject;
    record.http_status = 200;
    record.token_source = TokenSource::kUsage;
    record.prompt_tokens = Tokens(schedule_.requests[event.id.value() - 1].prompt.size());
    record.output_tokens = Tokens(record.events.size());
    record.chunks = static_cast<uint32_t>(record.events.size());
    if (!record.events.empty())
      record.done = record.scheduled + record.events.back().user;
    record.closed = end + overhead_;
    result_.end = end;
    arrivals_.place_free(*record.closed);
  }

  const Schedule& schedule_;
  const SimulateOptions& options_;
  EngineCore& core_;
  Arrivals arrivals_;
  const Nanos overhead_;
  SimulateResult result_;
};

}  // namespace

Result<SimulateResult> simulate(const Schedule& schedule, const SimulateOptions& options, uint64_t max_steps) {
  SimulatedExecutor::Options executor;
  executor.capabilities = options.capabilities;
  executor.cost = options.cost;
  auto core = TRY(EngineCore::create(options.settings, std::make_unique<SimulatedExecutor>(executor), options.steps));
  Simulation simulation(schedule, options, *core);
  TRY(simulation.prime());
  return simulation.play(max_steps);
}

}  // namespace goodput
