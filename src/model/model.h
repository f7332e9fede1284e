// A GGUF model with its vocabulary: safe C++ over libllama's loading, tokenizing and templates. Immutable once loaded;
// every member function may be called from several threads.
#pragma once

#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "workload/tokenizer.h"

struct llama_model;  // the executor needs the handle; nobody else looks inside

namespace goodput {

struct ModelInfo {
  std::string name, architecture, description, file_type;
  uint64_t parameters = 0, file_bytes = 0;
  Tokens context_length{0};
  int vocabulary = 0, layers = 0, embedding = 0, heads = 0, kv_heads = 0;
  bool has_chat_template = false, recurrent = false, hybrid = false, has_encoder = false;
  int sliding_window = 0;  // 0: none
};

struct ChatMessage {
  std::string role, content;
};

class Model final : public Tokenizer {
 public:
  // `vocabulary_only` loads no weights (for tokenizing). The error says whether the file is missing, not GGUF,
  // truncated, of an unknown architecture, or without a tokenizer; a file that libllama would abort on is refused.
  static Result<std::shared_ptr<const Model>> load(const std::filesystem::path&, bool vocabulary_only = false);
  ~Model() override;

  ModelInfo info() const;
  // Tokenizer: exact counts. `add_special` adds BOS/EOS as the model asks; `parse_special` lets "<|user|>" be one
  // token.
  std::vector<TokenId> tokenize(std::string_view text, bool add_special, bool parse_special) const override;
  std::string detokenize(std::span<const TokenId>) const override;
  std::string piece(TokenId) const override;  // may be a fraction of a UTF-8 character
  int vocabulary_size() const override;
  bool is_special(TokenId) const override;  // control, unknown or unused

  std::vector<TokenId> end_of_generation() const;
  // The model's own template (built-in list of libllama), or a plain "role: content" form if it has none.
  Result<std::string> apply_chat_template(std::span<const ChatMessage>, bool add_assistant) const;

  llama_model* handle() const;

 private:
  struct Impl;
  explicit Model(std::unique_ptr<Impl>);
  std::unique_ptr<Impl> impl_;
};

}  // namespace goodput
