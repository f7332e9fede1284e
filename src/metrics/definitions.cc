// The table and the formulas, each as its tool computes it (sources: docs/method.md, "Other tools' definitions"). Pure;
// any thread.
#include "metrics/definitions.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/check.h"
#include "metrics/request_metrics.h"
#include "metrics/stats.h"

namespace goodput {
namespace {

using Values = std::vector<double>;

void put(Values& out, std::optional<TimePoint> from, std::optional<TimePoint> to) {
  if (from && to && *to >= *from)
    out.push_back(to_ms(*to - *from));
}
void put(Values& out, std::optional<TimePoint> from, std::optional<TimePoint> to, int64_t divisor) {
  if (from && to && *to >= *from && divisor > 0)
    out.push_back(to_ms(*to - *from) / static_cast<double>(divisor));
}
void put(Values& out, std::optional<Nanos> time) {
  if (time)
    out.push_back(to_ms(*time));
}

// Text as SGLang, AIPerf and guidellm see it: content or reasoning; a tool call's arguments are none.
bool is_text(const TokenEvent& e) { return e.channel == Channel::kContent || e.channel == Channel::kReasoning; }

std::optional<TimePoint> first_text(const RequestRecord& r) {
  const auto at = std::ranges::find_if(r.events, is_text);
  return r.streamed && at != r.events.end() ? std::optional(r.scheduled + event_time(*at)) : std::nullopt;
}
std::optional<TimePoint> last_text(const RequestRecord& r) {
  const auto at = std::ranges::find_if(r.events.rbegin(), r.events.rend(), is_text);
  return r.streamed && at != r.events.rend() ? std::optional(r.scheduled + event_time(*at)) : std::nullopt;
}
std::optional<TimePoint> first_chunk(const RequestRecord& r) { return r.streamed ? r.first_chunk : std::nullopt; }
std::optional<TimePoint> end_of_stream(const RequestRecord& r) { return r.closed ? r.closed : r.done; }

int64_t less_one(std::optional<int64_t> n) { return n.value_or(0) - 1; }

// Gaps between single events: a tool that stamps each event finds next to nothing between two of one read.
template <class Keep>
void event_gaps(const RequestRecord& r, std::optional<TimePoint> before, Keep keep, Values& out) {
  if (!r.streamed)
    return;
  for (const TokenEvent& e : r.events) {
    if (!keep(e))
      continue;
    const TimePoint at = r.scheduled + event_time(e);
    put(out, before, at);
    before = at;
  }
}

// Whether there was a chunk before the first token (a role, progress): its time is stored, those of others are not.
bool opens_without_token(const RequestRecord& r) {
  return r.streamed && r.first_chunk && r.first_token && *r.first_chunk < *r.first_token;
}

void chunk_gaps(const RequestRecord& r, Values& out) {
  event_gaps(r, opens_without_token(r) ? r.first_chunk : std::nullopt, [](const TokenEvent&) { return true; }, out);
}
void text_gaps(const RequestRecord& r, Values& out) { event_gaps(r, std::nullopt, is_text, out); }

template <Tool tool>
int64_t tokens_less_one(const RequestRecord& r) {
  return less_one(output_tokens_under(tool, r));
}

constexpr DefinitionRow kRows[] = {
    {Tool::kGoodput, "ttft", "ttft", tags::kTtftArrival,
     "from the scheduled arrival to the first generated token of any channel: waiting in the client is in it",
     [](const RequestRecord& r, Values& out) { put(out, ttft(r)); }},
    {Tool::kVllm, "ttft", "ttft", tags::kTtftChunk,
     "from the send, so waiting for a place is not in it; a chunk with only a role already counts as the first token",
     [](const RequestRecord& r, Values& out) { put(out, r.dispatched, first_chunk(r)); }},
    {Tool::kSglang, "ttft", "ttft", tags::kTtftText,
     "from the send; the first content or reasoning, a tool call is no token",
     [](const RequestRecord& r, Values& out) { put(out, r.dispatched, first_text(r)); }},
    {Tool::kAiperf, "ttft", "time_to_first_token", tags::kTtftText, "from the send; the first content or reasoning",
     [](const RequestRecord& r, Values& out) { put(out, r.dispatched, first_text(r)); }},
    {Tool::kGuidellm, "ttft", "time_to_first_token_ms", tags::kTtftText,
     "from the send; the first content or reasoning; its own clock is the wall clock",
     [](const RequestRecord& r, Values& out) { put(out, r.dispatched, first_text(r)); }},
    {Tool::kEvalscope, "ttft", "Average time to first token", tags::kTtftChunk,
     "from the send to the first chunk, with or without text",
     [](const RequestRecord& r, Values& out) { put(out, r.dispatched, first_chunk(r)); }},

    {Tool::kGoodput, "tpot", "tpot", tags::kTpotOurs,
     "first to last token over the tokens that came after the first delivery's",
     [](const RequestRecord& r, Values& out) {
       if (const auto v = tpot_ns(r))
         out.push_back(*v * 1e-6);
     }},
    {Tool::kVllm, "tpot", "tpot", tags::kTpotChunk,
     "(latency - TTFT) / (n - 1) from the first chunk: time between role and first token is in it; one token: no "
     "sample, but 0 for its goodput",
     [](const RequestRecord& r, Values& out) { put(out, first_chunk(r), r.done, tokens_less_one<Tool::kVllm>(r)); }},
    {Tool::kSglang, "tpot", "tpot", tags::kTpotClosed,
     "(latency - TTFT) / (n - 1), the latency ends with the stream and not with the last token",
     [](const RequestRecord& r, Values& out) {
       put(out, first_text(r), end_of_stream(r), tokens_less_one<Tool::kSglang>(r));
     }},
    {Tool::kAiperf, "tpot", "inter_token_latency", tags::kTpotText,
     "called inter-token latency: one mean per request, (latency - TTFT) / (n - 1); a first chunk of several tokens "
     "counts as one",
     [](const RequestRecord& r, Values& out) {
       put(out, first_text(r), last_text(r), tokens_less_one<Tool::kAiperf>(r));
     }},
    {Tool::kGuidellm, "tpot", "inter_token_latency_ms", tags::kTpotText,
     "called inter-token latency: one mean per request, (last - first) / (n - 1)",
     [](const RequestRecord& r, Values& out) {
       put(out, first_text(r), last_text(r), tokens_less_one<Tool::kGuidellm>(r));
     }},
    {Tool::kGuidellm, "tpot", "time_per_output_token_ms", tags::kTpotWithTtft,
     "the time to the first token is in it: (last - send) / n",
     [](const RequestRecord& r, Values& out) {
       put(out, r.dispatched, last_text(r), output_tokens_under(Tool::kGuidellm, r).value_or(0));
     }},
    {Tool::kEvalscope, "tpot", "Average time per output token", tags::kTpotChunkZero,
     "(latency - first chunk) / (n - 1); an answer of one token counts as 0",
     [](const RequestRecord& r, Values& out) {
       const auto n = output_tokens_under(Tool::kEvalscope, r);
       if (n && *n <= 1)
         out.push_back(0);
       else
         put(out, first_chunk(r), r.done, less_one(n));
     }},

    {Tool::kGoodput, "itl", "itl", tags::kItlToken,
     "each gap over the tokens that it delivered, weighted by them: what a reader of tokens sees",
     [](const RequestRecord& r, Values& out) {
       for (const WeightedGap& g : itl_gaps(r))
         out.insert(out.end(), g.tokens, g.per_token_ns * 1e-6);
     }},
    {Tool::kGoodput, "itl", "icl", tags::kGapDelivery, "the plain gaps between deliveries (our ICL)",
     [](const RequestRecord& r, Values& out) {
       for (const double gap : icl_gaps_ns(r))
         out.push_back(gap * 1e-6);
     }},
    {Tool::kVllm, "itl", "itl", tags::kGapChunk,
     "one gap per chunk, however many tokens it brings; chunks of one read lie 0 apart; role to first token is a gap",
     chunk_gaps},
    {Tool::kSglang, "itl", "itl", tags::kGapText,
     "one gap per chunk with text (chat and completions; its native path divides by tokens)", text_gaps},
    {Tool::kAiperf, "itl", "inter_chunk_latency", tags::kGapText,
     "one gap per chunk with text, kept apart from its inter-token latency", text_gaps},
    {Tool::kGuidellm, "itl", "-", "none", "has no gaps: it spreads iterations evenly between first and last token",
     nullptr},
    {Tool::kEvalscope, "itl", "Average inter-token latency", tags::kGapChunk,
     "one gap per chunk (also shown as package latency)", chunk_gaps},

    {Tool::kGoodput, "e2el", "e2el", tags::kE2eArrival, "from the scheduled arrival to the last token",
     [](const RequestRecord& r, Values& out) { put(out, e2e(r)); }},
    {Tool::kVllm, "e2el", "e2el", tags::kE2eToken, "from the send to the last chunk with choices",
     [](const RequestRecord& r, Values& out) { put(out, r.dispatched, r.done); }},
    {Tool::kSglang, "e2el", "e2e_latency", tags::kE2eClosed, "from the send to the end of the stream",
     [](const RequestRecord& r, Values& out) { put(out, r.dispatched, end_of_stream(r)); }},
    {Tool::kAiperf, "e2el", "request_latency", tags::kE2eToken, "from the send to the last chunk with content",
     [](const RequestRecord& r, Values& out) { put(out, r.dispatched, r.done); }},
    {Tool::kGuidellm, "e2el", "request_latency", tags::kE2eClosed, "from the send to the end of the request",
     [](const RequestRecord& r, Values& out) { put(out, r.dispatched, end_of_stream(r)); }},
    {Tool::kEvalscope, "e2el", "Average latency", tags::kE2eToken, "from the send to the last chunk",
     [](const RequestRecord& r, Values& out) { put(out, r.dispatched, r.done); }},
};

bool server_counted(const RequestRecord& r) {
  return r.output_tokens && (r.token_source == TokenSource::kUsage || r.token_source == TokenSource::kRunningUsage);
}

std::string_view tokens_say(Tool tool) {
  switch (tool) {
    case Tool::kGoodput:
      return "usage, else running usage, else a tokenizer, else events; the source is stored";
    case Tool::kVllm:
      return "usage, else the text tokenized again (then not known here)";
    case Tool::kSglang:
      return "usage, else the length that was asked for";
    case Tool::kAiperf:
      return "as with --use-server-token-count; by default it tokenizes the text again, which is not stored";
    case Tool::kGuidellm:
      return "usage, else one per event";
    case Tool::kEvalscope:
      return "usage, else the text tokenized again (then not known here)";
  }
  return {};
}

std::string_view goodput_says(Tool tool) {
  switch (tool) {
    case Tool::kGoodput:
      return "good requests over the window; failures are in the share's denominator";
    case Tool::kVllm:
      return "successes within ttft, tpot and e2el over the whole run with its drain; one token passes every tpot";
    case Tool::kSglang:
    case Tool::kEvalscope:
      return "has no goodput";
    case Tool::kAiperf:
      return "over the whole run; a request without a value for a target is not good; errors are in the share's "
             "denominator";
    case Tool::kGuidellm:
      return "its tpot target bounds its inter-token latency; the share is of successes that have every value";
  }
  return {};
}

std::optional<double> single_value(Tool tool, std::string_view key, const RequestRecord& r) {
  for (const DefinitionRow& row : kRows) {
    if (row.tool != tool || row.key != key)
      continue;
    Values values;
    row.values(r, values);
    return values.empty() ? std::nullopt : std::optional(values.front());
  }
  return std::nullopt;
}

// nullopt: undetermined.
std::optional<bool> good_under(Tool tool, const RequestRecord& r, const TargetSet& targets) {
  if (tool == Tool::kGoodput)
    return judge(r, targets).goodness == Goodness::kGood;
  struct Key {
    TargetKey target;
    std::string_view vllm, aiperf, guidellm;
  };
  static constexpr Key kKeys[] = {
      {TargetKey::kTtft, "ttft", "time_to_first_token", "time_to_first_token_ms"},
      {TargetKey::kTpot, "tpot", "inter_token_latency", "inter_token_latency_ms"},
      {TargetKey::kE2el, "e2el", "request_latency", "request_latency"},
  };
  bool good = true, known = true;
  for (const Key& k : kKeys) {
    if (!targets[k.target])
      continue;
    const auto key = tool == Tool::kVllm ? k.vllm : tool == Tool::kAiperf ? k.aiperf : k.guidellm;
    auto value = single_value(tool, key, r);
    if (tool == Tool::kVllm && k.target == TargetKey::kTpot && output_tokens_under(tool, r).value_or(2) <= 1)
      value = 0;
    known &= value.has_value();
    good &= value && *value <= to_ms(*targets[k.target]);
  }
  if (!known)
    return tool == Tool::kGuidellm ? std::nullopt : std::optional(false);
  return good;
}

void score_goodput(ToolView& view, std::span<const RequestRecord> records, const TargetSet& targets) {
  if (targets.empty() || view.tool == Tool::kSglang || view.tool == Tool::kEvalscope)
    return;
  if (view.tool != Tool::kGoodput)
    for (const TargetKey key : {TargetKey::kTtfa, TargetKey::kItl, TargetKey::kIcl, TargetKey::kMaxGap})
      if (targets[key])
        return;
  double good = 0, divisor = 0;
  for (const RequestRecord& r : records) {
    const bool ok = r.outcome == Outcome::kOk;
    const auto verdict = ok ? good_under(view.tool, r, targets) : std::optional(false);
    good += verdict.value_or(false);
    // vLLM prints no share; its successes are what it would divide by.
    const bool failures_count = view.tool == Tool::kGoodput || view.tool == Tool::kAiperf;
    divisor += verdict.has_value() && (ok || failures_count);
  }
  if (view.duration_s > 0)
    view.goodput_rps = good / view.duration_s;
  if (divisor > 0)
    view.good_share = good / divisor;
}

double whole_run_s(std::span<const RequestRecord> records) {
  std::optional<TimePoint> first, last;
  for (const RequestRecord& r : records) {
    if (!r.dispatched)
      continue;
    first = std::min(first.value_or(*r.dispatched), *r.dispatched);
    if (const auto end = end_of_stream(r))
      last = std::max(last.value_or(*end), *end);
  }
  return first && last && *last > *first ? to_seconds(*last - *first) : 0;
}

}  // namespace

std::string_view to_string(Tool tool) {
  static constexpr std::array<std::string_view, kTools.size()> kNames = {
      "goodput", "vLLM bench serve", "SGLang bench_serving", "AIPerf", "guidellm", "evalscope perf"};
  return kNames[static_cast<size_t>(tool)];
}

std::string_view short_name(Tool tool) {
  static constexpr std::array<std::string_view, kTools.size()> kNames = {"goodput", "vllm",     "sglang",
                                                                         "aiperf",  "guidellm", "evalscope"};
  return kNames[static_cast<size_t>(tool)];
}

std::string_view to_string(PercentileRule rule) {
  switch (rule) {
    case PercentileRule::kNearestRank:
      return "nearest rank";
    case PercentileRule::kLinear:
      return "linear between neighbours";
    case PercentileRule::kIndex:
      break;
  }
  return "element floor(p n)";
}

PercentileRule percentile_rule(Tool tool) {
  switch (tool) {
    case Tool::kGoodput:
    case Tool::kGuidellm:
      return PercentileRule::kNearestRank;
    case Tool::kVllm:
    case Tool::kSglang:
    case Tool::kAiperf:
      return PercentileRule::kLinear;
    case Tool::kEvalscope:
      break;
  }
  return PercentileRule::kIndex;
}

std::optional<double> percentile_by(PercentileRule rule, std::span<const double> sorted, double p) {
  CHECK(p > 0 && p <= 1, "a percentile lies in (0, 1]");
  if (sorted.empty())
    return std::nullopt;
  const auto n = static_cast<double>(sorted.size());
  switch (rule) {
    case PercentileRule::kNearestRank:
      return percentile(sorted, p);
    case PercentileRule::kIndex: {
      const auto at = static_cast<size_t>(n * p * (1 + 1e-12));  // p·n is not exact in binary
      return at < sorted.size() ? std::optional(sorted[at]) : std::nullopt;
    }
    case PercentileRule::kLinear:
      break;
  }
  const double position = p * (n - 1);
  const auto below = static_cast<size_t>(position);
  const size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (sorted[above] - sorted[below]) * (position - static_cast<double>(below));
}

std::span<const DefinitionRow> definition_rows() { return kRows; }

std::optional<int64_t> output_tokens_under(Tool tool, const RequestRecord& r) {
  const auto stored = r.output_tokens ? std::optional<int64_t>(r.output_tokens->count()) : std::nullopt;
  switch (tool) {
    case Tool::kGoodput:
      return stored;
    case Tool::kSglang:
      return server_counted(r) ? stored : std::optional<int64_t>(r.asked_output.count());
    case Tool::kGuidellm:
      return server_counted(r) ? stored : std::optional<int64_t>(r.events.size());
    case Tool::kVllm:
    case Tool::kAiperf:
    case Tool::kEvalscope:
      break;
  }
  return server_counted(r) || r.token_source == TokenSource::kTokenizer ? stored : std::nullopt;
}

ToolView view_under(Tool tool, std::span<const RequestRecord> records, std::span<const RequestRecord> cohort,
                    const TargetSet& targets, double window_s) {
  const bool ours = tool == Tool::kGoodput;
  const auto counted = ours ? cohort : records;
  ToolView view;
  view.tool = tool;
  view.tokens_say = tokens_say(tool);
  view.goodput_says = goodput_says(tool);
  view.duration_s = ours ? window_s : whole_run_s(records);
  for (const DefinitionRow& row : kRows) {
    if (row.tool != tool)
      continue;
    ToolFigure figure;
    figure.row = &row;
    size_t requests = 0;
    for (const RequestRecord& r : counted) {
      const size_t before = figure.values.size();
      if (row.values && r.outcome == Outcome::kOk)
        row.values(r, figure.values);
      requests += figure.values.size() > before;
    }
    std::ranges::sort(figure.values);
    figure.requests = requests;
    if (!figure.values.empty())
      figure.mean =
          std::accumulate(figure.values.begin(), figure.values.end(), 0.0) / static_cast<double>(figure.values.size());
    const auto at = [&](double p) {
      // Ours alone refuses a percentile without an upper bound at its n.
      const bool enough = !ours || requests >= min_samples(p);
      return enough ? percentile_by(percentile_rule(tool), figure.values, p) : std::nullopt;
    };
    figure.p50 = at(0.50);
    figure.p95 = at(0.95);
    figure.p99 = at(0.99);
    view.figures.push_back(std::move(figure));
  }
  int64_t tokens = 0;
  bool known = true;
  for (const RequestRecord& r : counted) {
    if (r.outcome != Outcome::kOk)
      continue;
    const auto n = output_tokens_under(tool, r);
    known &= n.has_value();
    tokens += n.value_or(0);
  }
  if (known)
    view.output_tokens = tokens;
  score_goodput(view, counted, targets);
  return view;
}

}  // namespace goodput
