// Exact weighted order statistics of a large pool without sorting it. A point has a million token gaps and is scored
// thousands of times in a search; sorting them would take most of the search. The pool is visited three times: for its
// extent, for a histogram over the leading bits of the values (monotone in the value, ~0.4 % wide), and to gather the
// few values of the buckets that hold an answer; only those are sorted. The answers are elements of the pool, not
// estimates. Private to this room; pure.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <limits>
#include <vector>

#include "metrics/stats.h"

namespace goodput {

// Monotone: a < b implies ordered_bits(a) <= ordered_bits(b) >> any shift.
inline uint64_t ordered_bits(double v) {
  const auto bits = std::bit_cast<uint64_t>(v + 0.0);  // -0 becomes 0
  return bits >> 63 ? ~bits : bits | uint64_t{1} << 63;
}

template <size_t N>
struct OrderStatistics {
  std::array<double, N> at{};  // per share
  double max = 0;
  double weight = 0;  // 0: the pool is empty and nothing else is meaningful
};

// `each(f)` calls f(value, weight) for every sample, the same ones each time; weights that are not positive are
// ignored.
template <size_t N, class Each>
OrderStatistics<N> order_statistics(const Each& each, const std::array<double, N>& shares) {
  OrderStatistics<N> out;
  size_t count = 0;
  double low = std::numeric_limits<double>::infinity(), high = -low;
  each([&](double v, double w) {
    if (!(w > 0))
      return;
    ++count;
    out.weight += w;
    low = std::min(low, v);
    high = std::max(high, v);
  });
  if (!(out.weight > 0))
    return out;
  out.max = high;
  out.at.fill(high);
  if (low == high)
    return out;

  // 44 leaves sign, exponent and 8 bits of the mantissa; a small pool is gathered and sorted whole.
  const int shift = count <= 1024 ? 63 : 44;
  const uint64_t base = ordered_bits(low) >> shift;
  std::vector<double> histogram((ordered_bits(high) >> shift) - base + 1);
  each([&](double v, double w) {
    if (w > 0)
      histogram[(ordered_bits(v) >> shift) - base] += w;
  });

  std::array<size_t, N> bucket;
  std::array<double, N> below;  // weight in the buckets under it
  for (size_t i = 0; i < N; ++i) {
    const double need = share_of(out.weight, shares[i]);
    double sum = 0;
    size_t b = 0;
    while (b + 1 < histogram.size() && sum + histogram[b] < need)
      sum += histogram[b++];
    bucket[i] = b;
    below[i] = sum;
  }
  std::array<std::vector<Weighted>, N> members;  // shares that fall into one bucket use the first one's members
  each([&](double v, double w) {
    if (!(w > 0))
      return;
    const size_t b = (ordered_bits(v) >> shift) - base;
    for (size_t i = 0; i < N; ++i)
      if (bucket[i] == b) {
        members[i].push_back({v, w});
        break;
      }
  });
  for (auto& m : members)
    std::ranges::sort(m, {}, &Weighted::value);
  for (size_t i = 0; i < N; ++i) {
    size_t owner = 0;
    while (bucket[owner] != bucket[i])
      ++owner;
    double sum = below[i];
    for (const Weighted& m : members[owner]) {
      out.at[i] = m.value;
      sum += m.weight;
      if (sum >= share_of(out.weight, shares[i]))
        break;
    }
  }
  return out;
}

// p50, p95, p99 and max of the pool, with those that `n` samples cannot support left out.
template <class Each>
Percentiles pooled_percentiles(const Each& each, size_t n) {
  Percentiles out;
  const auto stats = order_statistics<3>(each, {0.50, 0.95, 0.99});
  if (!(stats.weight > 0))
    return out;
  out.n = n;
  if (n >= min_samples(0.50))
    out.p50 = stats.at[0];
  if (n >= min_samples(0.95))
    out.p95 = stats.at[1];
  if (n >= min_samples(0.99))
    out.p99 = stats.at[2];
  if (n >= 1)
    out.max = stats.max;
  return out;
}

}  // namespace goodput
