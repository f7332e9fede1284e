// A workload: who asks for what, how long, how often, and how soon it must be answered. Plain values, read from TOML or
// flags, hashed before anything is measured.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "metrics/summary.h"
#include "metrics/targets.h"

namespace goodput {

struct LengthSpec {
  enum class Kind : uint8_t { kFixed, kUniform, kLognormal } kind = Kind::kFixed;
  Tokens low{1}, high{1};            // fixed: low; uniform: [low, high]; lognormal: clipped to [low, high]
  double median = 1, sigma = 0;      // lognormal
  bool operator==(const LengthSpec&) const = default;
};

struct ClassSpec {
  std::string name;
  double share = 1;                  // of arrivals; normalised over the classes
  int priority = 0;                  // lower first
  LengthSpec prompt, output;         // tokens
  int shared_documents = 0;          // > 0: prompts begin with one of this many documents, drawn uniformly
  Tokens question{0};                // with shared_documents: tokens after the document that are unique
  TargetSet targets;
  // Targets relative to the unloaded probe, resolved by `map` before anything is measured; absent: none.
  std::optional<double> ttft_times_unloaded, gap_times_unloaded;
  bool operator==(const ClassSpec&) const = default;
};

enum class ArrivalKind : uint8_t { kPoisson, kConstant, kClosed, kTrace };

struct TraceSpec {
  std::string file;                  // Azure 2023 CSV
  Nanos from{0}, length{0};          // window into the trace; length 0: to its end
  double rate_factor = 1;            // > 1: faster
  double length_factor = 1;          // on prompt and output lengths
  Tokens max_prompt{0}, max_output{0};  // clip after scaling; 0: none
  bool operator==(const TraceSpec&) const = default;
};

struct WorkloadSpec {
  std::string name = "mixed";
  std::vector<ClassSpec> classes;    // at least one
  ArrivalKind arrivals = ArrivalKind::kPoisson;
  double rate = 1;                   // requests/s; kPoisson, kConstant
  int concurrency = 1;               // kClosed
  Nanos think_time{0};               // kClosed
  std::optional<TraceSpec> trace;    // kTrace
  bool operator==(const WorkloadSpec&) const = default;
};

// The default mix: chat 70 %, rag 10 % over 4 documents, background 20 %.
WorkloadSpec default_workload();
// Reads the [workload] part of a study file. Errors carry "file:line:column" in their context, name the key, and suggest
// the nearest known one; unknown keys are errors.
Result<WorkloadSpec> parse_workload(std::string_view toml, std::string_view file_name);
Result<WorkloadSpec> load_workload(const std::string& path);
std::string to_toml(const WorkloadSpec&);                   // parse_workload's inverse
Result<void> validate(const WorkloadSpec&);
// 64 hex digits over everything that determines the load except rate and seed: classes, lengths, shares, targets.
std::string workload_hash(const WorkloadSpec&);
std::vector<ClassRule> class_rules(const WorkloadSpec&);
std::string_view to_string(ArrivalKind);

}  // namespace goodput
