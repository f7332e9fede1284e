// The flags of `goodput bench`: one table of rows (name, value, whose, meaning), and the values that parsing fills in.
// vLLM's `bench serve` flags keep their names, value syntax and defaults; ours stand beside them. What a flag means for
// a run is bench_plan.cc's business.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <CLI/CLI.hpp>

#include "base/result.h"

namespace goodput {

// As typed; a default that stands here is the flag's default. Texts are read by bench_plan.
struct BenchFlags {
  // The server.
  std::string backend = "openai", base_url, host = "127.0.0.1", endpoint, model, served_model_name, tokenizer;
  int64_t port = 8000;
  std::vector<std::string> headers;
  std::string ca_file, extra_body, request_id_prefix;
  int64_t ready_check_s = 0;
  bool insecure = false;
  // The requests.
  std::string dataset = "random", dataset_path, range_ratio = "0";
  std::optional<int64_t> prompts, input_len, output_len;
  uint64_t seed = 0, salt = 0;
  int64_t random_input = 1024, random_output = 128, random_prefix = 0;
  std::optional<int64_t> sharegpt_output;
  int64_t prefix_len = 256, suffix_len = 256, prefixes = 10, prefix_output = 128;
  int64_t trace_hash_block = 16;  // of timed_trace; other traces have their own
  double trace_multiplier = 1;    // likewise
  std::string trace_timestamp = "timestamp", trace_input = "input_length", trace_output = "output_length",
              trace_hash_ids = "hash_ids";
  bool self_timed = false, ignore_eos = false;
  std::optional<double> temperature, top_p, min_p, frequency_penalty, presence_penalty, repetition_penalty;
  std::optional<int64_t> top_k;
  // The arrivals.
  std::string rate = "inf", burstiness = "1", ramp_strategy;
  std::optional<double> ramp_start, ramp_end;
  std::optional<int64_t> concurrency;
  int64_t warmups = 0;
  bool rate_normalize = false;
  // What is made of it.
  std::vector<std::string> targets, metadata;
  std::string metrics, percentiles = "99", label, result_dir, result_filename;
  bool save_result = false, save_detailed = false, append_result = false, quiet = false;
  // Ours.
  std::string workload, duration, warm_up = "0s", records, cpus, table = "vllm", language = "en";
  int64_t timeout_s = 120;
  std::optional<double> floor;
  bool no_stream = false, plain = false, json = false, dry_run = false;
};

enum class FlagOwner : uint8_t { kVllm, kOurs };
struct FlagIgnored {};  // accepted, without effect
struct FlagRefused {};  // known, and answered with the row's meaning
using FlagField =
    std::variant<std::string BenchFlags::*, int64_t BenchFlags::*, uint64_t BenchFlags::*, double BenchFlags::*,
                 bool BenchFlags::*, std::optional<int64_t> BenchFlags::*, std::optional<double> BenchFlags::*,
                 std::vector<std::string> BenchFlags::*, FlagIgnored, FlagRefused>;

struct FlagRow {
  std::string_view name;    // without the dashes
  std::string_view syntax;  // of its value; empty: it has none
  FlagOwner owner;
  FlagField field;
  std::string_view meaning;
  int64_t least = INT64_MIN;  // of whole numbers
};
std::span<const FlagRow> bench_flag_rows();

void declare_bench_flags(CLI::App&, BenchFlags&);
// kUsage for the first flag that was given and is refused.
Result<void> check_refused_flags(const CLI::App&);

// Makes a command line for vLLM's bench one for ours: a leading word `serve` goes, flags may be written with '_' and
// shortened where that is not ambiguous, as Python's argparse allows. kUsage names what an abbreviation could mean.
Result<std::vector<std::string>> complete_bench_arguments(std::vector<std::string> arguments);

}  // namespace goodput
