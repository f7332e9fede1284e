// Writes a workload as TOML, canonically: the same spec gives the same bytes, because the workload's hash is over them.
// What equals its default is left out where leaving it out reads back the same. Pure functions.
#include <iterator>

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
  if (w.concurrency != 1)
    out.line("concurrency = {}", w.concurrency);
  if (w.think_time != Nanos(0))
    out.line("think_time = {}", duration(w.think_time));
  if (w.trace)
    write_trace(*w.trace, out);
  for (const auto& c : w.classes)
    write_class(c, out);
  return out.take();
}

}  // namespace goodput
