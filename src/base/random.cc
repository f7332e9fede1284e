#include "base/random.h"

#include <bit>
#include <cmath>
#include <numbers>

#include "base/check.h"

namespace goodput {

Random::Random(uint64_t seed, std::string_view purpose) {
  uint64_t s = mix64(seed, fnv1a(purpose));
  for (auto& word : state_)
    word = s = mix64(s);
}

uint64_t Random::next() {
  const uint64_t result = std::rotl(state_[1] * 5, 7) * 9;
  const uint64_t t = state_[1] << 17;
  state_[2] ^= state_[0];
  state_[3] ^= state_[1];
  state_[1] ^= state_[2];
  state_[0] ^= state_[3];
  state_[2] ^= t;
  state_[3] = std::rotl(state_[3], 45);
  return result;
}

double Random::uniform() { return static_cast<double>(next() >> 11) * 0x1.0p-53; }

int64_t Random::uniform_int(int64_t low, int64_t high) {
  CHECK(low <= high, "an interval has its ends in order");
  const uint64_t width = static_cast<uint64_t>(high) - static_cast<uint64_t>(low) + 1;
  if (width == 0)
    return static_cast<int64_t>(next());         // the full 64-bit range
  const uint64_t reject_below = -width % width;  // 2^64 mod width: the values that would bias
  uint64_t draw;
  do
    draw = next();
  while (draw < reject_below);
  return static_cast<int64_t>(static_cast<uint64_t>(low) + draw % width);
}

double Random::exponential(double mean) { return -mean * std::log1p(-uniform()); }

double Random::normal() {
  // Box–Muller, cosine branch only: one normal from two uniforms keeps the stream stateless between draws.
  const double radius = std::sqrt(-2.0 * std::log1p(-uniform()));
  return radius * std::cos(2.0 * std::numbers::pi * uniform());
}

double Random::gamma(double shape, double scale) {
  CHECK(shape > 0 && scale > 0, "a gamma distribution has positive parameters");
  if (shape < 1.0) {
    const double boost = std::pow(1.0 - uniform(), 1.0 / shape);
    return gamma(shape + 1.0, scale) * boost;
  }
  const double d = shape - 1.0 / 3.0;
  const double c = 1.0 / std::sqrt(9.0 * d);
  for (;;) {
    const double x = normal();
    const double v = std::pow(1.0 + c * x, 3);
    if (v <= 0)
      continue;
    const double u = 1.0 - uniform();
    if (std::log(u) < 0.5 * x * x + d - d * v + d * std::log(v))
      return d * v * scale;
  }
}

double Random::lognormal(double median, double sigma) { return median * std::exp(sigma * normal()); }

}  // namespace goodput
