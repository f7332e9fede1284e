// One accepted request, from the engine's events to the client's bytes: pieces become whole characters, stop strings
// are found across token borders, and every token gives one event, even where its text is held back. So the number of
// events is the number of tokens, as clients of vLLM expect who count events; with `continuous_usage_stats` or
// `return_token_ids` they are told.
//
// Lives on the HTTP loop's thread, except what is marked as shared.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "engine/request_times.h"
#include "net/http_server.h"
#include "serve/api_request.h"
#include "serve/api_response.h"
#include "serve/server_metrics.h"
#include "serve/stop_strings.h"
#include "serve/utf8.h"

namespace goodput {

class Generation {
 public:
  Generation(ApiRequest request, HttpResponder responder);

  // Shared: whoever of tokenizer and loop comes second sees the other's mark, so that a client that vanished between
  // acceptance and submission is not forgotten.
  std::atomic<bool> gone{false};       // the client went away
  std::atomic<uint64_t> submitted{0};  // the engine's id; 0: not yet

  // Set by the tokenizer's thread before submission, constant after.
  ApiRequest request;
  HttpResponder responder;
  Tokens prompt_tokens{0};
  Tokens max_new{0};
  std::vector<TokenId> end_tokens;  // sampled ones end the text; empty under ignore_eos
  ServerTimes times;                // `arrived` and `queued`; the rest on the loop's thread
  int64_t created = 0;              // Unix seconds

  // Sends the head of a stream, once: on acceptance, so that a client in the queue knows that it was accepted.
  void start();
  // The engine's event. True: a stop string is complete, and the engine must be told to finish this request.
  [[nodiscard]] bool update(const RequestUpdate&, const Tokenizer&, std::string_view model_name, ServerMetrics&);

 private:
  bool token(const RequestUpdate&, const Tokenizer&, ServerMetrics&);
  void ended(const RequestUpdate&, ServerMetrics&);
  void begin(RequestId, std::string_view model_name);
  void deliver(std::string_view text, FinishReason, std::span<const TokenId> tokens);
  void complete(std::string_view last_text, FinishReason, std::span<const TokenId> tokens);
  void fail(const ApiError&, ServerMetrics&);
  Usage usage() const { return {prompt_tokens, generated_, cached_}; }

  std::optional<ApiResponse> response_;  // once the id is known
  Utf8Decoder decoder_;
  StopMatcher stops_;
  std::string text_;             // the whole text, where the answer is not streamed
  std::vector<TokenId> tokens_;  // the same, if asked for
  Tokens generated_{0}, cached_{0};
  bool started_ = false;
  bool delivered_ = false;  // at least one event was sent
  bool complete_ = false;   // the client has its answer; what the engine still says is only counted
};

}  // namespace goodput
