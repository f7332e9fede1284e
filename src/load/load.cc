#include "load/load.h"

#include <algorithm>

#include "base/clock.h"
#include "base/limits.h"
#include "load/generator.h"
#include "load/protocol.h"
#include "load/request_bytes.h"
#include "load/server_identity.h"
#include "net/url.h"

namespace goodput {
namespace {

constexpr Nanos kHeadStart = milliseconds(50);  // warm connections are made in it
constexpr size_t kOwnDescriptors = 64;          // files, pipes and the epoll set, beside the connections

Result<void> check(const Schedule& schedule, const LoadOptions& options) {
  TRY(check_options(options));
  for (const auto* list : {&schedule.requests, &schedule.priming}) {
    for (const ScheduledRequest& r : *list) {
      if (r.turn && r.turn->continues)
        return fail(ErrorCode::kUsage,
                    "conversations of several turns cannot be sent yet: give single questions, without `turns`");
      if (r.text.empty() && !r.prompt.empty()) {
        return fail(ErrorCode::kUsage,
                    "the schedule has token ids but no text to send: it was made without a tokenizer");
      }
    }
  }
  const size_t descriptors = raise_descriptor_limit();
  const size_t needed = static_cast<size_t>(std::max(options.concurrency, options.max_in_flight)) + kOwnDescriptors;
  if (needed > descriptors || needed > static_cast<size_t>(limits::kMaxConnections)) {
    return fail(ErrorCode::kExhausted, std::to_string(needed) + " descriptors are needed, " +
                                           std::to_string(descriptors) + " are allowed (ulimit -n), and " +
                                           std::to_string(limits::kMaxConnections) + " is this client's bound");
  }
  return {};
}

std::vector<std::string> all_bytes(const Url& url, const LoadOptions& options, const Route& route,
                                   const std::string& model, const std::vector<ScheduledRequest>& requests) {
  std::vector<std::string> out;
  out.reserve(requests.size());
  for (const ScheduledRequest& r : requests)
    out.push_back(request_bytes(url, options, route, model, r));
  return out;
}

Result<void> prime(Generator& generator, const Schedule& schedule, const std::vector<std::string>& bytes,
                   Progress& progress) {
  if (schedule.priming.empty())
    return {};
  progress.note("priming " + std::to_string(schedule.priming.size()) + " shared documents");
  Play play;
  play.requests = &schedule.priming;
  play.bytes = &bytes;
  play.start = monotonic_now();
  play.concurrency = 1;  // one after the other: their cost must not be each other's queue
  const auto records = TRY(generator.play(play));
  const auto failed =
      std::count_if(records.begin(), records.end(), [](const auto& r) { return r.outcome != Outcome::kOk; });
  if (failed > 0 && !generator.interrupted()) {
    progress.note(std::to_string(failed) + " priming requests failed: shared documents may be cold");
  }
  return {};
}

// Where the window lies once everything is known: behind the last arrival (open loop) or the last end (closed loop),
// and never beyond a stop.
Window final_window(Window window, bool fixed, const Play& play, const std::vector<RequestRecord>& records,
                    std::optional<TimePoint> stopped) {
  if (!fixed) {
    window.end = window.start;
    for (const RequestRecord& r : records) {
      const TimePoint last = play.concurrency > 0 ? r.closed.value_or(window.start) : r.scheduled;
      window.end = std::max(window.end, last + Nanos(1));
    }
  }
  if (stopped)
    window.end = std::min(window.end, *stopped);
  window.start = std::min(window.start, window.end);
  return window;
}

}  // namespace

Result<LoadResult> run_load(const Schedule& schedule, const LoadOptions& options, RecordSink* sink, Progress& progress,
                            const std::atomic<bool>& stop) {
  const Url url = TRY(parse_url(options.base_url));
  TRY(check(schedule, options));
  const auto routes = TRY(find_routes(url, options.transport));
  const ServerIdentity before = TRY(identify(url, options, routes));
  LoadResult result;
  result.model = options.model.empty() ? before.first_model : options.model;
  if (result.model.empty() && protocol_of(options.api).names_model) {
    return fail(ErrorCode::kUnreachable,
                "GET " + before.asked + " names no model: expected a server that speaks " +
                    std::string(protocol_of(options.api).name) + ", or name the model (--model)",
                options.base_url);
  }
  const auto bytes = all_bytes(url, options, before.route, result.model, schedule.requests);
  const auto priming_bytes = all_bytes(url, options, before.route, result.model, schedule.priming);

  Generator generator(TRY(EventLoop::create()), before.route, options, stop);
  TRY(prime(generator, schedule, priming_bytes, progress));
  generator.warm(std::max(options.concurrency, 1));

  Play play;
  play.requests = &schedule.requests;
  play.bytes = &bytes;
  play.start = monotonic_now() + kHeadStart;
  play.concurrency = options.concurrency;
  play.max_in_flight = options.max_in_flight;
  play.think_time = options.think_time;
  play.window_start = play.start + options.warm_up;
  const bool fixed = options.window > Nanos(0);
  if (fixed)
    play.window_end = play.window_start + options.window;
  play.sink = sink;
  play.progress = &progress;
  result.records = TRY(generator.play(play));
  result.window = final_window({play.window_start, play.window_end.value_or(play.window_start)}, fixed, play,
                               result.records, generator.stopped_at());
  result.audit = generator.watch().audit();
  result.audit.server_before = before.text;
  // After the run its absence is no error: the server may have been stopped, and the records say what happened.
  if (const auto after = identify(url, options, {before.route}))
    result.audit.server_after = after->text;
  if (result.audit.server_after.empty())
    result.audit.server_after = before.text;
  result.interrupted = generator.interrupted();
  result.problems = generator.take_problems();
  result.connections = generator.connections();
  result.stale_retries = generator.stale_retries();
  return result;
}

}  // namespace goodput
