// Reads [workload] of a study file. toml++ parses; this file checks, places every complaint at its line, and is the
// only one that sees toml++ or its exceptions. One thread per call, no state.
//
//   [workload]
//   name = "mixed"
//   arrivals = "poisson"            # poisson, constant, gamma, closed, trace
//   rate = 2.5                      # requests/s
//   burstiness = 0.5                # gamma
//   rescale = true                  # vLLM's: the last of N arrives at N/rate
//   concurrency = 8                 # closed
//   think_time = "1s"               # closed; "500ms", "2m", or seconds
//   [workload.ramp]                 # in place of rate
//   from = 1
//   to = 8
//   over = "5m"                     # by time; absent: the whole run
//   shape = "linear"                # linear, exponential
//   by = "time"                     # time, index (vLLM's)
//   [[workload.stage]]              # in place of rate
//   rate = 4
//   duration = "1m"
//   [workload.trace]                # trace
//   file = "azure_code.csv"         # beside the study file, or absolute
//   format = "auto"                 # auto, azure, burstgpt, mooncake, bailian, timed_trace, custom, sharegpt
//   requests_only = true            # times from `arrivals`, the rest from the trace
//   time_unit = "1ms"               # of numeric time stamps
//   block_tokens = 512              # of one hash id
//   label_timestamp = "timestamp"   # timed_trace; also label_input_length, label_output_length, label_hash_ids
//   assumed_prefix_share = 0.3
//   from = "10m"                    # window into the trace
//   length = "5m"
//   rate_factor = 0.5               # half as fast
//   length_factor = 0.1             # a tenth as long
//   max_prompt = 2048
//   max_output = 256
//   [[workload.class]]
//   name = "rag"
//   share = 0.1
//   priority = 0                    # lower first
//   prompt = "1024..2048"           # a number, "low..high", or {median, sigma, min, max}
//   output = {median = 24, sigma = 0.5, min = 1, max = 64}
//   shared_documents = 4
//   question = 32
//   prefix_groups = 10
//   prefix_len = 256
//   turns = "2..6"                  # like prompt
//   think_time = "1s..10s"          # a duration, "low..high", or {median, sigma, min, max}
//   text = "english"                # english, chinese, code
//   targets = "ttft:200 tpot:40"    # ms
//   ttft_times_unloaded = 20
//   gap_times_unloaded = 8
//   e2e_times_unloaded = 10
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>

#include <fmt/format.h>
#include <toml++/toml.h>

#include "base/file.h"
#include "base/limits.h"
#include "base/text.h"
#include "workload/spec.h"
#include "workload/spec_rules.h"

