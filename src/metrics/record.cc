// The names of a record's enumerators, as they stand in JSON, tables and study files. One table per enum, in its order.
// Pure functions; any thread.
#include "metrics/record.h"

#include <array>

#include "base/check.h"

namespace goodput {
namespace {

constexpr std::array<std::string_view, kOutcomes> kOutcomeNames = {"ok",    "rejected",  "error",      "timeout",
                                                                   "reset", "cancelled", "unfinished", "not_sent"};
constexpr std::array<std::string_view, 8> kErrorNames = {"none",      "http_status", "error_object", "malformed",
                                                         "truncated", "empty",       "connect",      "limit"};
constexpr std::array<std::string_view, 6> kFinishNames = {"none", "stop", "length", "tool_calls", "abort", "error"};
constexpr std::array<std::string_view, 5> kSourceNames = {"none", "usage", "running_usage", "tokenizer", "chunks"};
constexpr std::array<std::string_view, 4> kChannelNames = {"content", "reasoning", "tool_call", "refusal"};

template <class Enum, size_t N>
std::string_view name_of(const std::array<std::string_view, N>& names, Enum value) {
  const auto at = static_cast<size_t>(value);
  CHECK(at < N, "an enumerator has a name");
  return names[at];
}

}  // namespace

std::string_view to_string(Outcome o) { return name_of(kOutcomeNames, o); }
std::string_view to_string(ErrorKind e) { return name_of(kErrorNames, e); }
std::string_view to_string(FinishReason f) { return name_of(kFinishNames, f); }
std::string_view to_string(TokenSource s) { return name_of(kSourceNames, s); }
std::string_view to_string(Channel c) { return name_of(kChannelNames, c); }

std::optional<Outcome> parse_outcome(std::string_view text) {
  for (size_t i = 0; i < kOutcomeNames.size(); ++i)
    if (kOutcomeNames[i] == text)
      return static_cast<Outcome>(i);
  return std::nullopt;
}

}  // namespace goodput
