#include "map/frontier.h"

#include <algorithm>
#include <tuple>

namespace goodput {
namespace {

// An absent percentile is no better than any: it cannot carry a setting onto the frontier.
double latency(const std::optional<double>& ms) { return ms.value_or(1e300); }

bool beats(const Operating& a, const Operating& b) {
  const bool no_worse = a.goodput_rps >= b.goodput_rps &&
                        latency(a.interactive_ttft_p95_ms) <= latency(b.interactive_ttft_p95_ms) &&
                        latency(a.interactive_gap_p95_ms) <= latency(b.interactive_gap_p95_ms);
  const bool better = a.goodput_rps > b.goodput_rps ||
                      latency(a.interactive_ttft_p95_ms) < latency(b.interactive_ttft_p95_ms) ||
                      latency(a.interactive_gap_p95_ms) < latency(b.interactive_gap_p95_ms);
  return no_worse && better;
}

double goodput_of(const Capacity& c) { return c.best() ? c.best()->goodput_rps : -1; }

}  // namespace

void sort_by_goodput(std::vector<Capacity>& all) { std::ranges::stable_sort(all, std::greater{}, goodput_of); }

std::vector<Capacity> frontier_of(const std::vector<Capacity>& all) {
  std::vector<Capacity> front;
  for (const Capacity& candidate : all) {
    if (!candidate.predicted && !candidate.measured)
      continue;
    // Settings are compared on the same evidence: the simulator covers them all, measurements only a few.
    const auto& mine = candidate.predicted ? candidate.predicted : candidate.measured;
    const bool beaten = std::ranges::any_of(all, [&](const Capacity& other) {
      const auto& theirs = candidate.predicted ? other.predicted : other.measured;
      return &other != &candidate && theirs && beats(*theirs, *mine);
    });
    if (!beaten)
      front.push_back(candidate);
  }
  sort_by_goodput(front);
  return front;
}

const Capacity* largest_batch(const std::vector<Capacity>& all) {
  const auto key = [](const Capacity& c) {
    const Settings& s = c.settings;
    return std::tuple(s.batching == Batching::kContinuous, s.max_num_seqs, s.max_num_batched_tokens,
                      s.scheduling_policy == SchedulingPolicy::kFcfs);
  };
  const auto it = std::ranges::max_element(all, {}, key);
  return it == all.end() ? nullptr : &*it;
}

const Capacity* best_offline(const std::vector<Capacity>& all) {
  const auto it =
      std::ranges::max_element(all, {}, [](const Capacity& c) { return c.offline_tokens_per_s.value_or(-1); });
  return it == all.end() || !it->offline_tokens_per_s ? nullptr : &*it;
}

}  // namespace goodput
