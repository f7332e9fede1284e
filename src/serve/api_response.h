// What clients hear, byte by byte: OpenAI's shapes, vLLM's extensions, and our own object "goodput" beside `usage`. The
// chunk of a token is built from a prefix made once per request; strings are escaped by Boost.JSON.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "metrics/record.h"
#include "net/http_server.h"
#include "serve/api_request.h"

namespace goodput {

struct Usage {
  Tokens prompt{0}, completion{0}, cached{0};
};

// `{"error":{"message","type","param","code"}}` with its status; 503 carries Retry-After.
HttpReply error_reply(const ApiError&);
std::string error_event(const ApiError&);        // the same inside a stream
std::string json_string(std::string_view text);  // quoted and escaped; `text` is valid UTF-8

// "stop", "length", …; nullptr-like empty for kNone.
std::string_view finish_reason_text(FinishReason);

// The answers to one request.
class ApiResponse {
 public:
  // `created`: Unix seconds.
  ApiResponse(bool chat, RequestId, std::string_view model, int64_t created);

  // One SSE event with a piece of text. `first` adds the role (chat). `reason` kNone: null. `tokens`: ids to show, if
  // asked for. `running`: usage so far, if asked for.
  std::string chunk(std::string_view text, bool first, FinishReason reason,
                    std::optional<std::span<const TokenId>> tokens, const std::optional<Usage>& running) const;
  // The event after the last token: no choices, usage and times.
  std::string usage_chunk(const Usage&, const ServerTimes&) const;
  static std::string_view done() { return "data: [DONE]\n\n"; }
  // The whole answer of a request that does not stream.
  std::string whole(std::string_view text, FinishReason, std::optional<std::span<const TokenId>> tokens, const Usage&,
                    const ServerTimes&) const;

 private:
  bool chat_;
  std::string head_, whole_head_;  // `{"id":…,"model":…,`
};

}  // namespace goodput
