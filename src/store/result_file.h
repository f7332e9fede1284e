// Results of a benchmark, ours and other tools', told apart by content: records of `bench --save-records`, study files,
// bench JSON, vLLM's result JSON, SGLang's JSONL, guidellm's JSON and AIPerf's two exports. A figure keeps the name of
// its definition (metrics/definitions.h), so that nobody downstream can compare two that only share a word. What a file
// does not hold is absent. Hostile input: sizes are bounded, numbers that are not finite or are negative where a time
// or count is meant are refused or absent, nothing crashes. Pure but for reading the file; any thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "metrics/record.h"
#include "metrics/summary.h"

namespace goodput {

enum class ResultKind : uint8_t {
  kRecords,
  kStudy,
  kBenchJson,
  kVllm,
  kSglang,
  kGuidellm,
  kAiperf,
  kAiperfRecords,
};
std::string_view to_string(ResultKind);  // "records of goodput bench", "vLLM's result JSON", …

// One number as the file states it.
struct ResultFigure {
  std::string name;        // p95_ttft, mean_tpot, goodput, attainment, request_throughput, failed, …
  std::string definition;  // a tag of metrics/definitions.h; percentiles also name their rule where it is not ours
  double value = 0;        // latencies in ms, rates per second, shares 0..1
};

// A value per request, in the order of the file (ours: of the schedule); NaN: that request has none.
struct ResultSamples {
  std::string metric;  // ttft, tpot, e2el
  std::string definition;
  std::vector<double> values;  // ms
};

struct ResultRun {
  std::string label;  // what tells the runs of a file apart: "rate 4", "max_num_seqs 8, 256 tokens, fcfs at 4/s"
  std::string schedule_hash;  // runs with equal ones had the same arrivals and prompts; empty: unknown
  std::vector<ResultFigure> figures;
  std::vector<ResultSamples> samples;
  std::vector<RequestRecord> records;        // ours only
  std::optional<Window> window;              // of the records; absent: not stored with them
  std::optional<std::string> workload_toml;  // a study's
  std::string phase;                         // a study's point: "measure", "confirm", …
  bool valid = true;                         // our verdict, where there is one
};

struct ResultFile {
  std::string path;
  ResultKind kind{};
  std::vector<ResultRun> runs;
};

// A study's folder means the study file in it. kNotFound, kIo; kUsage: not a result that is known, or damaged: the
// message says what was expected.
Result<ResultFile> read_result_file(const std::filesystem::path&);
// The same from bytes that are not a study (SQLite reads files).
Result<ResultFile> parse_result(std::string_view bytes, std::string path);

// Takes the figures of a run from its records as they are now judged, in place of those that were stored.
// `targets`: their text, which becomes a part of what goodput and attainment mean; empty: neither is kept.
void restate(ResultRun&, const PointSummary&, const std::string& targets);
// A hash over what a schedule fixes of each request (index, class, asked length, arrival relative to the first).
std::string schedule_fingerprint(const std::vector<RequestRecord>&);
// The window of a bench run as its JSON states it, for its records file.
Result<Window> window_of_bench_json(const std::filesystem::path&);

}  // namespace goodput
