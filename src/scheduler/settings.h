// The batch settings, with vLLM's names and meanings, because users know them. One table (kSettings in settings.cc)
// names each: flags, TOML keys, environment, JSON and docs derive from it.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/units.h"

namespace goodput {

enum class SchedulingPolicy : uint8_t { kFcfs, kPriority };
enum class Batching : uint8_t { kContinuous, kStatic };

struct Settings {
  int max_num_seqs = 16;               // sequences admitted at once, 1..256
  Tokens max_num_batched_tokens{256};  // tokens in one iteration; >= max_num_seqs
  Tokens max_model_len{4096};          // prompt + output of one request
  Tokens block_size{16};               // KV accounting and sharing unit
  bool enable_prefix_caching = true;
  bool enable_chunked_prefill = true;
  Tokens long_prefill_token_threshold{0};  // most prompt tokens of one request in an iteration; 0: no limit
  SchedulingPolicy scheduling_policy = SchedulingPolicy::kFcfs;
  Batching batching = Batching::kContinuous;
  Nanos static_batch_wait = milliseconds(50);  // static: start an incomplete batch after this wait
  int max_num_queued_reqs = 1024;              // waiting requests beyond which submissions are rejected

  bool operator==(const Settings&) const = default;
};

struct SettingRow {
  std::string_view name, type, unit, range, meaning;
};

// All settings, in the order they are documented.
std::span<const SettingRow> setting_rows();
// Sets one by its name from text; the error names the setting, the value, and what was expected (or, for an unknown
// name, the nearest one).
Result<void> set_setting(Settings&, std::string_view name, std::string_view value);
// The value as text, in the form that set_setting takes. `name` must be a row's.
std::string setting_text(const Settings&, std::string_view name);
// Ranges and combinations: a budget below max_num_seqs, chunked prefill off with a budget below max_model_len, …
Result<void> validate(const Settings&);

std::string_view to_string(SchedulingPolicy);
std::string_view to_string(Batching);

}  // namespace goodput
