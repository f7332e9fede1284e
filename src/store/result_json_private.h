// Reading other people's JSON with as little ceremony as safety allows: absent and wrong are the same (nullopt), the
// caller decides what it cannot do without. Private to the readers of result files; simdjson stays in this room.
#pragma once

#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include <simdjson.h>

#include "base/limits.h"
#include "store/result_file.h"

namespace goodput::result_json {

namespace dom = simdjson::dom;

inline std::optional<dom::element> at(dom::element e, std::string_view key) {
  dom::object object;
  dom::element found;
  if (e.get(object) || object.at_key(key).get(found))
    return std::nullopt;
  return found;
}
inline std::optional<dom::element> at(std::optional<dom::element> e, std::string_view key) {
  return e ? at(*e, key) : std::nullopt;
}
inline bool has(dom::element e, std::string_view key) { return at(e, key).has_value(); }

// Finite and within what a benchmark can produce; negative values are nobody's latency, count or rate.
inline std::optional<double> number(std::optional<dom::element> e) {
  double v = 0;
  if (!e || e->get(v) || !std::isfinite(v) || v < 0 || v > limits::kMaxResultValue)
    return std::nullopt;
  return v;
}
inline std::optional<double> number_at(std::optional<dom::element> e, std::string_view key) {
  return number(at(e, key));
}
inline std::string text_at(std::optional<dom::element> e, std::string_view key) {
  const auto found = at(e, key);
  std::string_view text;
  if (!found || found->get(text))
    return {};
  return std::string(text.substr(0, limits::kMaxResultText));
}
inline std::optional<dom::array> array_at(std::optional<dom::element> e, std::string_view key) {
  const auto found = at(e, key);
  dom::array array;
  if (!found || found->get(array))
    return std::nullopt;
  return array;
}

inline constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

inline void add(ResultRun& run, std::string name, std::string_view definition, std::optional<double> value) {
  if (value)
    run.figures.push_back({std::move(name), std::string(definition), *value});
}
// A percentile by another rule than ours is another definition.
inline std::string with_rule(std::string_view definition, std::string_view rule) {
  return std::string(definition) + ", " + std::string(rule);
}
// Keeps samples only where at least one request has a value.
void add_samples(ResultRun&, std::string metric, std::string_view definition, std::vector<double> values);

// Each reads one object of its tool; nullopt-like emptiness is the caller's to refuse.
ResultRun read_vllm(dom::element);
ResultRun read_sglang(dom::element);
ResultRun read_guidellm_benchmark(dom::element);
ResultRun read_aiperf(dom::element);
Result<ResultRun> read_bench_json(dom::element);

// AIPerf's per-request lines, gathered into one run.
class AiperfRecords {
 public:
  void add(dom::element line);
  ResultRun take();

 private:
  std::vector<double> ttft_, tpot_, e2el_;
  uint64_t failed_ = 0, completed_ = 0;
};

}  // namespace goodput::result_json
