// What `map` hands to a load generator in a process of its own, and what comes back: a JSON file in, a JSON header line
// and the encoded records out. The records' encoding is store's, so they pass through here as bytes.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "load/load.h"

namespace goodput {

struct LoadJob {
  std::string base_url;
  Api api = Api::kCompletions;
  std::string model_path;     // GGUF whose vocabulary makes prompts of exact length; empty: words of about that length
  std::string workload_toml;  // workload::to_toml
  double rate = 1;            // requests/s of the open loop
  std::optional<int> concurrency;  // closed loop instead
  uint64_t seed = 1;
  Nanos warm_up{0}, window{0};  // seconds in the JSON: warm_up_s, duration_s
  Nanos tail = seconds(10);     // how long arrivals go on behind the window while its requests end: tail_s
  Tokens block_size{16};
  Tokens max_model_len{4096};
  std::vector<int> cpus;  // to run on; empty: as inherited
  std::optional<pid_t> server_pid;
  Nanos request_timeout = seconds(120);
  Nanos drain_limit = seconds(60);
  bool running_usage = false;  // ask for usage on every chunk: a server of our own, or one known to accept it
};

struct LoadJobResult {
  Window window;
  ClientAudit audit;
  bool interrupted = false;
  std::string schedule_hash;
  uint64_t scheduled = 0;  // requests that arrived before the end: each has a record
  double implied_hit_rate = 0;
  bool primed = false;  // shared documents were sent ahead
  std::string model;
  std::vector<Problem> problems;
  std::string records;  // as encoded by the caller
};

std::string encode_job(const LoadJob&);
// encode_job's inverse; kUsage names the missing, unknown or wrongly typed key.
Result<LoadJob> parse_job(std::string_view json);

std::string encode_result(const LoadJobResult&);
// kFailed: not such a file, or cut off before the records.
Result<LoadJobResult> parse_result(std::string_view bytes);

// A worker's line on stdout, once a second, and its inverse (nullopt for any other line).
std::string progress_line(const LoadCounts&);
std::optional<LoadCounts> parse_progress_line(std::string_view);

// The fields of an audit as JSON members, shared with reports: {"loop_busy_share": …}.
std::string audit_json(const ClientAudit&);

}  // namespace goodput
