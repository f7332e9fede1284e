// The workload as a value: the default mix, its validity, its hash. Pure functions; reading and writing TOML stand in
// toml.cc and to_toml.cc.
#include "workload/spec.h"

#include <filesystem>

#include <fmt/format.h>

#include "base/hash.h"
#include "workload/spec_rules.h"

namespace goodput {
namespace {

// Whether times come from a process of this file's making.
bool is_open(ArrivalKind kind) { return kind != ArrivalKind::kClosed && kind != ArrivalKind::kTrace; }

LengthSpec uniform(int low, int high) { return {LengthSpec::Kind::kUniform, Tokens(low), Tokens(high)}; }

}  // namespace

WorkloadSpec default_workload() {
  WorkloadSpec w;
  ClassSpec chat{.name = "chat", .share = 0.7, .prompt = uniform(32, 96), .output = uniform(16, 48)};
  // On one core an iteration of a full batch takes twenty times as long as that of a single sequence (measured on the
  // built-in engine): at 10 and 8 times, all capacities lay where less than one sequence ran on average.
  chat.ttft_times_unloaded = 20;
  chat.gap_times_unloaded = 20;

  ClassSpec rag{.name = "rag", .share = 0.1, .prompt = uniform(1024, 2048), .output = uniform(16, 32)};
  rag.shared_documents = 4;
  rag.question = Tokens(32);
  // Unloaded, a primed document is a prefix hit and only the question is computed. The larger multiple leaves room for
  // computing an evicted document again (some 45 times a question's tokens, in large chunks), not for a queue of them.
  rag.ttft_times_unloaded = 40;
  rag.gap_times_unloaded = 20;

  // Nobody watches its tokens come; it only has to end in a reasonable time.
  ClassSpec background{.name = "background", .share = 0.2, .priority = 10, .prompt = uniform(64, 192)};
  background.output = uniform(128, 256);
  background.e2e_times_unloaded = 40;

  w.classes = {chat, rag, background};
  return w;
}

Result<void> validate(const WorkloadSpec& w) {
  const auto problem = find_problem(w);
  if (!problem)
    return {};
  std::string where = "workload";
  if (problem->where == SpecProblem::Where::kTrace)
    where += ".trace";
  if (problem->where == SpecProblem::Where::kRamp)
    where += ".ramp";
  if (problem->where == SpecProblem::Where::kStage)
    where += fmt::format(".stage[{}]", problem->cls);
  if (problem->where == SpecProblem::Where::kClass)
    where += fmt::format(".class[{}] '{}'", problem->cls, w.classes[problem->cls].name);
  return fail(ErrorCode::kUsage, fmt::format("{}: {}", problem->key, problem->message), where);
}

std::string workload_hash(const WorkloadSpec& w) {
  WorkloadSpec canonical = w;
  canonical.name = "-";
  canonical.rate = 1;
  if (w.arrivals != ArrivalKind::kClosed)
    canonical.concurrency = 1, canonical.think_time = Nanos(0);
  if (w.arrivals != ArrivalKind::kTrace && !(w.trace && w.trace->requests_only))
    canonical.trace.reset();
  if (w.arrivals != ArrivalKind::kGamma)
    canonical.burstiness = 1;
  if (!is_open(w.arrivals))
    canonical.ramp.reset(), canonical.stages.clear(), canonical.rescale = false;
  if (canonical.trace)
    canonical.trace->file = std::filesystem::path(canonical.trace->file).filename().string();
  return sha256_hex("goodput workload 1\n" + to_toml(canonical));
}

std::vector<ClassRule> class_rules(const WorkloadSpec& w) {
  std::vector<ClassRule> rules;
  rules.reserve(w.classes.size());
  for (const auto& c : w.classes)
    rules.push_back({c.name, c.targets});
  return rules;
}

std::string_view to_string(ArrivalKind kind) {
  switch (kind) {
    case ArrivalKind::kPoisson:
      return "poisson";
    case ArrivalKind::kConstant:
      return "constant";
    case ArrivalKind::kClosed:
      return "closed";
    case ArrivalKind::kTrace:
      return "trace";
    case ArrivalKind::kGamma:
      return "gamma";
  }
  return "?";
}

std::string_view to_string(TextKind kind) {
  switch (kind) {
    case TextKind::kEnglish:
      return "english";
    case TextKind::kChinese:
      return "chinese";
    case TextKind::kCode:
      return "code";
  }
  return "?";
}

std::string_view to_string(TraceFormat format) {
  switch (format) {
    case TraceFormat::kAuto:
      return "auto";
    case TraceFormat::kAzure:
      return "azure";
    case TraceFormat::kBurstGpt:
      return "burstgpt";
    case TraceFormat::kMooncake:
      return "mooncake";
    case TraceFormat::kBailian:
      return "bailian";
    case TraceFormat::kTimedTrace:
      return "timed_trace";
    case TraceFormat::kVllmCustom:
      return "custom";
    case TraceFormat::kShareGpt:
      return "sharegpt";
  }
  return "?";
}

bool has_rate_profile(const WorkloadSpec& w) { return is_open(w.arrivals) && (w.ramp || !w.stages.empty()); }

}  // namespace goodput
