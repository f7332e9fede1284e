// Lengths: fixed, uniform, or lognormal clipped to its bounds (clipped, not redrawn, so that one draw is one normal).
// Pure functions.
#include "workload/length.h"

#include <algorithm>
#include <cmath>

#include <boost/math/distributions/normal.hpp>

namespace goodput {
namespace {

Tokens clip(double tokens, const LengthSpec& spec) {
  return Tokens(static_cast<int64_t>(std::llround(std::clamp<double>(tokens, spec.low.count(), spec.high.count()))));
}

}  // namespace

Tokens draw(const LengthSpec& spec, Random& random) {
  switch (spec.kind) {
    case LengthSpec::Kind::kFixed:
      return spec.low;
    case LengthSpec::Kind::kUniform:
      return Tokens(random.uniform_int(spec.low.count(), spec.high.count()));
    case LengthSpec::Kind::kLognormal:
      return clip(random.lognormal(spec.median, spec.sigma), spec);
  }
  return spec.low;
}

Nanos draw(const TimeSpec& spec, Random& random) {
  switch (spec.kind) {
    case LengthSpec::Kind::kFixed:
      return spec.low;
    case LengthSpec::Kind::kUniform:
      return Nanos(random.uniform_int(spec.low.count(), spec.high.count()));
    case LengthSpec::Kind::kLognormal:
      return from_seconds(std::clamp(random.lognormal(to_seconds(spec.median), spec.sigma), to_seconds(spec.low),
                                     to_seconds(spec.high)));
  }
  return spec.low;
}

Tokens quantile(const LengthSpec& spec, double p) {
  switch (spec.kind) {
    case LengthSpec::Kind::kFixed:
      return spec.low;
    case LengthSpec::Kind::kUniform:
      return clip(spec.low.count() + p * (spec.high.count() - spec.low.count()), spec);
    case LengthSpec::Kind::kLognormal:
      return clip(spec.median * std::exp(spec.sigma * boost::math::quantile(boost::math::normal(), p)), spec);
  }
  return spec.low;
}

Tokens shortest(const LengthSpec& spec) { return spec.low; }
Tokens longest(const LengthSpec& spec) { return spec.kind == LengthSpec::Kind::kFixed ? spec.low : spec.high; }

}  // namespace goodput
