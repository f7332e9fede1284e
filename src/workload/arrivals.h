// Arrival processes of the open loop. Internal to the room.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/random.h"
#include "base/units.h"

namespace goodput {

// Seconds as Nanos, saturating far beyond any run, so that a tiny rate cannot overflow.
inline Nanos arrival_time(double s) { return from_seconds(std::min(s, 1e9)); }

// A true Poisson process: independent exponential gaps, never rescaled to hit a count or a span, because that would
// remove the run-to-run noise that a confidence interval should show. Gaps are drawn at rate 1 and divided by the rate.
class PoissonArrivals {
 public:
  PoissonArrivals(double rate, uint64_t seed) : rate_(rate), random_(seed, "arrivals") {}
  Nanos next() {
    unit_time_ += random_.exponential(1.0);
    return arrival_time(unit_time_ / rate_);
  }

 private:
  double rate_;
  double unit_time_ = 0;
  Random random_;
};

// One arrival every 1/rate seconds from 0 on, each from its own index, so that rounding never accumulates.
class ConstantArrivals {
 public:
  explicit ConstantArrivals(double rate) : rate_(rate) {}
  Nanos next() { return arrival_time(static_cast<double>(index_++) / rate_); }

 private:
  double rate_;
  uint64_t index_ = 0;
};

}  // namespace goodput
