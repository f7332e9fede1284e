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

// A length of time that is drawn: a constant, uniform in [low, high], or lognormal clipped to [low, high].
struct TimeSpec {
  LengthSpec::Kind kind = LengthSpec::Kind::kFixed;
  Nanos low{0}, high{0};  // fixed: low
  Nanos median{0};        // lognormal
  double sigma = 0;       // lognormal: of the logarithm
  bool operator==(const TimeSpec&) const = default;
};

// What prompts are written in, where a tokenizer writes them: tokens per character differ several-fold.
enum class TextKind : uint8_t { kEnglish, kChinese, kCode };

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
  // > 0: a prompt is one of this many prefixes of `prefix_len` tokens each, drawn uniformly and not primed, and
  // `prompt` more tokens that nobody shares (vLLM's prefix_repetition: lengths add). Not together with
  // shared_documents.
  int prefix_groups = 0;
  Tokens prefix_len{0};
  // A class of conversations: how many turns one has, and how long the user thinks between an answer's end and the next
  // turn. Arrivals are then of conversations; `prompt` is what the user adds in each turn (the first turn's prefix or
  // document comes on top), and a turn's whole prompt is all before it, answers included.
  LengthSpec turns;
  TimeSpec think_time;
  TextKind text = TextKind::kEnglish;
  TargetSet targets;
  // Targets as multiples of what the unloaded probe saw of this same class: its TTFT, its mean gap between tokens (as a
  // TPOT target), its E2E. A class of long prompts therefore gets a longer TTFT target from the same multiple. `map`
  // resolves them before anything is measured; a target in `targets` wins over its multiple. Absent: none.
  std::optional<double> ttft_times_unloaded, gap_times_unloaded, e2e_times_unloaded;
  bool operator==(const ClassSpec&) const = default;
};

enum class ArrivalKind : uint8_t { kPoisson, kConstant, kClosed, kTrace, kGamma };

// The formats of workload/trace.h; kAuto: known by column names or keys.
enum class TraceFormat : uint8_t { kAuto, kAzure, kBurstGpt, kMooncake, kBailian, kTimedTrace, kVllmCustom, kShareGpt };

// What kTimedTrace's keys are called (vLLM's --timed-trace-label-*).
struct TraceLabels {
  std::string timestamp = "timestamp", input_length = "input_length", output_length = "output_length",
              hash_ids = "hash_ids";
  bool operator==(const TraceLabels&) const = default;
};

struct TraceSpec {
  std::string file;
  TraceFormat format = TraceFormat::kAuto;
  // Take what is asked from the trace and when from `arrivals` (poisson, constant, gamma, closed), whose class 0 fills
  // in what the trace does not say. For traces without times, or to replay one's requests at another rate.
  bool requests_only = false;
  Nanos time_unit{0};      // of numeric time stamps; 0: the format's own (Mooncake 1 ms, the others 1 s)
  Tokens block_tokens{0};  // that one hash id stands for; 0: the format's own (Mooncake 512, the others 16)
  TraceLabels labels;      // kTimedTrace
  // In [0, 1): of a trace that carries lengths only, the share of every prompt that is the same for all. An assumption,
  // and reported as one; 0: prompts share nothing.
  double assumed_prefix_share = 0;
  Nanos from{0}, length{0};             // window into the trace, in the trace's own time; length 0: to its end
  double rate_factor = 1;               // > 1: faster
  double length_factor = 1;             // on prompt and output lengths; at least one output and two prompt tokens stay
  Tokens max_prompt{0}, max_output{0};  // clip after scaling; 0: none
  bool operator==(const TraceSpec&) const = default;
};

// The rate goes from `from` to `to` requests/s and stays there. By time: over `over` (0: the run's duration), the rate
// is a function of time. By index: vLLM's --ramp-up-strategy, where request i of N has its gap drawn at progress
// i/(N−1), so that the slow end takes most of the time.
struct RampSpec {
  enum class Shape : uint8_t { kLinear, kExponential } shape = Shape::kLinear;
  enum class By : uint8_t { kTime, kIndex } by = By::kTime;
  double from = 1, to = 1;  // exponential: both > 0
  Nanos over{0};
  bool operator==(const RampSpec&) const = default;
};

struct StageSpec {
  double rate = 1;  // requests/s; 0: a pause
  Nanos duration{0};
  bool operator==(const StageSpec&) const = default;
};

struct WorkloadSpec {
  std::string name = "mixed";
  std::vector<ClassSpec> classes;  // at least one; a trace's rows all belong to the first
  ArrivalKind arrivals = ArrivalKind::kPoisson;
  double rate = 1;  // requests/s; kPoisson, kConstant, kGamma; a ramp or stages stand in its place
  // kGamma: the shape of the gaps' gamma distribution, whose mean is 1/rate (vLLM's --burstiness): 1 is Poisson, less
  // is burstier, infinity is constant.
  double burstiness = 1;
  std::optional<RampSpec> ramp;   // kPoisson, kConstant, kGamma; not both of the two
  std::vector<StageSpec> stages;  // after the last, arrivals end
  // vLLM's: a schedule of N requests is stretched so that the last arrives at N/rate. It takes the run-to-run noise of
  // the rate away, which a confidence interval should show; for comparisons with vLLM only.
  bool rescale = false;
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
// As in TOML: "poisson", "constant", "closed", "trace", "gamma"; "english", "chinese", "code"; "auto", "azure", …
std::string_view to_string(ArrivalKind);
std::string_view to_string(TextKind);
std::string_view to_string(TraceFormat);
// Whether a ramp or stages, rather than `rate`, say how fast requests arrive.
bool has_rate_profile(const WorkloadSpec&);

}  // namespace goodput
