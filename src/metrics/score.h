// The score of a point: who was scheduled, who was good. Shared by the full summary and the light path of a search, so
// that both say the same. Private to this room; pure.
#pragma once

#include <span>
#include <vector>

#include "metrics/summary.h"

namespace goodput {

struct ClassScore {
  uint64_t scheduled = 0, good = 0, unmeasurable = 0, not_applicable = 0;
  int64_t good_tokens = 0;  // output tokens of good requests

  ClassScore& operator+=(const ClassScore&);
};

// One entry per class and a last one for records that name no class of the workload: those count as scheduled, because
// nothing may leave the denominator, and never as good.
std::vector<ClassScore> score(std::span<const RequestRecord>, std::span<const ClassRule>, Window, bool strict);
ClassScore total(std::span<const ClassScore>);
// Good requests per second of the classes with a target on tokens' times.
double interactive_goodput(std::span<const ClassScore>, std::span<const ClassRule>, Window);
// count ÷ window; 0 for an empty window.
double per_second(double count, Window);

}  // namespace goodput
