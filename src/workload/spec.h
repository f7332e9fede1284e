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
  Tokens low{1}, high{1};        // fixed: low; uniform: [low, high]; lognormal: clipped to [low, high]
  double median = 1, sigma = 0;  // lognormal: median in tokens, sigma of the logarithm
  bool operator==(const LengthSpec&) const = default;
};

struct ClassSpec {
  std::string name;           // letters, digits, '_', '-', '.'; unique in the workload
  double share = 1;           // of arrivals, > 0; normalised over the classes
  int priority = 0;           // lower first
  LengthSpec prompt, output;  // tokens; a prompt's length includes the special tokens that the server adds (BOS)
  // > 0: a prompt is one of this many documents, drawn uniformly, and a question that no other request asks. Document k
  // of n is as long as the (k + ½)/n quantile of `prompt` less `question`: the documents' lengths belong to the
  // workload, not to the seed, because so few draws would make one seed's load lighter than another's.
  int shared_documents = 0;
  Tokens question{0};  // with shared_documents: mean length of the question, uniform in [½, 1½] of it
  TargetSet targets;
  // Targets as multiples of what the unloaded probe saw of this same class: its TTFT, its mean gap between tokens (as a
  // TPOT target), its E2E. A class of long prompts therefore gets a longer TTFT target from the same multiple. `map`
  // resolves them before anything is measured; a target in `targets` wins over its multiple. Absent: none.
  std::optional<double> ttft_times_unloaded, gap_times_unloaded, e2e_times_unloaded;
  bool operator==(const ClassSpec&) const = default;
};

enum class ArrivalKind : uint8_t { kPoisson, kConstant, kClosed, kTrace };

struct TraceSpec {
  std::string file;                     // Azure 2023 CSV
  Nanos from{0}, length{0};             // window into the trace, in the trace's own time; length 0: to its end
  double rate_factor = 1;               // > 1: faster
  double length_factor = 1;             // on prompt and output lengths; at least one output and two prompt tokens stay
  Tokens max_prompt{0}, max_output{0};  // clip after scaling; 0: none
  bool operator==(const TraceSpec&) const = default;
};

struct WorkloadSpec {
  std::string name = "mixed";
  std::vector<ClassSpec> classes;  // at least one; a trace's rows all belong to the first
  ArrivalKind arrivals = ArrivalKind::kPoisson;
  double rate = 1;                 // requests/s; kPoisson, kConstant
  int concurrency = 1;             // kClosed
  Nanos think_time{0};             // kClosed
  std::optional<TraceSpec> trace;  // kTrace
  bool operator==(const WorkloadSpec&) const = default;
};

// The default mix: chat 70 %, rag 10 % over 4 documents, background 20 %.
WorkloadSpec default_workload();
// Reads the [workload] part of a study file; without that part, the default mix, and without classes in it, the default
// mix's classes. The grammar is in toml.cc. Errors (kUsage) carry "file:line:column" in their context, name the key,
// and suggest the nearest known one; unknown keys are errors. [map], [engine] and [targets] belong to others.
Result<WorkloadSpec> parse_workload(std::string_view toml, std::string_view file_name);
// The same from a file; a relative trace file is looked up beside it. kNotFound, kIo: the file cannot be read.
Result<WorkloadSpec> load_workload(const std::string& path);
// parse_workload's inverse, for every spec that validate() accepts.
std::string to_toml(const WorkloadSpec&);
// kUsage: the first thing that is wrong, with its class and key.
Result<void> validate(const WorkloadSpec&);
// 64 hex digits over everything that determines the load except rate and seed: arrivals, classes, lengths, shares,
// targets. Of a trace, its file's name without folders: the schedule's hash covers its content.
std::string workload_hash(const WorkloadSpec&);
std::vector<ClassRule> class_rules(const WorkloadSpec&);
std::string_view to_string(ArrivalKind);  // "poisson", "constant", "closed", "trace": as in TOML

}  // namespace goodput
