// The same run under the definitions of other tools: what each would have printed for these very streams. One table of
// rows (tool, metric, the tool's own key, the definition's tag, what it measures differently, the function); `compare`
// maps other tools' files through the same tags, so that figures of different definitions never meet unnoticed.
// Every tool is given our stamps: what its own client would have added (late reads, a wall clock) is not in it. Pure;
// any thread.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "metrics/record.h"
#include "metrics/targets.h"

namespace goodput {

enum class Tool : uint8_t { kGoodput, kVllm, kSglang, kAiperf, kGuidellm, kEvalscope };
inline constexpr std::array kTools = {Tool::kGoodput, Tool::kVllm,     Tool::kSglang,
                                      Tool::kAiperf,  Tool::kGuidellm, Tool::kEvalscope};
std::string_view to_string(Tool);   // "goodput", "vLLM bench serve", …
std::string_view short_name(Tool);  // "goodput", "vllm", …: as in JSON

// How a tool picks a percentile from n sorted values (numbered from 0).
enum class PercentileRule : uint8_t {
  kNearestRank,  // the ⌈p·n⌉-th smallest: ours, guidellm
  kLinear,       // numpy's default: between the neighbours of p·(n − 1)
  kIndex,        // element ⌊p·n⌋; absent beyond the last: evalscope
};
std::string_view to_string(PercentileRule);
PercentileRule percentile_rule(Tool);
// `sorted` ascending; nullopt when empty. p in (0, 1].
std::optional<double> percentile_by(PercentileRule, std::span<const double> sorted, double p);

// Names of a definition: equal text means equal meaning. Across tools only figures with equal tags are compared.
namespace tags {
inline constexpr std::string_view kTtftArrival = "arrival to first token", kTtftSend = "send to first token",
                                  kTtftText = "send to first text", kTtftChunk = "send to first chunk",
                                  kTpotOurs = "first to last token / (n - n1)",
                                  kTpotText = "first to last text / (n - 1)",
                                  kTpotChunk = "first to last chunk / (n - 1)",
                                  kTpotChunkZero = "first to last chunk / (n - 1), 0 for one token",
                                  kTpotClosed = "first text to end of stream / (n - 1)",
                                  kTpotWithTtft = "send to last token / n", kItlToken = "per token, weighted",
                                  kGapDelivery = "per delivery", kGapChunk = "per chunk", kGapText = "per text event",
                                  kE2eArrival = "arrival to last token", kE2eToken = "send to last token",
                                  kE2eClosed = "send to end of stream", kUsage = "the server's usage",
                                  kWindow = "scheduled in the window / window", kWholeRun = "whole run, drain included";
}  // namespace tags

struct DefinitionRow {
  Tool tool;
  std::string_view metric;  // ours: ttft, tpot, itl, e2el
  std::string_view key;     // the tool's own name for it
  std::string_view tag;
  std::string_view says;  // what it measures differently, one line
  // Appends the values of one ok request, ms; nothing where the definition gives none.
  void (*values)(const RequestRecord&, std::vector<double>&);
};
std::span<const DefinitionRow> definition_rows();  // by metric, then by tool

// Output tokens of an ok answer as the tool counts them; nullopt: what it would count is not stored (it tokenizes the
// text again).
std::optional<int64_t> output_tokens_under(Tool, const RequestRecord&);

struct ToolFigure {
  const DefinitionRow* row = nullptr;
  std::vector<double> values;  // ms, sorted
  size_t requests = 0;         // that gave them
  std::optional<double> mean, p50, p95, p99;
};
struct ToolView {
  Tool tool{};
  std::vector<ToolFigure> figures;       // in the order of definition_rows()
  std::optional<int64_t> output_tokens;  // of all ok answers; absent: unknown for at least one
  std::string_view tokens_say;           // where its count comes from
  double duration_s = 0;                 // what its rates divide by
  std::optional<double> goodput_rps;     // absent: the tool has none, no targets, or a target that it does not know
  std::optional<double> good_share;      // good ÷ what the tool divides by
  std::string_view goodput_says;
};
// `records`: the whole run. Ours counts the cohort in [start, end) of our window, given by its length in seconds; the
// others count every request over the whole run.
ToolView view_under(Tool, std::span<const RequestRecord> records, std::span<const RequestRecord> cohort,
                    const TargetSet& targets, double window_s);

}  // namespace goodput
