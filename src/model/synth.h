// Structurally valid GGUF models with random weights and a real tokenizer: no download, any size, the same bytes for
// the same seed on every machine.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "base/result.h"

namespace goodput {

enum class SynthSize { kTiny, kSmall, kBase };  // ≈ 1M, 20M, 125M parameters
enum class SynthType { kQ8_0, kQ4_0 };

struct SynthOptions {
  SynthSize size = SynthSize::kTiny;
  SynthType type = SynthType::kQ8_0;
  uint64_t seed = 1;
  int layers = 0;           // 0: the size's own. A shorter model of the same seed is a prefix of the longer one
  int tail_from = -1;       // layers from here on are damped (−1: none), so that a prefix can draft for the whole
  double tail_scale = 1.0;  // in (0, 1]: factor on their contribution to the residual stream
  std::filesystem::path vocabulary;  // a vocab-only GGUF; empty: the one built in
};

// Writes atomically: `path` is complete or absent.
Result<void> write_synthetic_model(const std::filesystem::path& path, const SynthOptions&);
// The file for these options in the cache folder, made if it is not there yet.
Result<std::filesystem::path> cached_synthetic_model(const SynthOptions&);
// "tiny", "small", "base" and "q8_0", "q4_0"; errors name the choices.
Result<SynthSize> parse_synth_size(std::string_view);
Result<SynthType> parse_synth_type(std::string_view);

}  // namespace goodput
