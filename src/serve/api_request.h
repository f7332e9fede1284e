// What a client may ask of /v1/completions and /v1/chat/completions, as a plain value: raw JSON stops here. What we do
// not do (several choices, echo, log probabilities, tools, …) is refused by name instead of being ignored, because a
// client that relies on it would be wrong without knowing.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tl/expected.hpp>

#include "base/units.h"
#include "engine/executor.h"
#include "model/model.h"

namespace goodput {

// An answer that says no, in OpenAI's shape.
struct ApiError {
  int status = 400;
  std::string message;
  std::string type = "invalid_request_error";
  std::string param;  // the offending field; empty: null
  std::string code;   // empty: null
};

struct ApiRequest {
  bool chat = false;
  std::string model;                   // empty: not said
  std::string prompt;                  // completions: the text, unless …
  std::vector<TokenId> prompt_tokens;  // … it came as token ids
  std::vector<ChatMessage> messages;   // chat
  std::optional<int> max_tokens;       // >= 1; absent: 16 for completions, what fits for chat (OpenAI's defaults)
  bool stream = false;
  bool include_usage = false;
  bool continuous_usage = false;  // vLLM: usage so far in every chunk
  bool return_token_ids = false;  // vLLM: the token ids of every chunk
  std::vector<std::string> stop;
  int priority = 0;
  uint64_t cache_salt = 0;
  std::optional<uint64_t> seed;
  SamplingParams sampling{1.0f, 1.0f, 0, 0, false};  // OpenAI's defaults; `seed` is set by the server if absent above
};

tl::expected<ApiRequest, ApiError> parse_api_request(std::string_view body, bool chat);

}  // namespace goodput
