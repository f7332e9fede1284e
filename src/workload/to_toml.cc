// Writes a workload as TOML, canonically: the same spec gives the same bytes, because the workload's hash is over them.
// What equals its default is left out where leaving it out reads back the same. Pure functions.
#include <iterator>
#include <tuple>

#include <fmt/format.h>

#include "workload/spec.h"

namespace goodput {
namespace {

std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      fmt::format_to(std::back_inserter(out), "\\u{:04X}", static_cast<unsigned>(c));
    } else {
      out += c;
    }
  }
  return out + '"';
}

// fmt's shortest form reads back as the same double.
std::string duration(Nanos d) { return fmt::format("\"{}s\"", to_seconds(d)); }

std::string length(const LengthSpec& spec) {
  switch (spec.kind) {
    case LengthSpec::Kind::kFixed:
      return fmt::format("{}", spec.low.count());
    case LengthSpec::Kind::kUniform:
      return fmt::format("\"{}..{}\"", spec.low.count(), spec.high.count());
    case LengthSpec::Kind::kLognormal:
      return fmt::format("{{median = {}, sigma = {}, min = {}, max = {}}}", spec.median, spec.sigma, spec.low.count(),
                         spec.high.count());
  }
  return {};
}

std::string time(const TimeSpec& spec) {
  switch (spec.kind) {
    case LengthSpec::Kind::kFixed:
      return duration(spec.low);
    case LengthSpec::Kind::kUniform:
      return fmt::format("\"{}s..{}s\"", to_seconds(spec.low), to_seconds(spec.high));
    case LengthSpec::Kind::kLognormal:
      return fmt::format("{{median = {}, sigma = {}, min = {}, max = {}}}", duration(spec.median), spec.sigma,
                         duration(spec.low), duration(spec.high));
  }
  return {};
}

class Writer {
 public:
  template <class... Args>
  void line(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(out_), format, std::forward<Args>(args)...);
    out_ += '\n';
  }
  void optional(std::string_view key, const std::optional<double>& value) {
    if (value)
      line("{} = {}", key, *value);
  }
  std::string take() { return std::move(out_); }

 private:
  std::string out_;
};

void write_trace(const TraceSpec& t, Writer& out) {
  out.line("\n[workload.trace]");
  out.line("file = {}", quoted(t.file));
  if (t.format != TraceFormat::kAuto)
    out.line("format = {}", quoted(to_string(t.format)));
  if (t.requests_only)
    out.line("requests_only = true");
  if (t.time_unit != Nanos(0))
    out.line("time_unit = {}", duration(t.time_unit));
  if (t.block_tokens != Tokens(0))
    out.line("block_tokens = {}", t.block_tokens.count());
  const TraceLabels usual;
  const std::tuple<std::string_view, std::string, std::string> labels[] = {
      {"label_timestamp", t.labels.timestamp, usual.timestamp},
      {"label_input_length", t.labels.input_length, usual.input_length},
      {"label_output_length", t.labels.output_length, usual.output_length},
      {"label_hash_ids", t.labels.hash_ids, usual.hash_ids}};
  for (const auto& [key, label, standard] : labels)
    if (label != standard)
      out.line("{} = {}", key, quoted(label));
  if (t.assumed_prefix_share != 0)
    out.line("assumed_prefix_share = {}", t.assumed_prefix_share);
  if (t.from != Nanos(0))
    out.line("from = {}", duration(t.from));
  if (t.length != Nanos(0))
    out.line("length = {}", duration(t.length));
  if (t.rate_factor != 1)
    out.line("rate_factor = {}", t.rate_factor);
  if (t.length_factor != 1)
    out.line("length_factor = {}", t.length_factor);
  if (t.max_prompt != Tokens(0))
    out.line("max_prompt = {}", t.max_prompt.count());
  if (t.max_output != Tokens(0))
    out.line("max_output = {}", t.max_output.count());
}

void write_ramp(const RampSpec& r, Writer& out) {
  out.line("\n[workload.ramp]\nfrom = {}\nto = {}", r.from, r.to);
  if (r.over != Nanos(0))
    out.line("over = {}", duration(r.over));
  if (r.shape == RampSpec::Shape::kExponential)
    out.line("shape = \"exponential\"");
  if (r.by == RampSpec::By::kIndex)
    out.line("by = \"index\"");
}

void write_class(const ClassSpec& c, Writer& out) {
  out.line("\n[[workload.class]]");
  out.line("name = {}", quoted(c.name));
  out.line("share = {}", c.share);
  out.line("priority = {}", c.priority);
  out.line("prompt = {}", length(c.prompt));
  out.line("output = {}", length(c.output));
  if (c.shared_documents != 0)
    out.line("shared_documents = {}", c.shared_documents);
  if (c.question != Tokens(0))
    out.line("question = {}", c.question.count());
  if (c.prefix_groups != 0)
    out.line("prefix_groups = {}", c.prefix_groups);
  if (c.prefix_len != Tokens(0))
    out.line("prefix_len = {}", c.prefix_len.count());
  if (c.turns != LengthSpec{})
    out.line("turns = {}", length(c.turns));
  if (c.think_time != TimeSpec{})
    out.line("think_time = {}", time(c.think_time));
  if (c.text != TextKind::kEnglish)
    out.line("text = {}", quoted(to_string(c.text)));
  if (!c.targets.empty())
    out.line("targets = {}", quoted(to_text(c.targets)));
  out.optional("ttft_times_unloaded", c.ttft_times_unloaded);
  out.optional("gap_times_unloaded", c.gap_times_unloaded);
  out.optional("e2e_times_unloaded", c.e2e_times_unloaded);
}

}  // namespace

std::string to_toml(const WorkloadSpec& w) {
  Writer out;
  out.line("[workload]");
  out.line("name = {}", quoted(w.name));
  out.line("arrivals = {}", quoted(to_string(w.arrivals)));
  out.line("rate = {}", w.rate);
  if (w.burstiness != 1)
    out.line("burstiness = {}", w.burstiness);
  if (w.rescale)
    out.line("rescale = true");
  if (w.concurrency != 1)
    out.line("concurrency = {}", w.concurrency);
  if (w.think_time != Nanos(0))
    out.line("think_time = {}", duration(w.think_time));
  if (w.ramp)
    write_ramp(*w.ramp, out);
  for (const StageSpec& stage : w.stages)
    out.line("\n[[workload.stage]]\nrate = {}\nduration = {}", stage.rate, duration(stage.duration));
  if (w.trace)
    write_trace(*w.trace, out);
  for (const auto& c : w.classes)
    write_class(c, out);
  return out.take();
}

}  // namespace goodput
