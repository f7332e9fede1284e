// "p95 of TTFT is at most 300 ms": a claim about a figure rests on at least three independent replicates and is pass,
// fail or undecided. Too few replicates, or an interval on both sides of the limit, leave it undecided; nothing is
// invalid for that. Pure; any thread.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "metrics/stats.h"

namespace goodput {

enum class Claim : uint8_t { kPass, kFail, kUndecided };
std::string_view to_string(Claim);

// The figure of each replicate is claimed to be at most `limit`; nullopt: absent there (too few requests), which leaves
// the claim undecided.
Claim claim_at_most(std::span<const std::optional<double>> replicates, double limit, FigureScale);
// An attainment over replicates is claimed to be at least `floor`.
Claim claim_attained(std::span<const Count> replicates, double floor);

}  // namespace goodput
