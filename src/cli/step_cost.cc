#include "cli/step_cost.h"

#include <utility>

#include <fmt/format.h>
#include <simdjson.h>

#include "base/file.h"
#include "base/limits.h"
#include "base/text.h"

namespace goodput {
namespace {

Result<void> set_cost(StepCost& cost, std::string_view key, double value) {
  const std::pair<std::string_view, double*> kFields[] = {
      {"base_ns", &cost.base_ns},   {"prefill_ns", &cost.prefill_ns}, {"decode_ns", &cost.decode_ns},
      {"kv_ns", &cost.kv_ns},       {"tile_ns", &cost.tile_ns},       {"scan_ns", &cost.scan_ns},
      {"crowd_ns", &cost.crowd_ns}, {"dense_ns", &cost.dense_ns},     {"far_ns", &cost.far_ns},
      {"pass_ns", &cost.pass_ns},   {"swap_ns", &cost.swap_ns}};
  for (const auto& [name, field] : kFields) {
    if (name != key)
      continue;
    if (!(value >= 0 && value <= 1e15))
      return fail(ErrorCode::kUsage, "a cost is 0 or more nanoseconds", std::string(key));
    *field = value;
    return {};
  }
  return fail(ErrorCode::kUsage,
              "unknown cost; there are base_ns, prefill_ns, decode_ns, kv_ns, tile_ns, scan_ns, crowd_ns, dense_ns, "
              "far_ns, pass_ns, swap_ns",
              std::string(key));
}

}  // namespace

Result<StepCost> parse_step_cost(const std::string& list, const std::string& file) {
  // About the tiny model on one core: visible steps, prompts that take longer than decoding.
  StepCost cost{.base_ns = 5e5, .prefill_ns = 2e4, .decode_ns = 1e5, .kv_ns = 1};
  if (!file.empty()) {
    cost = {};
    const std::string text = TRY(read_file(file, limits::kMaxStudyFileBytes));
    simdjson::dom::parser parser;
    simdjson::dom::object object;
    if (parser.parse(text).get(object))
      return fail(ErrorCode::kUsage, "expected a JSON object of costs", file);
    for (const auto [key, element] : object) {
      double value = 0;
      if (element.get(value))
        return fail(ErrorCode::kUsage, fmt::format("'{}' must be a number", key), file);
      TRY(set_cost(cost, key, value));
    }
  }
  if (!list.empty()) {
    if (file.empty())
      cost = {};
    for (const auto part : split(list, ',')) {
      const auto pair = split(part, '=');
      if (pair.size() != 2)
        return fail(ErrorCode::kUsage, fmt::format("expected name=nanoseconds, found '{}'", part), "--cost");
      TRY(set_cost(cost, trim(pair[0]), TRY(parse_double(trim(pair[1])))));
    }
  }
  return cost;
}

}  // namespace goodput
