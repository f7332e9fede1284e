// A model as people name it on the command line.
#pragma once

#include <filesystem>
#include <string>

#include "base/result.h"

namespace goodput {

// "tiny", "small", "base": the synthetic model, made once and kept in the cache folder; anything else: a file, which
// must exist.
Result<std::filesystem::path> resolve_model(const std::string& name);

}  // namespace goodput
