// Seeded random streams that give the same numbers on every machine and with every standard library: the
// distributions of <random> are implementation-defined, and a schedule must be reproducible from its seed alone.
// A stream is named by (seed, purpose), so that adding a draw in one place never shifts another.
#pragma once

#include <cstdint>
#include <string_view>

namespace goodput {

// One round of splitmix64's finaliser (Steele, Lea, Flood, OOPSLA 2014): a cheap, well-mixed 64-bit hash.
constexpr uint64_t mix64(uint64_t z) {
  z += 0x9E3779B97F4A7C15ull;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
  return z ^ (z >> 31);
}
constexpr uint64_t mix64(uint64_t a, uint64_t b) { return mix64(a ^ mix64(b)); }

// FNV-1a's step on 64 bits from a basis of our own (the published one is 14695981039346656037): a stable hash of bytes,
// for naming streams; not against adversaries. Schedules and models follow from it: changing the basis changes every
// seed.
constexpr uint64_t fnv1a(std::string_view bytes) {
  uint64_t h = 1469598103934665603ull;
  for (const char c : bytes)
    h = (h ^ static_cast<uint8_t>(c)) * 1099511628211ull;
  return h;
}

// xoshiro256** (Blackman, Vigna, 2018). Copyable: a copy continues the same stream.
class Random {
 public:
  Random(uint64_t seed, std::string_view purpose);

  uint64_t next();                                 // 64 random bits
  double uniform();                                // [0, 1), 53 bits
  int64_t uniform_int(int64_t low, int64_t high);  // [low, high], unbiased; low <= high
  double exponential(double mean);                 // mean > 0
  double normal();                                 // mean 0, deviation 1
  double gamma(double shape, double scale);        // shape > 0 (Marsaglia, Tsang 2000)
  double lognormal(double median, double sigma);   // exp(N(ln median, sigma))

 private:
  uint64_t state_[4];
};

}  // namespace goodput
