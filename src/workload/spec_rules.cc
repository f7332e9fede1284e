// The rules of spec_rules.h. A check returns the message of what is wrong, empty when nothing is. Pure functions.
#include "workload/spec_rules.h"

#include <algorithm>
#include <cmath>
#include <set>

#include <fmt/format.h>

#include "base/limits.h"
#include "workload/length.h"

namespace goodput {
namespace {

using Where = SpecProblem::Where;

std::string check_name(std::string_view name) {
  const auto legal = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' ||
           c == '.';
  };
  if (name.empty())
    return "a name is needed";
  if (name.size() > limits::kMaxNameBytes)
    return fmt::format("expected at most {} bytes, found {}", limits::kMaxNameBytes, name.size());
  if (!std::ranges::all_of(name, legal))
    return "expected letters, digits, '_', '-' and '.' only";
  return {};
}

// low < x <= high where `open`, else low <= x <= high. NaN fails either.
std::string check_number(double x, double low, double high, bool open) {
  if ((open ? x > low : x >= low) && x <= high)
    return {};
  return fmt::format("expected a number {} {} and at most {}, found {}", open ? "above" : "of at least", low, high, x);
}

std::string check_time(Nanos t) {
  if (t >= Nanos(0) && t <= limits::kMaxWorkloadTime)
    return {};
  return fmt::format("expected between 0 s and {:.0f} s, found {} s", to_seconds(limits::kMaxWorkloadTime),
                     to_seconds(t));
}

std::string check_tokens(Tokens n, Tokens least) {
  if (n >= least && n <= limits::kMaxModelLen)
    return {};
  return fmt::format("expected {} to {} tokens, found {}", least.count(), limits::kMaxModelLen.count(), n.count());
}

std::string check_length(const LengthSpec& spec) {
  if (auto m = check_tokens(spec.low, Tokens(1)); !m.empty())
    return m;
  if (spec.kind == LengthSpec::Kind::kFixed)
    return {};
  if (auto m = check_tokens(spec.high, Tokens(1)); !m.empty())
    return m;
  if (spec.low > spec.high)
    return fmt::format("the minimum {} is above the maximum {}", spec.low.count(), spec.high.count());
  if (spec.kind == LengthSpec::Kind::kUniform)
    return {};
  if (auto m = check_number(spec.median, 0, limits::kMaxModelLen.count(), true); !m.empty())
    return "median: " + m;
  if (auto m = check_number(spec.sigma, 0, 10, false); !m.empty())
    return "sigma: " + m;
  return {};
}

std::string check_documents(const ClassSpec& c) {
  if (c.shared_documents < 0 || c.shared_documents > limits::kMaxSharedDocuments)
    return fmt::format("expected 0 to {} documents, found {}", limits::kMaxSharedDocuments, c.shared_documents);
  return {};
}

std::string check_question(const ClassSpec& c) {
  if (c.question < Tokens(0))
    return fmt::format("expected a number of tokens, found {}", c.question.count());
  if (c.shared_documents == 0)
    return check_tokens(c.question, Tokens(0));
  if (c.question < Tokens(1))
    return "shared documents need a question of at least 1 token: the documents alone would be "
           "the same prompt again and again";
  if (c.question > shortest(c.prompt) - Tokens(2))
    return fmt::format("a question of {} tokens leaves no document in a prompt of {}: expected at most {}",
                       c.question.count(), shortest(c.prompt).count(), std::max(0, shortest(c.prompt).count() - 2));
  return {};
}

std::string check_prefix_groups(const ClassSpec& c) {
  if (c.prefix_groups < 0 || c.prefix_groups > limits::kMaxSharedDocuments)
    return fmt::format("expected 0 to {} groups, found {}", limits::kMaxSharedDocuments, c.prefix_groups);
  if (c.prefix_groups > 0 && c.shared_documents > 0)
    return "a class has shared documents or prefix groups, not both";
  return {};
}

std::string check_prefix_len(const ClassSpec& c) {
  // Two tokens: one may be the model's own (BOS), and a prefix has at least a word.
  return check_tokens(c.prefix_len, Tokens(c.prefix_groups > 0 ? 2 : 0));
}

std::string check_turns(const ClassSpec& c) {
  if (auto m = check_length(c.turns); !m.empty())
    return m;
  if (longest(c.turns) > Tokens(limits::kMaxTurns))
    return fmt::format("expected at most {} turns, found {}", limits::kMaxTurns, longest(c.turns).count());
  return {};
}

std::string check_think_time(const TimeSpec& t) {
  if (auto m = check_time(t.low); !m.empty())
    return m;
  if (t.kind == LengthSpec::Kind::kFixed)
    return {};
  if (auto m = check_time(t.high); !m.empty())
    return m;
  if (t.low > t.high)
    return fmt::format("the minimum {} s is above the maximum {} s", to_seconds(t.low), to_seconds(t.high));
  if (t.kind == LengthSpec::Kind::kUniform)
    return {};
  if (auto m = check_time(t.median); !m.empty())
    return "median: " + m;
  if (t.median == Nanos(0))
    return "median: expected more than 0 s";
  if (auto m = check_number(t.sigma, 0, 10, false); !m.empty())
    return "sigma: " + m;
  return {};
}

std::string check_multiple(const std::optional<double>& multiple) {
  return multiple ? check_number(*multiple, 0, 1e6, true) : std::string();
}

std::optional<SpecProblem> find_class_problem(const ClassSpec& c, size_t index) {
  const std::pair<std::string_view, std::string> checks[] = {
      {"name", check_name(c.name)},
      {"share", check_number(c.share, 0, 1e9, true)},
      {"prompt", check_length(c.prompt)},
      {"output", check_length(c.output)},
      {"shared_documents", check_documents(c)},
      {"question", check_question(c)},
      {"prefix_groups", check_prefix_groups(c)},
      {"prefix_len", check_prefix_len(c)},
      {"turns", check_turns(c)},
      {"think_time", check_think_time(c.think_time)},
      {"ttft_times_unloaded", check_multiple(c.ttft_times_unloaded)},
      {"gap_times_unloaded", check_multiple(c.gap_times_unloaded)},
      {"e2e_times_unloaded", check_multiple(c.e2e_times_unloaded)},
  };
  for (const auto& [key, message] : checks)
    if (!message.empty())
      return SpecProblem{Where::kClass, index, key, message};
  return std::nullopt;
}

std::string check_file(std::string_view file) {
  if (file.empty())
    return "the trace needs a file";
  if (file.find('\0') != file.npos)
    return "a path cannot contain a zero byte";
  return {};
}

std::string check_label(std::string_view label) {
  if (label.empty() || label.size() > limits::kMaxNameBytes)
    return fmt::format("expected a key of 1 to {} bytes", limits::kMaxNameBytes);
  return {};
}

std::optional<SpecProblem> find_trace_problem(const TraceSpec& t) {
  const std::pair<std::string_view, std::string> checks[] = {
      {"file", check_file(t.file)},
      {"time_unit", check_time(t.time_unit)},
      {"block_tokens", check_tokens(t.block_tokens, Tokens(0))},
      {"label_timestamp", check_label(t.labels.timestamp)},
      {"label_input_length", check_label(t.labels.input_length)},
      {"label_output_length", check_label(t.labels.output_length)},
      {"label_hash_ids", check_label(t.labels.hash_ids)},
      {"assumed_prefix_share",
       t.assumed_prefix_share >= 0 && t.assumed_prefix_share < 1
           ? std::string()
           : fmt::format("expected a share of at least 0 and below 1, found {}", t.assumed_prefix_share)},
      {"from", check_time(t.from)},
      {"length", check_time(t.length)},
      {"rate_factor", check_number(t.rate_factor, 0, limits::kMaxRate, true)},
      {"length_factor", check_number(t.length_factor, 0, limits::kMaxRate, true)},
      {"max_prompt", check_tokens(t.max_prompt, Tokens(0))},
      {"max_output", check_tokens(t.max_output, Tokens(0))},
  };
  for (const auto& [key, message] : checks)
    if (!message.empty())
      return SpecProblem{Where::kTrace, 0, key, message};
  return std::nullopt;
}

std::optional<SpecProblem> find_ramp_problem(const RampSpec& r) {
  const bool exponential = r.shape == RampSpec::Shape::kExponential;
  const std::pair<std::string_view, std::string> checks[] = {
      {"from", check_number(r.from, 0, limits::kMaxRate, exponential)},
      {"to", check_number(r.to, 0, limits::kMaxRate, exponential || r.from == 0)},
      {"over", check_time(r.over)},
  };
  for (const auto& [key, message] : checks)
    if (!message.empty())
      return SpecProblem{Where::kRamp, 0, key, message};
  return std::nullopt;
}

std::optional<SpecProblem> find_stage_problem(const std::vector<StageSpec>& stages) {
  if (stages.size() > limits::kMaxStages)
    return SpecProblem{Where::kWorkload, 0, "stage",
                       fmt::format("expected at most {} stages, found {}", limits::kMaxStages, stages.size())};
  Nanos total;
  for (size_t i = 0; i < stages.size(); ++i) {
    if (auto m = check_number(stages[i].rate, 0, limits::kMaxRate, false); !m.empty())
      return SpecProblem{Where::kStage, i, "rate", m};
    if (auto m = check_time(stages[i].duration); !m.empty() || stages[i].duration == Nanos(0))
      return SpecProblem{Where::kStage, i, "duration", m.empty() ? "expected more than 0 s" : m};
    total += stages[i].duration;
    if (auto m = check_time(total); !m.empty())
      return SpecProblem{Where::kStage, i, "duration", "of all stages together: " + m};
  }
  if (!stages.empty() && std::ranges::all_of(stages, [](const StageSpec& s) { return s.rate == 0; }))
    return SpecProblem{Where::kStage, 0, "rate", "every stage has rate 0: no request would ever come"};
  return std::nullopt;
}

std::optional<SpecProblem> find_profile_problem(const WorkloadSpec& w) {
  if (w.ramp && !w.stages.empty())
    return SpecProblem{Where::kWorkload, 0, "ramp", "a workload has a ramp or stages, not both"};
  if (w.rescale && (w.ramp || !w.stages.empty()))
    return SpecProblem{Where::kWorkload, 0, "rescale", "rescaled arrivals have one rate: no ramp and no stages"};
  if (w.ramp)
    if (auto p = find_ramp_problem(*w.ramp))
      return p;
  return find_stage_problem(w.stages);
}

std::optional<SpecProblem> find_arrivals_problem(const WorkloadSpec& w) {
  if (auto m = check_name(w.name); !m.empty())
    return SpecProblem{Where::kWorkload, 0, "name", m};
  if (auto m = check_number(w.rate, 0, limits::kMaxRate, true); !m.empty())
    return SpecProblem{Where::kWorkload, 0, "rate", m};
  if (!std::isinf(w.burstiness) || w.burstiness < 0)
    if (auto m = check_number(w.burstiness, 1e-3, 1e6, false); !m.empty())
      return SpecProblem{Where::kWorkload, 0, "burstiness", m + " (or inf: constant)"};
  if (auto p = find_profile_problem(w))
    return p;
  if (w.concurrency < 1 || w.concurrency > limits::kMaxConcurrency)
    return SpecProblem{Where::kWorkload, 0, "concurrency",
                       fmt::format("expected 1 to {}, found {}", limits::kMaxConcurrency, w.concurrency)};
  if (auto m = check_time(w.think_time); !m.empty())
    return SpecProblem{Where::kWorkload, 0, "think_time", m};
  if (w.arrivals == ArrivalKind::kTrace && !w.trace)
    return SpecProblem{Where::kWorkload, 0, "arrivals", "arrivals from a trace need [workload.trace] with a file"};
  if (w.arrivals == ArrivalKind::kTrace && w.trace->requests_only)
    return SpecProblem{
        Where::kTrace, 0, "requests_only",
        "with it the times come from `arrivals`, which says \"trace\": set poisson, gamma, constant or closed"};
  return std::nullopt;
}

}  // namespace

std::optional<SpecProblem> find_problem(const WorkloadSpec& w) {
  if (auto p = find_arrivals_problem(w))
    return p;
  if (w.trace)
    if (auto p = find_trace_problem(*w.trace))
      return p;
  if (w.classes.empty())
    return SpecProblem{Where::kWorkload, 0, "class", "at least one class is needed"};
  if (w.classes.size() > limits::kMaxClasses)
    return SpecProblem{Where::kWorkload, 0, "class",
                       fmt::format("expected at most {} classes, found {}", limits::kMaxClasses, w.classes.size())};
  std::set<std::string_view> names;
  for (size_t i = 0; i < w.classes.size(); ++i) {
    if (auto p = find_class_problem(w.classes[i], i))
      return p;
    if (!names.insert(w.classes[i].name).second)
      return SpecProblem{Where::kClass, i, "name", fmt::format("there is another class '{}'", w.classes[i].name)};
  }
  return std::nullopt;
}

}  // namespace goodput