namespace goodput {
namespace {

using Keys = std::span<const std::string_view>;

constexpr std::string_view kTopKeys[] = {"workload", "map", "engine", "targets"};
constexpr std::string_view kWorkloadKeys[] = {"name",       "arrivals", "rate",  "burstiness", "rescale", "concurrency",
                                              "think_time", "ramp",     "stage", "trace",      "class"};
constexpr std::string_view kRampKeys[] = {"from", "to", "over", "shape", "by"};
constexpr std::string_view kStageKeys[] = {"rate", "duration"};
constexpr std::string_view kTraceKeys[] = {"file",
                                           "format",
                                           "requests_only",
                                           "time_unit",
                                           "block_tokens",
                                           "label_timestamp",
                                           "label_input_length",
                                           "label_output_length",
                                           "label_hash_ids",
                                           "assumed_prefix_share",
                                           "from",
                                           "length",
                                           "rate_factor",
                                           "length_factor",
                                           "max_prompt",
                                           "max_output"};
constexpr std::string_view kClassKeys[] = {"name",
                                           "share",
                                           "priority",
                                           "prompt",
                                           "output",
                                           "shared_documents",
                                           "question",
                                           "prefix_groups",
                                           "prefix_len",
                                           "turns",
                                           "think_time",
                                           "text",
                                           "targets",
                                           "ttft_times_unloaded",
                                           "gap_times_unloaded",
                                           "e2e_times_unloaded"};
constexpr std::string_view kLengthKeys[] = {"median", "sigma", "min", "max"};
constexpr ArrivalKind kArrivalKinds[] = {ArrivalKind::kPoisson, ArrivalKind::kConstant, ArrivalKind::kGamma,
                                         ArrivalKind::kClosed, ArrivalKind::kTrace};
constexpr TextKind kTextKinds[] = {TextKind::kEnglish, TextKind::kChinese, TextKind::kCode};
constexpr TraceFormat kTraceFormats[] = {TraceFormat::kAuto,       TraceFormat::kAzure,   TraceFormat::kBurstGpt,
                                         TraceFormat::kMooncake,   TraceFormat::kBailian, TraceFormat::kTimedTrace,
                                         TraceFormat::kVllmCustom, TraceFormat::kShareGpt};
constexpr RampSpec::Shape kShapes[] = {RampSpec::Shape::kLinear, RampSpec::Shape::kExponential};
constexpr RampSpec::By kBys[] = {RampSpec::By::kTime, RampSpec::By::kIndex};

std::string_view to_string(RampSpec::Shape shape) {
  return shape == RampSpec::Shape::kLinear ? "linear" : "exponential";
}
std::string_view to_string(RampSpec::By by) { return by == RampSpec::By::kTime ? "time" : "index"; }

std::string clipped(std::string_view text) {
  constexpr size_t kShown = 60;
  return text.size() <= kShown ? std::string(text) : std::string(text.substr(0, kShown)) + "…";
}

std::string found(const toml::node& node) {
  if (const auto* s = node.as_string())
    return fmt::format("'{}'", clipped(s->get()));
  if (const auto* i = node.as_integer())
    return fmt::format("{}", i->get());
  if (const auto* d = node.as_floating_point())
    return fmt::format("{}", d->get());
  if (const auto* b = node.as_boolean())
    return b->get() ? "true" : "false";
  if (node.is_table())
    return "a table";
  if (node.is_array())
    return "an array";
  return "a date or time";
}

// One table of the file, its name for messages, and typed reads of its keys. A read of an absent key changes nothing.
class Table {
 public:
  Table(const toml::table& table, std::string name, std::string_view file)
      : table_(table), name_(std::move(name)), file_(file) {}

  const toml::table& raw() const { return table_; }

  // An error at the key, or at the table where the key is absent. An empty key: at the table.
  tl::unexpected<Error> wrong(std::string_view key, std::string_view message) const {
    const toml::node* node = table_.get(key);
    const std::string full = name_.empty() || key.empty() ? name_ + clipped(key) : name_ + "." + clipped(key);
    return wrong_at((node ? *node : table_).source(), full, message);
  }

  Result<void> only(Keys known) const {
    for (const auto& [key, node] : table_) {
      if (std::ranges::find(known, key.str()) != known.end())
        continue;
      const auto guess = nearest(key.str(), known);
      return wrong_at(key.source(), name_.empty() ? clipped(key.str()) : name_ + "." + clipped(key.str()),
                      guess ? fmt::format("unknown key; did you mean '{}'?", *guess)
                            : fmt::format("unknown key; expected one of {}", fmt::join(known, ", ")));
    }
    return {};
  }

  Result<void> need(std::string_view key) const {
    if (table_.contains(key))
      return {};
    return wrong(key, "missing");
  }

  Result<void> read(std::string_view key, std::string& out) const {
    const auto* node = table_.get(key);
    if (!node)
      return {};
    if (!node->is_string())
      return expected(key, "a text in quotes");
    out = node->as_string()->get();
    return {};
  }

  Result<void> read(std::string_view key, double& out) const {
    const auto* node = table_.get(key);
    if (!node)
      return {};
    const auto value = node->is_number() ? node->value<double>() : std::nullopt;
    if (!value || !std::isfinite(*value))
      return expected(key, "a number");
    out = *value;
    return {};
  }

