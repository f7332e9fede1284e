// Arrival processes of the open loop: a renewal process at rate 1 (the seed's noise) whose time is mapped through a
// rate profile (the user's load). So the same seed gives the same noise under every profile, every time is absolute,
// and a profile changes nothing about the process's statistics. Internal to the room.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/random.h"
#include "base/result.h"
#include "base/units.h"
#include "workload/spec.h"

namespace goodput {

// Seconds as Nanos, saturating far beyond any run, so that a tiny rate cannot overflow.
Nanos arrival_time(double s);

// Arrivals at rate 1, as seconds since the start. Poisson: exponential gaps. Gamma: gaps of mean 1 and shape
// `burstiness` (their variance is 1/burstiness; infinite: constant). Constant: 0, 1, 2, ….
class UnitArrivals {
 public:
  UnitArrivals(ArrivalKind, double burstiness, uint64_t seed);
  double next();
  double gap();  // next() less the one before

 private:
  bool constant_, gamma_;
  double burstiness_;
  double now_ = 0;
  uint64_t index_ = 0;
  Random random_;
};

// Where the integral of the rate reaches a number of arrivals: a piece of the profile after the other.
class RateProfile {
 public:
  // The workload's stages, its ramp by time, or its rate for ever. `duration`: of the run, for a ramp without its own.
  RateProfile(const WorkloadSpec&, std::optional<Nanos> duration);

  // Seconds at which `units` arrivals are due; nullopt: the profile ends before. Calls come in ascending order.
  std::optional<double> time_of(double units);
  // Arrivals due before `s` seconds.
  double units_by(double s) const;

 private:
  struct Piece {
    double from, to, start, length;  // rates at both ends; seconds, length infinite for the last of an endless profile
    bool exponential;
    double units_before;                 // at its start
    double units_after(double s) const;  // of this piece alone, s seconds into it
    double seconds_for(double units) const;
  };
  void add(double from, double to, double length, bool exponential = false);

  std::vector<Piece> pieces_;
  size_t at_ = 0;
};

// The times of a workload of kind poisson, constant or gamma.
class Arrivals {
 public:
  // kUsage: a ramp by index or `rescale` without a number of requests, a ramp by time without a length.
  static Result<Arrivals> create(const WorkloadSpec&, uint64_t seed, std::optional<Nanos> duration,
                                 std::optional<uint64_t> requests);

  std::optional<Nanos> next();  // nullopt: the stages are over
  // How many are due before this time, on average; of a ramp by index an upper bound.
  double expected_by(Nanos) const;

 private:
  Arrivals(const WorkloadSpec&, uint64_t seed, std::optional<Nanos> duration);
  double index_rate() const;

  UnitArrivals unit_;
  RateProfile profile_;
  std::optional<RampSpec> by_index_;
  uint64_t index_ = 0, requests_ = 0;
  double by_index_now_ = 0;
  bool first_after_a_gap_ = false;  // vLLM's convention for constant gaps
  double scale_ = 1;                // of unit time
};

}  // namespace goodput
