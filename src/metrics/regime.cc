// Is the server keeping up? Facts about the flow of requests, not about their latencies. Pure functions; any thread.
#include <algorithm>
#include <array>
#include <cmath>

#include "metrics/summary.h"

namespace goodput {
namespace {

constexpr int kParts = 10;             // of the last half
constexpr uint64_t kMinArrivals = 20;  // in the last half
constexpr double kMinGrowth = 3;       // requests over the last half
// 95 % one-sided quantile of Student's distribution with kParts − 1 degrees of freedom.
constexpr double kStudent9 = 1.833113;

// When the request stopped being in flight; nullopt: never, as far as the run saw.
std::optional<TimePoint> end_of(const RequestRecord& r) {
  if (r.outcome == Outcome::kUnfinished)
    return std::nullopt;
  if (r.closed)
    return r.closed;
  if (r.done)
    return r.done;
  return r.scheduled;  // it failed without a trace
}

}  // namespace

// Why increments: successive values of in-flight are so correlated that a regression on them calls every wandering
// queue a trend. The increments of a queue at its very limit are independent, so the test is exact there; those of a
// queue that returns to its mean are negatively correlated, so it errs towards `steady`. Their own spread is the
// yardstick, so bursty arrivals and batched completions need no model.
Regime regime_of(std::span<const RequestRecord> records, Window window) {
  const Nanos half = (window.end - window.start) / 2;
  const TimePoint from = window.end - half;
  if (half <= Nanos(0))
    return Regime::kUnknown;
  std::array<TimePoint, kParts + 1> instants;
  for (int i = 0; i <= kParts; ++i)
    instants[static_cast<size_t>(i)] =
        from + Nanos(static_cast<int64_t>(static_cast<double>(half.count()) * i / kParts));
  std::array<int64_t, kParts + 2> change{};  // in-flight at an instant = the sum up to it
  uint64_t arrivals = 0;
  const auto first_at = [&](TimePoint t) {
    return static_cast<size_t>(std::ranges::lower_bound(instants, t) - instants.begin());
  };
  for (const RequestRecord& r : records) {
    if (r.outcome == Outcome::kNotSent || r.scheduled > instants.back())
      continue;
    arrivals += r.scheduled >= from && r.scheduled < window.end;
    ++change[first_at(r.scheduled)];
    if (const auto end = end_of(r))
      --change[first_at(std::max(*end, r.scheduled))];
  }
  if (arrivals < kMinArrivals)
    return Regime::kUnknown;

  double growth = 0, squares = 0;
  for (size_t i = 1; i <= kParts; ++i) {
    const auto step = static_cast<double>(change[i]);
    growth += step;
    squares += step * step;
  }
  const double mean = growth / kParts;
  const double deviation = std::sqrt(std::max(0.0, squares - kParts * mean * mean) / (kParts - 1));
  const bool grows = growth >= kMinGrowth && mean > kStudent9 * deviation / std::sqrt(double{kParts});
  return grows ? Regime::kSaturated : Regime::kSteady;
}

OpeningWave opening_wave(std::span<const RequestRecord> records, Nanos warm_up) {
  OpeningWave wave;
  if (records.empty())
    return wave;
  const TimePoint first = std::ranges::min(records, {}, &RequestRecord::scheduled).scheduled;
  std::optional<TimePoint> ended;
  for (const RequestRecord& r : records) {
    if (r.outcome == Outcome::kNotSent)
      continue;
    if (const auto end = end_of(r))
      ended = std::min(ended.value_or(*end), *end);
  }
  if (!ended)
    ended = std::ranges::max(records, {}, &RequestRecord::scheduled).scheduled + Nanos(1);  // all of them
  wave.end = std::max(*ended, first + warm_up);
  wave.requests = static_cast<uint64_t>(
      std::ranges::count_if(records, [&](const RequestRecord& r) { return r.scheduled < wave.end; }));
  return wave;
}

std::string_view to_string(Regime regime) {
  switch (regime) {
    case Regime::kSteady:
      return "steady";
    case Regime::kSaturated:
      return "saturated";
    case Regime::kUnknown:
      break;
  }
  return "unknown";
}

}  // namespace goodput