  Result<void> read(std::string_view key, std::optional<double>& out) const {
    if (!table_.contains(key))
      return {};
    double value = 0;
    TRY(read(key, value));
    out = value;
    return {};
  }

  Result<void> read(std::string_view key, int& out) const {
    const auto* node = table_.get(key);
    if (!node)
      return {};
    const auto* value = node->as_integer();
    using Range = std::numeric_limits<int>;
    if (!value || value->get() < Range::min() || value->get() > Range::max())
      return expected(key, "a whole number");
    out = static_cast<int>(value->get());
    return {};
  }

  Result<void> read(std::string_view key, Tokens& out) const {
    int value = out.count();
    TRY(read(key, value));
    out = Tokens(value);
    return {};
  }

  Result<void> read(std::string_view key, bool& out) const {
    const auto* node = table_.get(key);
    if (!node)
      return {};
    if (!node->is_boolean())
      return expected(key, "true or false");
    out = node->as_boolean()->get();
    return {};
  }

  // A number or inf.
  Result<void> read_shape(std::string_view key, double& out) const {
    const auto* node = table_.get(key);
    if (node && node->is_floating_point() && std::isinf(node->as_floating_point()->get())) {
      out = node->as_floating_point()->get();
      return {};
    }
    return read(key, out);
  }

  Result<void> read(std::string_view key, Nanos& out) const {
    const auto* node = table_.get(key);
    if (!node)
      return {};
    const auto parsed = node->is_string()   ? parse_duration(node->as_string()->get())
                        : node->is_number() ? parse_duration(fmt::format("{}", *node->value<double>()))
                                            : Result<Nanos>(fail(ErrorCode::kUsage, ""));
    if (!parsed)
      return expected(key, "a duration such as \"500ms\", \"30s\", \"5m\" or \"1h\"");
    out = *parsed;
    return {};
  }

  Result<void> read(std::string_view key, LengthSpec& out) const {
    const auto* node = table_.get(key);
    if (!node)
      return {};
    if (node->is_integer()) {
      TRY(read(key, out.low));
      out.high = out.low;
      return {};
    }
    if (node->is_string())
      return read_range(key, node->as_string()->get(), out);
    if (node->is_table())
      return read_lognormal(key, *node->as_table(), out);
    return expected(key, kLengthForms);
  }

  Result<void> read(std::string_view key, TimeSpec& out) const {
    const auto* node = table_.get(key);
    if (!node)
      return {};
    if (node->is_table()) {
      const Table t(*node->as_table(), fmt::format("{}.{}", name_, key), file_);
      TRY(t.only(kLengthKeys));
      for (const auto needed : kLengthKeys)
        TRY(t.need(needed));
      out.kind = LengthSpec::Kind::kLognormal;
      TRY(t.read("median", out.median));
      TRY(t.read("sigma", out.sigma));
      TRY(t.read("min", out.low));
      return t.read("max", out.high);
    }
    const auto* text = node->as_string();
    const size_t dots = text ? text->get().find("..") : std::string::npos;
    if (dots == std::string::npos) {
      TRY(read(key, out.low));
      out.high = out.low;
      return {};
    }
    const auto low = parse_duration(trim(std::string_view(text->get()).substr(0, dots)));
    const auto high = parse_duration(trim(std::string_view(text->get()).substr(dots + 2)));
    if (!low || !high)
      return expected(key, "a duration, a range \"1s..10s\" or {median = …, sigma = …, min = …, max = …}");
    out = {LengthSpec::Kind::kUniform, *low, *high};
    return {};
  }

  Result<void> read(std::string_view key, TargetSet& out) const {
    std::string text;
    TRY(read(key, text));
    std::vector<std::string> items;
    for (const auto item : split(text, ' '))
      if (!trim(item).empty())
        items.emplace_back(trim(item));
    if (items.empty())
      return {};
    auto parsed = parse_targets(items);
    if (!parsed)
      return wrong(key, describe(parsed.error()));
    out = *parsed;
    return {};
  }

