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

std::optional<SpecProblem> find_trace_problem(const TraceSpec& t) {
  const std::pair<std::string_view, std::string> checks[] = {
      {"file", check_file(t.file)},
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

std::optional<SpecProblem> find_arrivals_problem(const WorkloadSpec& w) {
  if (auto m = check_name(w.name); !m.empty())
    return SpecProblem{Where::kWorkload, 0, "name", m};
  if (auto m = check_number(w.rate, 0, limits::kMaxRate, true); !m.empty())
    return SpecProblem{Where::kWorkload, 0, "rate", m};
  if (w.concurrency < 1 || w.concurrency > limits::kMaxConcurrency)
    return SpecProblem{Where::kWorkload, 0, "concurrency",
                       fmt::format("expected 1 to {}, found {}", limits::kMaxConcurrency, w.concurrency)};
  if (auto m = check_time(w.think_time); !m.empty())
    return SpecProblem{Where::kWorkload, 0, "think_time", m};
  if (w.arrivals == ArrivalKind::kTrace && !w.trace)
    return SpecProblem{Where::kWorkload, 0, "arrivals", "arrivals from a trace need [workload.trace] with a file"};
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
