#include "cli/cpus.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/process.h"
#include "base/text.h"

namespace goodput {

Result<std::vector<int>> parse_cpus(const std::string& text, std::string_view flag) {
  std::vector<int> cpus;
  if (text.empty())
    return cpus;
  const auto allowed = allowed_cpus();
  for (const auto part : split(text, ',')) {
    const auto cpu = parse_int(trim(part));
    if (!cpu || std::ranges::find(allowed, *cpu) == allowed.end())
      return fail(
          ErrorCode::kUsage,
          fmt::format("'{}' is not a processor this process may use; it may use {}", part, fmt::join(allowed, ",")),
          std::string(flag));
    cpus.push_back(static_cast<int>(*cpu));
  }
  return cpus;
}

}  // namespace goodput
