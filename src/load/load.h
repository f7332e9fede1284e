// The load generator: sends a schedule to a URL and records what comes back. One thread, one loop; shares nothing with
// the server. Open loop: absolute times, a late send is late, never re-paced, and no cap hides connections. Every scheduled
// request ends in exactly one outcome.
#pragma once

#include <atomic>
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

enum class Api : uint8_t { kCompletions, kChat };

struct LoadOptions {
  std::string base_url;                 // http://host:port, with or without /v1
  Api api = Api::kCompletions;
  std::string model;                    // empty: the first of /v1/models
  std::vector<std::pair<std::string, std::string>> headers;
  std::string api_key;                  // never printed or stored
  bool stream = true;
  bool ignore_eos = true;
  Nanos request_timeout = seconds(120);
  int concurrency = 0;                  // > 0: closed loop over the schedule's order
  Nanos think_time{0};
  Nanos warm_up{0};                     // requests scheduled before it are outside the window
  Nanos window{0};                      // length of the window after the warm-up; 0: up to the last arrival
  Nanos drain_limit = seconds(60);      // after the last arrival; then what is open is `unfinished`
  std::optional<pid_t> server_pid;      // local server process, for its waiting time and memory
};

struct LoadResult {
  std::vector<RequestRecord> records;   // by index, all of the schedule
  Window window;
  ClientAudit audit;
  std::string model;                    // as used
  bool interrupted = false;
};

// Primes the schedule's shared documents, then sends. `stop` set: sends no more, waits up to a second, reports what there
// is. kUnreachable when the server cannot be reached or does not speak HTTP before anything was measured.
// `sink` (may be null) gets each record when it is over, on the loop's thread.
Result<LoadResult> run_load(const Schedule&, const LoadOptions&, RecordSink* sink, Progress&,
                            const std::atomic<bool>& stop);

}  // namespace goodput
