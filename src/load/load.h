// The load generator: sends a schedule to a URL and records what comes back. One thread, one loop; shares nothing with
// the server. Open loop: absolute times, a late send is late, never re-paced, and no cap hides connections. Every
// scheduled request ends in exactly one outcome.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/progress.h"
#include "base/result.h"
#include "metrics/record.h"
#include "metrics/summary.h"
#include "workload/schedule.h"

namespace goodput {

// What is spoken to the server; each has its row in protocol.h.
enum class Api : uint8_t {
  kCompletions,
  kChat,
  kResponses,
  kOllamaChat,
  kOllamaGenerate,
  kTgi,
  kAnthropic,
  kLlama,  // llama-server's own /completion
};
inline constexpr int kApis = 8;

// How far a run is; once a second through LoadOptions::on_second.
struct LoadCounts {
  uint64_t sent = 0, done = 0, of = 0;
};

struct LoadOptions {
  std::string base_url;  // http://host:port, with or without /v1
  Api api = Api::kCompletions;
  std::string model;  // empty: the first that the server names
  std::string
      extra_body;  // JSON object merged over every request's body (RFC 7396: null removes a member); may be empty
  std::vector<std::pair<std::string, std::string>> headers;
  std::string api_key;  // never printed or stored
  bool stream = true;
  bool ignore_eos = true;
  Nanos request_timeout = seconds(120);
  bool running_usage = false;     // ask for usage on every chunk (vLLM's continuous_usage_stats)
  std::string request_id_prefix;  // X-Request-Id: the prefix and the request's index; empty: no such header
  int concurrency = 0;            // > 0: closed loop over the schedule's order
  int max_in_flight = 0;          // > 0: caps an open loop; a capped send is late, latency stays from its time
  Nanos think_time{0};
  Nanos warm_up{0};                 // requests scheduled before it are outside the window
  Nanos window{0};                  // length of the window after the warm-up; 0: up to the last arrival
  Nanos drain_limit = seconds(60);  // after the last arrival; then what is open is `unfinished`
  std::optional<pid_t> server_pid;  // local server process, for its waiting time
  std::function<void(const LoadCounts&)> on_second;
};

// What failed requests were told, in the server's words where it had any; counted by message.
struct Problem {
  std::string what;
  uint64_t count = 0;
};

struct LoadResult {
  std::vector<RequestRecord> records;  // by index, all of the schedule
  Window window;
  ClientAudit audit;
  std::string model;  // as used
  bool interrupted = false;
  std::vector<Problem> problems;  // at most limits::kMaxProblems, in order of first sight
  uint64_t connections = 0;       // opened, all in all
  uint64_t stale_retries = 0;     // sent again because a reused connection had been closed
};

// The window is [start + warm_up, + window); what is scheduled behind it keeps arriving until every request of the
// window has ended, and is `not_sent` from then on. With window 0 it ends behind the last arrival (closed loop: behind
// the last end). A run that was stopped has its window cut at the stop.
//
// Primes the schedule's shared documents, then sends. `stop` set: sends no more, waits up to a second, reports what
// there is. kUnreachable when the server cannot be reached or does not speak HTTP before anything was measured.
// kExhausted: more connections than descriptors are certain.
// `sink` (may be null) gets each record when it is over, on the loop's thread.
Result<LoadResult> run_load(const Schedule&, const LoadOptions&, RecordSink* sink, Progress&,
                            const std::atomic<bool>& stop);

}  // namespace goodput