  // One of `kinds`, by its to_string().
  template <class Kind, size_t n>
  Result<void> read(std::string_view key, const Kind (&kinds)[n], Kind& out) const {
    std::string text(to_string(out));
    TRY(read(key, text));
    std::vector<std::string_view> names;
    for (const Kind kind : kinds) {
      names.push_back(to_string(kind));
      if (text == names.back()) {
        out = kind;
        return {};
      }
    }
    const auto guess = nearest(text, names);
    return wrong(key, fmt::format("expected one of {}, found '{}'{}", fmt::join(names, ", "), clipped(text),
                                  guess ? fmt::format("; did you mean '{}'?", *guess) : ""));
  }

  Result<Table> table(std::string_view key) const {
    const auto* node = table_.get(key);
    if (!node->is_table())
      return expected(key, "a table");
    return Table(*node->as_table(), name_.empty() ? std::string(key) : fmt::format("{}.{}", name_, key), file_);
  }

  Result<std::vector<Table>> tables(std::string_view key) const {
    std::vector<Table> out;
    const auto* array = table_.get(key)->as_array();
    if (!array)
      return expected(key, fmt::format("tables under [[{}.{}]]", name_, key));
    for (const auto& node : *array) {
      const auto name = fmt::format("{}.{}[{}]", name_, key, out.size());
      if (!node.is_table())
        return wrong_at(node.source(), name, "expected a table, found " + found(node));
      out.emplace_back(*node.as_table(), name, file_);
    }
    return out;
  }

 private:
  static constexpr std::string_view kLengthForms =
      "a number of tokens, a range \"low..high\" or {median = …, sigma = …, min = …, max = …}";

  tl::unexpected<Error> wrong_at(const toml::source_region& at, std::string_view what, std::string_view message) const {
    return fail(ErrorCode::kUsage, what.empty() ? std::string(message) : fmt::format("{}: {}", what, message),
                fmt::format("{}:{}:{}", file_, at.begin.line, at.begin.column));
  }

  tl::unexpected<Error> expected(std::string_view key, std::string_view what) const {
    return wrong(key, fmt::format("expected {}, found {}", what, found(*table_.get(key))));
  }

  Result<void> read_range(std::string_view key, std::string_view text, LengthSpec& out) const {
    const size_t dots = text.find("..");
    if (dots == text.npos)
      return expected(key, kLengthForms);
    const auto low = parse_int(trim(text.substr(0, dots))), high = parse_int(trim(text.substr(dots + 2)));
    const auto fits = [](const Result<int64_t>& n) { return n && *n >= 0 && *n <= limits::kMaxModelLen.count(); };
    if (!fits(low) || !fits(high))
      return expected(key, kLengthForms);
    out = {LengthSpec::Kind::kUniform, Tokens(*low), Tokens(*high)};
    return {};
  }

  Result<void> read_lognormal(std::string_view key, const toml::table& inner, LengthSpec& out) const {
    const Table t(inner, fmt::format("{}.{}", name_, key), file_);
    TRY(t.only(kLengthKeys));
    for (const auto needed : kLengthKeys)
      TRY(t.need(needed));
    out.kind = LengthSpec::Kind::kLognormal;
    TRY(t.read("median", out.median));
    TRY(t.read("sigma", out.sigma));
    TRY(t.read("min", out.low));
    TRY(t.read("max", out.high));
    return {};
  }

