#include "cli/models.h"

#include "model/model.h"
#include "model/synth.h"

namespace goodput {

Result<std::filesystem::path> resolve_model(const std::string& name) {
  if (const auto size = parse_synth_size(name))
    return cached_synthetic_model({.size = *size});
  std::error_code ignored;
  if (!std::filesystem::exists(name, ignored))
    return fail(ErrorCode::kNotFound, "no such file; give a GGUF file, or one of tiny, small, base", name);
  TRY(Model::load(name, true));  // what is wrong with it is said now, not by a process started later
  return std::filesystem::absolute(name);
}

}  // namespace goodput
