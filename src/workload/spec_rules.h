// What makes a workload wrong, once for all its sources: validate() names the place, the TOML reader the line as well.
// Internal to the room.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "workload/spec.h"

namespace goodput {

struct SpecProblem {
  enum class Where { kWorkload, kTrace, kClass, kRamp, kStage } where = Where::kWorkload;
  size_t cls = 0;        // kClass, kStage: its index
  std::string_view key;  // as in TOML
  std::string message;
};

// The first problem, in the order of the TOML page; nullopt: none.
std::optional<SpecProblem> find_problem(const WorkloadSpec&);

}  // namespace goodput
