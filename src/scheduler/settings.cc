// The one table of settings: how each is called, read, written, bounded and explained. Everything else about settings
// (flags, TOML keys, environment, JSON, docs) is derived from its rows.
#include "scheduler/settings.h"

#include <array>
#include <vector>

#include <fmt/format.h>

#include "base/check.h"
#include "base/limits.h"
#include "base/text.h"

namespace goodput {
namespace {

constexpr std::array<std::string_view, 2> kBooleans{"false", "true"};
constexpr std::array<std::string_view, 2> kPolicies{"fcfs", "priority"};
constexpr std::array<std::string_view, 2> kBatchings{"continuous", "static"};

// A setting as a whole number in [low, high]: a count, nanoseconds, or an index into `choices`.
struct Entry {
  SettingRow row;
  int64_t low, high;
  std::span<const std::string_view> choices;
  int64_t (*read)(const Settings&);
  void (*write)(Settings&, int64_t);
};

template <auto kField>
int64_t read_field(const Settings& s) {
  if constexpr (requires { (s.*kField).count(); }) {
    return (s.*kField).count();
  } else {
    return static_cast<int64_t>(s.*kField);
  }
}

template <auto kField>
void write_field(Settings& s, int64_t value) {
  using Field = std::remove_reference_t<decltype(s.*kField)>;
  s.*kField = static_cast<Field>(value);
}

template <auto kField>
Entry number(SettingRow row, int64_t low, int64_t high) {
  return {row, low, high, {}, &read_field<kField>, &write_field<kField>};
}

template <auto kField>
Entry choice(SettingRow row, std::span<const std::string_view> choices) {
  return {row, 0, static_cast<int64_t>(choices.size()) - 1, choices, &read_field<kField>, &write_field<kField>};
}

constexpr std::string_view kDuration = "duration";
constexpr int64_t kLongestWait = 60'000'000'000;  // ns

const std::vector<Entry>& entries() {
  static const std::vector<Entry> kSettings{
      number<&Settings::max_num_seqs>({"max_num_seqs", "int", "sequences", "1..256", "sequences admitted at once"}, 1,
                                      limits::kMaxSlots),
      number<&Settings::max_num_batched_tokens>(
          {"max_num_batched_tokens", "int", "tokens", "1..65536",
           "tokens computed in one iteration, prefill and decode together; at least max_num_seqs"},
          1, limits::kMaxBatchedTokens.count()),
      number<&Settings::max_model_len>(
          {"max_model_len", "int", "tokens", "2..1048576", "longest prompt and output of one request together"}, 2,
          limits::kMaxModelLen.count()),
      number<&Settings::block_size>(
          {"block_size", "int", "tokens", "1..1024", "unit in which KV is accounted, shared and retained"}, 1, 1024),
      choice<&Settings::enable_prefix_caching>(
          {"enable_prefix_caching", "bool", "", "true, false",
           "prompts reuse the KV of equal prefixes, of running and of ended requests"},
          kBooleans),
      choice<&Settings::enable_chunked_prefill>(
          {"enable_chunked_prefill", "bool", "", "true, false",
           "a prompt may be computed over several iterations; off: whole, so max_num_batched_tokens must hold one of "
           "max_model_len"},
          kBooleans),
      number<&Settings::long_prefill_token_threshold>(
          {"long_prefill_token_threshold", "int", "tokens", "0..1048576",
           "most prompt tokens of one request in an iteration when prefill is chunked; 0: no limit"},
          0, limits::kMaxModelLen.count()),
      choice<&Settings::scheduling_policy>(
          {"scheduling_policy", "choice", "", "fcfs, priority",
           "order of service: as submitted, or by the request's priority (lower first), then arrival"},
          kPolicies),
      choice<&Settings::batching>(
          {"batching", "choice", "", "continuous, static",
           "continuous: requests join and leave at every iteration; static: a batch is formed, prefilled and decoded "
           "together, and nobody joins until all of it has ended"},
          kBatchings),
      number<&Settings::static_batch_wait>(
          {"static_batch_wait", kDuration, "", "0..60s",
           "static batching: an incomplete batch starts when its oldest request has waited this long"},
          0, kLongestWait),
      number<&Settings::max_num_queued_reqs>(
          {"max_num_queued_reqs", "int", "requests", "1..4096", "waiting requests beyond which new ones are rejected"},
          1, limits::kMaxQueuedRequests),
  };
  return kSettings;
}

const Entry* find(std::string_view name) {
  for (const Entry& e : entries()) {
    if (e.row.name == name)
      return &e;
  }
  return nullptr;
}

tl::unexpected<Error> bad_value(const Entry& e, std::string_view value) {
  const std::string unit = e.row.unit.empty() ? "" : fmt::format(" {}", e.row.unit);
  return fail(ErrorCode::kUsage, fmt::format("{} is '{}', expected {} in {}{}", e.row.name, value,
                                             e.choices.empty() ? "a value" : "one", e.row.range, unit));
}

std::string text_of(const Entry& e, int64_t value) {
  if (!e.choices.empty() && value >= e.low && value <= e.high)
    return std::string(e.choices[value]);
  if (e.row.type != kDuration)
    return fmt::format("{}", value);
  constexpr int64_t kMs = 1'000'000;
  if (value % kMs == 0)
    return fmt::format("{}ms", value / kMs);
  return fmt::format("{}.{:09}s", value / (1000 * kMs), value % (1000 * kMs));
}

Result<int64_t> parse(const Entry& e, std::string_view text) {
  for (size_t i = 0; i < e.choices.size(); ++i) {
    if (e.choices[i] == text)
      return static_cast<int64_t>(i);
  }
  if (!e.choices.empty())
    return bad_value(e, text);
  const Result<int64_t> value =
      e.row.type == kDuration ? parse_duration(text).map([](Nanos d) { return d.count(); }) : parse_int(text);
  if (!value || *value < e.low || *value > e.high)
    return bad_value(e, text);
  return *value;
}

}  // namespace

std::span<const SettingRow> setting_rows() {
  static const std::vector<SettingRow> kRows = [] {
    std::vector<SettingRow> rows;
    for (const Entry& e : entries())
      rows.push_back(e.row);
    return rows;
  }();
  return kRows;
}

Result<void> set_setting(Settings& settings, std::string_view name, std::string_view value) {
  const Entry* entry = find(name);
  if (entry == nullptr) {
    std::vector<std::string_view> names;
    for (const Entry& e : entries())
      names.push_back(e.row.name);
    const std::optional<std::string> near = nearest(name, names);
    return fail(ErrorCode::kUsage, fmt::format("there is no setting '{}'{}", name,
                                               near ? fmt::format("; did you mean '{}'?", *near) : ""));
  }
  entry->write(settings, TRY(parse(*entry, value)));
  return {};
}

std::string setting_text(const Settings& settings, std::string_view name) {
  const Entry* entry = find(name);
  CHECK(entry != nullptr, "setting_text of a name that is no setting");
  return text_of(*entry, entry->read(settings));
}

Result<void> validate(const Settings& s) {
  for (const Entry& e : entries()) {
    const int64_t value = e.read(s);
    if (value < e.low || value > e.high)
      return bad_value(e, text_of(e, value));
  }
  const Tokens budget = s.max_num_batched_tokens;
  if (budget.count() < s.max_num_seqs) {
    return fail(ErrorCode::kUsage,
                fmt::format("max_num_batched_tokens is {}, below max_num_seqs {}: each running sequence decodes one "
                            "token per iteration; raise the former or lower the latter",
                            budget.count(), s.max_num_seqs));
  }
  if (!s.enable_chunked_prefill && budget < s.max_model_len) {
    return fail(ErrorCode::kUsage,
                fmt::format("enable_chunked_prefill is false and max_num_batched_tokens {} is below max_model_len {}: "
                            "a whole prompt would not fit in an iteration; raise the budget, lower max_model_len, or "
                            "chunk",
                            budget.count(), s.max_model_len.count()));
  }
  return {};
}

std::string_view to_string(SchedulingPolicy policy) { return kPolicies[static_cast<size_t>(policy)]; }
std::string_view to_string(Batching batching) { return kBatchings[static_cast<size_t>(batching)]; }

}  // namespace goodput
