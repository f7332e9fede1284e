// See claim.h. Pure; any thread.
#include "metrics/claim.h"

#include <algorithm>
#include <vector>

#include "metrics/until.h"

namespace goodput {

std::string_view to_string(Claim claim) {
  switch (claim) {
    case Claim::kPass:
      return "pass";
    case Claim::kFail:
      return "fail";
    case Claim::kUndecided:
      break;
  }
  return "undecided";
}

Claim claim_at_most(std::span<const std::optional<double>> replicates, double limit, FigureScale scale) {
  std::vector<double> values;
  for (const auto& v : replicates) {
    if (!v)
      return Claim::kUndecided;
    values.push_back(*v);
  }
  if (values.size() < kMinReplicates)
    return Claim::kUndecided;
  const auto interval = replicate_interval(values, scale);
  if (interval->high <= limit)
    return Claim::kPass;
  return interval->low > limit ? Claim::kFail : Claim::kUndecided;
}

Claim claim_attained(std::span<const Count> replicates, double floor) {
  const auto with_requests = std::ranges::count_if(replicates, [](const Count& c) { return c.scheduled > 0; });
  if (static_cast<size_t>(with_requests) < kMinReplicates)
    return Claim::kUndecided;
  const Estimate e = attainment_estimate(replicates);
  if (*e.low >= floor)
    return Claim::kPass;
  return *e.high < floor ? Claim::kFail : Claim::kUndecided;
}

}  // namespace goodput
