// See mlperf.h. Boost.Math stays in this file. Pure; any thread.
#include "metrics/mlperf.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include <boost/math/special_functions/beta.hpp>

#include "base/check.h"
#include "metrics/request_metrics.h"

namespace goodput {
namespace {

std::optional<double> mlperf_tpot_ms(const RequestRecord& r) {
  const auto first = ttft(r), last = e2e(r);
  if (!first || !last || !r.output_tokens || r.output_tokens->count() < 2)
    return std::nullopt;
  return to_ms(*last - *first) / (r.output_tokens->count() - 1);
}

class LimitCount {
 public:
  explicit LimitCount(Nanos limit) { out_.limit_ms = to_ms(limit); }

  void add(std::optional<double> ms) {
    ++out_.queries;
    out_.over += !ms || *ms > out_.limit_ms;
    if (ms)
      values_.push_back(*ms);
  }
  void add_undefined() { ++out_.undefined; }

  MlperfLimit take() {
    std::ranges::sort(values_);
    if (!values_.empty())
      out_.p99_ms =
          values_[std::min(values_.size() - 1, static_cast<size_t>(static_cast<double>(values_.size()) * 0.99))];
    out_.needed = mlperf_least_within(out_.over);
    out_.holds = out_.queries - out_.over >= out_.needed;
    return out_;
  }

 private:
  MlperfLimit out_;
  std::vector<double> values_;
};

}  // namespace

uint64_t mlperf_least_within(uint64_t over, double percentile, double confidence) {
  CHECK(percentile > 0 && percentile < 1 && confidence > 0 && confidence < 1);
  const auto enough = [&](uint64_t within) {
    return boost::math::ibeta(static_cast<double>(within), static_cast<double>(over) + 1, percentile) <= 1 - confidence;
  };
  uint64_t high = 1;
  while (!enough(high))
    high *= 2;
  uint64_t low = high / 2 + 1;  // high / 2 was not enough
  while (low < high) {
    const uint64_t middle = low + (high - low) / 2;
    if (enough(middle))
      high = middle;
    else
      low = middle + 1;
  }
  return high;
}

MlperfVerdict mlperf_verdict(std::span<const RequestRecord> records, Nanos ttft_limit,
                             std::optional<Nanos> tpot_limit) {
  LimitCount first(ttft_limit), between(tpot_limit.value_or(Nanos(0)));
  for (const RequestRecord& r : records) {
    const bool ok = r.outcome == Outcome::kOk;
    const auto time = ok ? ttft(r) : std::nullopt;
    first.add(time ? std::optional(to_ms(*time)) : std::nullopt);
    if (ok && r.output_tokens && r.output_tokens->count() == 1)
      between.add_undefined();
    else
      between.add(ok ? mlperf_tpot_ms(r) : std::nullopt);
  }
  MlperfVerdict verdict;
  verdict.ttft = first.take();
  verdict.holds = verdict.ttft.holds;
  if (tpot_limit) {
    verdict.tpot = between.take();
    verdict.holds &= verdict.tpot->holds;
  }
  return verdict;
}

}  // namespace goodput
