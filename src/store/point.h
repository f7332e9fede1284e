// One point of a study: what was controlled, what came out, and whether it may be believed. Its JSON is an element of
// `points[]` of `goodput map --json` and the summary column of the study file, so that there is one form of a point.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "metrics/summary.h"
#include "scheduler/settings.h"

namespace goodput {

struct Point {
  std::string phase;     // "probe", "screen", "measure", "confirm", "background"
  std::string key;       // unique per (phase, settings, rate, seed): what --resume looks for
  std::string executor;  // "llama" | "simulated" | "remote"
  Settings settings;     // controlled
  double rate = 0;       // requests/s that the workload was asked for; summary.offered_rate is what it scheduled
  uint64_t seed = 0;
  std::string schedule_hash;  // 64 hex digits
  bool primed = false;        // shared documents were primed before the window
  PointSummary summary;
  Observed observed;
  Verdict verdict;
  std::optional<ClientAudit> audit;  // absent where no generator ran (simulation)
};

// The point as one JSON object (no line breaks). Keys with a unit in their name are in it (`ttft_ms`); what is absent
// is null; doubles have the fewest digits that read back to the same value; a value that is not finite is null. `seed`
// is a string, because most readers of JSON lose digits beyond 2^53.
std::string to_json(const Point&);
// to_json's inverse: every field returns as it was. Unknown keys are ignored (later versions add some); a missing or
// wrongly typed one is kUsage and named.
Result<Point> point_from_json(std::string_view);

// Settings as JSON object, in the order of setting_rows(): numbers and booleans as such, the rest as text.
std::string to_json(const Settings&);
// The settings that people tell points apart by: "max_num_seqs 8, 256 tokens, fcfs" or "max_num_seqs 16, static".
std::string short_text(const Settings&);

}  // namespace goodput
