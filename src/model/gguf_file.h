// Looks into a GGUF file before libllama does. libllama maps the file and trusts much of it, so truncated, foreign and
// hostile files are told apart here, from the metadata alone, with an error that says which.
#pragma once

#include <filesystem>

#include "base/result.h"
#include "model/model.h"

namespace goodput {

// The facts of a file that is complete and has a tokenizer; `need_weights` refuses a vocabulary-only file. Fields that
// only a loaded model knows (recurrent, hybrid, has_encoder) are left at their defaults.
// kNotFound: no such file. kUsage: not a usable GGUF. kIo: unreadable. The context is the path.
Result<ModelInfo> inspect_gguf(const std::filesystem::path&, bool need_weights);

}  // namespace goodput
