// What goodput counts, below another tool's table (docs/method.md).
#include <fmt/format.h>

#include "report/bench_tables.h"

namespace goodput {
namespace {

std::string latencies(const LatencyTable& l, const TextStyle& style) {
  TextTable table;
  table.columns = {{"Latency from the scheduled time, ms", false}, {"p50"}, {"p95"}, {"p99"}, {"max"}, {"n"}};
  const auto row = [&](std::string name, const Percentiles& p) {
    table.rows.push_back(
        {std::move(name), fixed(p.p50), fixed(p.p95), fixed(p.p99), fixed(p.max), std::to_string(p.n)});
  };
  row("TTFT", l.ttft);
  row("TTFT, from the send", l.ttft_service);
  row("TTFA (first answer token)", l.ttfa);
  row("TPOT", l.tpot);
  row("ITL, per token", l.itl);
  row("ICL, per delivery", l.icl);
  row("Longest gap", l.max_gap);
  row("E2E", l.e2e);
  std::string out = table.render(style);
  if (!l.e2e.p99)
    out += style.faint(fmt::format("– : fewer requests than a 95 % bound needs (p95 {}, p99 {}), or not measurable",
                                   min_samples(0.95), min_samples(0.99))) +
           "\n";
  return out;
}

std::string interval(const Estimate& e) {
  return e.low && e.high ? fmt::format("{} ({} to {})", percent(e.value), percent(*e.low), percent(*e.high))
                         : percent(e.value);
}

std::string attainment_line(const ClassSummary& c, const TargetSet* targets, const TextStyle& style) {
  const std::string label = c.name + (targets == nullptr ? ""
                                      : targets->empty() ? " [no targets]"
                                                         : " [" + to_text(*targets) + "]");
  if (!c.attainment)
    return label_line("Attainment, " + label + ":", c.unmeasurable > 0 ? "not measurable" : "–", style);
  return label_line("Attainment, " + label + ":",
                    fmt::format("{}, {} of {}", interval(*c.attainment), c.good, c.scheduled), style);
}

std::string goodness(const BenchReport& r, const TextStyle& style) {
  std::string out = attainment_line(r.summary.overall, r.rules.size() == 1 ? &r.rules[0].targets : nullptr, style);
  if (r.rules.size() > 1) {
    for (size_t i = 0; i < r.summary.by_class.size() && i < r.rules.size(); ++i)
      out += attainment_line(r.summary.by_class[i], &r.rules[i].targets, style);
  }
  if (r.floor)
    out += label_line("Floor of " + percent(*r.floor) + ":", to_string(floor_verdict(r.summary, *r.floor)), style);
  out += label_line("Goodput (req/s):", fixed(r.summary.goodput_rps), style);
  out += label_line("Token goodput (tok/s):", fixed(r.summary.token_goodput), style);
  return out;
}

std::string load_lines(const BenchReport& r, const BenchTotals& t, const TextStyle& style) {
  std::string out;
  const auto line = [&](std::string_view label, std::string_view value) { out += label_line(label, value, style); };
  line("Offered / achieved rate (req/s):",
       fmt::format("{} / {}", fixed(r.summary.offered_rate), fixed(r.summary.achieved_rate)));
  line("Most in flight, reached / allowed:",
       fmt::format("{} / {}", t.most_in_flight, r.concurrency ? std::to_string(*r.concurrency) : "no cap"));
  line("Dispatch delay p50 / p99 / max (ms):",
       fmt::format("{} / {} / {}", fixed(r.summary.dispatch_delay.p50), fixed(r.summary.dispatch_delay.p99),
                   fixed(r.summary.dispatch_delay.max)));
  line("Regime:", to_string(r.summary.regime));
  line("Distinct prompts:", fmt::format("{} of {}", r.distinct_prompts, r.scheduled));
  if (r.prompt_asked && r.prompt_seen) {
    line("Prompt tokens, asked / seen (mean):",
         fmt::format("{:.1f} / {:.1f}{}", *r.prompt_asked, *r.prompt_seen,
                     r.exact_prompts ? "" : "  (words; --tokenizer FILE.gguf makes them exact)"));
  }
  if (r.summary.asked_output_mean && r.summary.output_mean) {
    line("Output tokens, asked / seen (mean):",
         fmt::format("{:.1f} / {:.1f}", *r.summary.asked_output_mean, *r.summary.output_mean));
  }
  return out;
}

std::string client_lines(const BenchReport& r, const TextStyle& style) {
  std::string out;
  const auto line = [&](std::string_view label, std::string_view value) { out += label_line(label, value, style); };
  line("Client: kernel-stamped token events:", percent(r.summary.kernel_stamp_share));
  line("Client: read lag p50 / p99 (ms):",
       fmt::format("{} / {}", fixed(r.summary.read_lag.p50, 3), fixed(r.summary.read_lag.p99, 3)));
  line("Client: loop busy:", percent(r.load.audit.loop_busy_share));
  if (r.load.audit.wait_share)
    line("Client: waited for a processor:", percent(*r.load.audit.wait_share));
  line("Client: connections opened:", std::to_string(r.load.connections));
  return out;
}

std::string outcome_lines(const BenchReport& r, const TextStyle& style) {
  std::string counts;
  for (size_t i = 0; i < r.summary.outcomes.size(); ++i) {
    if (r.summary.outcomes[i] > 0)
      counts +=
          fmt::format("{}{} {}", counts.empty() ? "" : ", ", to_string(static_cast<Outcome>(i)), r.summary.outcomes[i]);
  }
  std::string out = label_line("Outcomes in the window:", counts.empty() ? "–" : counts, style);
  for (const Problem& p : r.load.problems)
    out += fmt::format("  {} × {}\n", p.count, p.what);
  return out;
}

}  // namespace

std::string own_block(const BenchReport& r, const BenchTotals& t, const TextStyle& style) {
  std::string out = style.plain ? "" : fmt::format("{:-^50}\n", "Counted by goodput (docs/method.md)");
  out += latencies(r.summary.overall.latency, style);
  out += label_line("Window (s):", fixed(r.summary.window.length_s()), style);
  out += goodness(r, style);
  out += load_lines(r, t, style);
  out += client_lines(r, style);
  out += outcome_lines(r, style);
  out += style.strong(r.verdict.valid() ? "VALID" : "INVALID") + "\n";
  for (size_t i = 0; i < r.verdict.reasons.size(); ++i) {
    out += "  " + r.verdict.reasons[i];
    if (i < r.verdict.evidence.size())
      out += ": " + r.verdict.evidence[i];
    out += "\n";
  }
  if (r.load.interrupted)
    out += "Stopped early: the window ends where it was stopped.\n";
  return out;
}

}  // namespace goodput
