// Latency targets and what "good" means. Definitions: docs/method.md, "Targets, attainment, goodput, capacity".
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "metrics/record.h"

namespace goodput {

// Keys as users type them: ttft ttfa tpot itl icl max_gap e2el.
enum class TargetKey : uint8_t { kTtft, kTtfa, kTpot, kItl, kIcl, kMaxGap, kE2el };
inline constexpr int kTargetKeys = 7;

// Upper limits of one workload class. itl and icl bound the request's own p95.
struct TargetSet {
  std::array<std::optional<Nanos>, kTargetKeys> limit;

  std::optional<Nanos>& operator[](TargetKey k) { return limit[static_cast<size_t>(k)]; }
  const std::optional<Nanos>& operator[](TargetKey k) const { return limit[static_cast<size_t>(k)]; }
  bool empty() const;
  bool interactive() const;  // has a target on tokens' times (anything but e2el)
  bool operator==(const TargetSet&) const = default;
};

std::string_view to_string(TargetKey);
// "ttft:200 tpot:40" (milliseconds), vLLM's --goodput syntax; unknown keys and bad numbers are kUsage with a
// suggestion. Other tools' names are understood too: time_to_first_token, inter_token_latency (which is TPOT),
// request_latency.
Result<TargetSet> parse_targets(std::span<const std::string> items);
std::string to_text(const TargetSet&);  // the same syntax

enum class Goodness : uint8_t {
  kGood,
  kBad,
  kUnmeasurable,  // ok, but answered without streaming while a target needs tokens' times
};
struct Judgement {
  Goodness goodness = Goodness::kBad;
  int not_applicable = 0;  // targets with nothing to divide (TPOT of one token, gaps of one delivery)
};
// `strict`: a target that is not applicable counts as failed.
Judgement judge(const RequestRecord&, const TargetSet&, bool strict = false);

}  // namespace goodput
