// What a request must keep to be good, and the text form that users type. Pure functions; any thread.
#include "metrics/targets.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/text.h"
#include "metrics/deliveries.h"
#include "metrics/request_metrics.h"
#include "metrics/stats.h"

namespace goodput {
namespace {

constexpr std::array<std::string_view, kTargetKeys> kKeys = {"ttft", "ttfa", "tpot", "itl", "icl", "max_gap", "e2el"};
constexpr double kMaxTargetMs = 1e9;  // eleven days; keeps ns exact in a double

// Names that other tools give to the same limits (AIPerf and GenAI-Perf call TPOT inter-token latency).
struct Alias {
  std::string_view name;
  TargetKey key;
};
constexpr Alias kAliases[] = {
    {"time_to_first_token", TargetKey::kTtft},
    {"first_token_latency", TargetKey::kTtft},
    {"time_to_first_output_token", TargetKey::kTtfa},
    {"time_per_output_token", TargetKey::kTpot},
    {"inter_token_latency", TargetKey::kTpot},
    {"inter_chunk_latency", TargetKey::kIcl},
    {"request_latency", TargetKey::kE2el},
    {"e2e_latency", TargetKey::kE2el},
};

std::optional<size_t> key_index(std::string_view name) {
  const auto* const at = std::ranges::find(kKeys, name);
  if (at != kKeys.end())
    return static_cast<size_t>(at - kKeys.begin());
  const auto* const alias = std::ranges::find(kAliases, name, &Alias::name);
  if (alias != std::end(kAliases))
    return static_cast<size_t>(alias->key);
  return std::nullopt;
}

enum class Fit : uint8_t { kMet, kMissed, kNothingToDivide, kUnmeasurable };

Fit within(std::optional<Nanos> value, Nanos limit) { return value && *value <= limit ? Fit::kMet : Fit::kMissed; }

Fit fit_tpot(const RequestRecord& r, Nanos limit) {
  if (const auto value = tpot_ns(r))
    return *value <= static_cast<double>(limit.count()) ? Fit::kMet : Fit::kMissed;
  return !r.buffered && tpot_divisor(r) == 0 ? Fit::kNothingToDivide : Fit::kMissed;
}

// Whether the request's p95 gap (or largest gap) keeps the limit, by counting instead of sorting: the p95 is within the
// limit exactly when at least 95 % of the weight is. This runs for every request of every point that a search looks at.
Fit fit_gaps(const RequestRecord& r, TargetKey key, Nanos limit) {
  const StreamFacts facts = inspect(r);
  if (!r.buffered && facts.deliveries == 1)
    return Fit::kNothingToDivide;
  const bool per_token = key == TargetKey::kItl;
  if (r.buffered || facts.deliveries == 0 || (per_token && !facts.counted))
    return Fit::kMissed;
  const auto most = static_cast<double>(limit.count());
  int64_t total = 0, kept = 0;
  const bool forward = for_each_gap(r, facts, [&](int64_t gap, uint32_t tokens) {
    const int64_t weight = per_token ? tokens : 1;
    total += weight;
    kept += static_cast<double>(gap) <= most * static_cast<double>(weight) ? weight : 0;
  });
  if (!forward)
    return Fit::kMissed;
  const auto all = static_cast<double>(total);
  const double needed = key == TargetKey::kMaxGap ? all : share_of(all, 0.95);
  return static_cast<double>(kept) >= needed ? Fit::kMet : Fit::kMissed;
}

Fit fit(const RequestRecord& r, TargetKey key, Nanos limit) {
  if (!r.streamed && key != TargetKey::kE2el)
    return Fit::kUnmeasurable;
  switch (key) {
    case TargetKey::kTtft:
      return within(ttft(r), limit);
    case TargetKey::kTtfa:
      return within(ttfa(r), limit);
    case TargetKey::kE2el:
      return within(e2e(r), limit);
    case TargetKey::kTpot:
      return fit_tpot(r, limit);
    case TargetKey::kItl:
    case TargetKey::kIcl:
    case TargetKey::kMaxGap:
      return fit_gaps(r, key, limit);
  }
  return Fit::kMissed;
}

tl::unexpected<Error> bad_item(std::string_view item, std::string why) {
  return fail(ErrorCode::kUsage, std::move(why), fmt::format("target '{}'", item));
}

}  // namespace

bool TargetSet::empty() const {
  return std::ranges::none_of(limit, [](const auto& l) { return l.has_value(); });
}

bool TargetSet::interactive() const {
  for (int k = 0; k < kTargetKeys; ++k)
    if (static_cast<TargetKey>(k) != TargetKey::kE2el && limit[static_cast<size_t>(k)])
      return true;
  return false;
}

std::string_view to_string(TargetKey key) { return kKeys[static_cast<size_t>(key)]; }

Result<TargetSet> parse_targets(std::span<const std::string> items) {
  TargetSet targets;
  for (const std::string& item : items) {
    const size_t colon = item.find(':');
    if (colon == std::string::npos)
      return bad_item(item, "expected KEY:MILLISECONDS, such as ttft:200 or tpot:40");
    const std::string_view key = std::string_view(item).substr(0, colon);
    const std::string_view number = std::string_view(item).substr(colon + 1);
    const auto at = key_index(key);
    if (!at) {
      const auto close = nearest(key, kKeys);
      return bad_item(item,
                      fmt::format("unknown target '{}'{}; the targets are {}", key,
                                  close ? fmt::format(", did you mean '{}'?", *close) : "", fmt::join(kKeys, ", ")));
    }
    const auto ms = parse_double(number);
    if (!ms || !(*ms > 0) || *ms > kMaxTargetMs || from_ms(*ms) <= Nanos(0))
      return bad_item(item,
                      fmt::format("expected milliseconds above 0 and up to {:.0f}, found '{}'", kMaxTargetMs, number));
    auto& limit = targets.limit[*at];
    if (limit)
      return bad_item(item, fmt::format("'{}' is given twice", key));
    limit = from_ms(*ms);
  }
  return targets;
}

std::string to_text(const TargetSet& targets) {
  std::string text;
  for (size_t k = 0; k < kKeys.size(); ++k) {
    if (!targets.limit[k])
      continue;
    const int64_t ns = targets.limit[k]->count();
    std::string ms = fmt::format("{}.{:06}", ns / 1'000'000, ns % 1'000'000);
    ms.erase(ms.find_last_not_of('0') + 1);
    if (ms.back() == '.')
      ms.pop_back();
    text += fmt::format("{}{}:{}", text.empty() ? "" : " ", kKeys[k], ms);
  }
  return text;
}

Judgement judge(const RequestRecord& r, const TargetSet& targets, bool strict) {
  Judgement judgement;
  if (r.outcome != Outcome::kOk)
    return judgement;
  bool missed = false, unmeasurable = false;
  for (int k = 0; k < kTargetKeys; ++k) {
    const auto key = static_cast<TargetKey>(k);
    const auto limit = targets[key];
    if (!limit)
      continue;
    const Fit result = fit(r, key, *limit);
    missed |= result == Fit::kMissed;
    unmeasurable |= result == Fit::kUnmeasurable;
    judgement.not_applicable += result == Fit::kNothingToDivide;
  }
  if (strict && judgement.not_applicable > 0)
    missed = true;
  judgement.goodness = missed ? Goodness::kBad : unmeasurable ? Goodness::kUnmeasurable : Goodness::kGood;
  return judgement;
}

}  // namespace goodput