  const toml::table& table_;
  std::string name_;
  std::string_view file_;
};

Result<TraceSpec> read_trace(const Table& t) {
  TraceSpec trace;
  TRY(t.only(kTraceKeys));
  TRY(t.need("file"));
  TRY(t.read("file", trace.file));
  TRY(t.read("format", kTraceFormats, trace.format));
  TRY(t.read("requests_only", trace.requests_only));
  TRY(t.read("time_unit", trace.time_unit));
  TRY(t.read("block_tokens", trace.block_tokens));
  TRY(t.read("label_timestamp", trace.labels.timestamp));
  TRY(t.read("label_input_length", trace.labels.input_length));
  TRY(t.read("label_output_length", trace.labels.output_length));
  TRY(t.read("label_hash_ids", trace.labels.hash_ids));
  TRY(t.read("assumed_prefix_share", trace.assumed_prefix_share));
  TRY(t.read("from", trace.from));
  TRY(t.read("length", trace.length));
  TRY(t.read("rate_factor", trace.rate_factor));
  TRY(t.read("length_factor", trace.length_factor));
  TRY(t.read("max_prompt", trace.max_prompt));
  TRY(t.read("max_output", trace.max_output));
  return trace;
}

Result<RampSpec> read_ramp(const Table& t) {
  RampSpec ramp;
  TRY(t.only(kRampKeys));
  TRY(t.need("from"));
  TRY(t.need("to"));
  TRY(t.read("from", ramp.from));
  TRY(t.read("to", ramp.to));
  TRY(t.read("over", ramp.over));
  TRY(t.read("shape", kShapes, ramp.shape));
  TRY(t.read("by", kBys, ramp.by));
  return ramp;
}

Result<StageSpec> read_stage(const Table& t) {
  StageSpec stage;
  TRY(t.only(kStageKeys));
  TRY(t.need("rate"));
  TRY(t.need("duration"));
  TRY(t.read("rate", stage.rate));
  TRY(t.read("duration", stage.duration));
  return stage;
}

// `own_lengths`: not a trace, so the class itself must say how long its requests are.
Result<ClassSpec> read_class(const Table& t, bool own_lengths) {
  ClassSpec c;
  TRY(t.only(kClassKeys));
  TRY(t.need("name"));
  if (own_lengths) {
    TRY(t.need("prompt"));
    TRY(t.need("output"));
  }
  TRY(t.read("name", c.name));
  TRY(t.read("share", c.share));
  TRY(t.read("priority", c.priority));
  TRY(t.read("prompt", c.prompt));
  TRY(t.read("output", c.output));
  TRY(t.read("shared_documents", c.shared_documents));
  TRY(t.read("question", c.question));
  TRY(t.read("prefix_groups", c.prefix_groups));
  TRY(t.read("prefix_len", c.prefix_len));
  TRY(t.read("turns", c.turns));
  TRY(t.read("think_time", c.think_time));
  TRY(t.read("text", kTextKinds, c.text));
  TRY(t.read("targets", c.targets));
  TRY(t.read("ttft_times_unloaded", c.ttft_times_unloaded));
  TRY(t.read("gap_times_unloaded", c.gap_times_unloaded));
  TRY(t.read("e2e_times_unloaded", c.e2e_times_unloaded));
  return c;
}

Result<WorkloadSpec> read_workload(const Table& t) {
  WorkloadSpec w = default_workload();
  TRY(t.only(kWorkloadKeys));
  TRY(t.read("name", w.name));
  TRY(t.read("arrivals", kArrivalKinds, w.arrivals));
  TRY(t.read("rate", w.rate));
  TRY(t.read_shape("burstiness", w.burstiness));
  TRY(t.read("rescale", w.rescale));
  TRY(t.read("concurrency", w.concurrency));
  TRY(t.read("think_time", w.think_time));
  if (t.raw().contains("trace")) {
    const Table trace = TRY(t.table("trace"));
    w.trace = TRY(read_trace(trace));
  }
  if (t.raw().contains("ramp")) {
    const Table ramp = TRY(t.table("ramp"));
    w.ramp = TRY(read_ramp(ramp));
  }
  std::vector<Table> stages;
  if (t.raw().contains("stage"))
    stages = TRY(t.tables("stage"));
  for (const auto& stage : stages)
    w.stages.push_back(TRY(read_stage(stage)));
  std::vector<Table> classes;
  if (t.raw().contains("class")) {
    classes = TRY(t.tables("class"));
    w.classes.clear();
  }
  const bool from_trace = w.arrivals == ArrivalKind::kTrace || (w.trace && w.trace->requests_only);
  for (const auto& c : classes)
    w.classes.push_back(TRY(read_class(c, !from_trace)));

  const auto problem = find_problem(w);
  if (!problem)
    return w;
  switch (problem->where) {
    case SpecProblem::Where::kTrace:
      return t.table("trace")->wrong(problem->key, problem->message);
    case SpecProblem::Where::kRamp:
      return t.table("ramp")->wrong(problem->key, problem->message);
    case SpecProblem::Where::kStage:
      return stages[problem->cls].wrong(problem->key, problem->message);
    case SpecProblem::Where::kClass:
      return classes[problem->cls].wrong(problem->key, problem->message);
    case SpecProblem::Where::kWorkload:
      break;
  }
  return t.wrong(problem->key, problem->message);
}

// Dots that may join a dotted key; the decimal point of a plain number does not.
int key_dots(std::string_view line) {
  const auto digit = [&](size_t i) { return i < line.size() && line[i] >= '0' && line[i] <= '9'; };
  int dots = 0;
  for (size_t i = 0; i < line.size(); ++i) {
    if (line[i] != '.')
      continue;
    size_t before = i;
    while (before > 0 && digit(before - 1))
      --before;
    const bool number = before < i && digit(i + 1) && (before == 0 || line[before - 1] != '.');
    dots += !number;
  }
  return dots;
}

// toml++ frees nested tables by recursion, so a key of 10^5 dotted parts would end the process.
Result<void> check_depth(std::string_view toml, std::string_view file_name) {
  size_t number = 0;
  for (const auto line : split(toml, '\n')) {
    ++number;
    if (key_dots(line) > limits::kMaxTomlDotsPerLine)
      return fail(ErrorCode::kUsage,
                  fmt::format("more than {} dots in one line: is this a study file?", limits::kMaxTomlDotsPerLine),
                  fmt::format("{}:{}:1", file_name, number));
  }
  return {};
}

Result<toml::table> parse(std::string_view toml, std::string_view file_name) {
  if (toml.size() > limits::kMaxStudyFileBytes)
    return fail(ErrorCode::kUsage, fmt::format("larger than the limit of {}", format_bytes(limits::kMaxStudyFileBytes)),
                std::string(file_name));
  TRY(check_depth(toml, file_name));
  try {
    return toml::parse(toml);
  } catch (const toml::parse_error& e) {
    const auto at = e.source().begin;
    return fail(ErrorCode::kUsage, std::string(e.description().substr(0, 400)),
                fmt::format("{}:{}:{}", file_name, at.line, at.column));
  }
}

}  // namespace

Result<WorkloadSpec> parse_workload(std::string_view toml, std::string_view file_name) {
  const toml::table parsed = TRY(parse(toml, file_name));
  if (parsed.empty())
    return fail(ErrorCode::kUsage, "the file is empty: expected [workload], [map], [engine] or [targets]",
                fmt::format("{}:1:1", file_name));
  const Table top(parsed, "", file_name);
  TRY(top.only(kTopKeys));
  if (!parsed.contains("workload"))
    return default_workload();
  const Table workload = TRY(top.table("workload"));
  return read_workload(workload);
}

Result<WorkloadSpec> load_workload(const std::string& path) {
  const std::string bytes = TRY(read_file(path, limits::kMaxStudyFileBytes));
  WorkloadSpec w = TRY(parse_workload(bytes, path));
  if (w.trace)
    w.trace->file = (std::filesystem::path(path).parent_path() / w.trace->file).string();
  return w;
}

}  // namespace goodput
