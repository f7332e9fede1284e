#include "serve/api_response.h"

#include <iterator>

#include <fmt/format.h>
#include <boost/json/serialize.hpp>

namespace goodput {
namespace {

std::string or_null(std::string_view text) { return text.empty() ? "null" : json_string(text); }

std::string error_object(const ApiError& error) {
  return fmt::format(R"({{"error":{{"message":{},"type":{},"param":{},"code":{}}}}})", json_string(error.message),
                     json_string(error.type), or_null(error.param), or_null(error.code));
}

std::string usage_object(const Usage& u) {
  return fmt::format(
      R"({{"prompt_tokens":{},"completion_tokens":{},"total_tokens":{},"prompt_tokens_details":{{"cached_tokens":{}}}}})",
      u.prompt.count(), u.completion.count(), (u.prompt + u.completion).count(), u.cached.count());
}

// CLOCK_MONOTONIC nanoseconds (of the server's machine; of its scaled clock under --speed).
std::string times_object(const ServerTimes& t) {
  const auto ns = [](const std::optional<TimePoint>& at) {
    return at ? fmt::format("{}", at->since_zero().count()) : std::string("null");
  };
  return fmt::format(R"({{"arrived_ns":{},"queued_ns":{},"scheduled_ns":{},"first_token_ns":{},"last_token_ns":{},)"
                     R"("preempted_in_prefill":{},"preempted_in_decode":{}}})",
                     ns(t.arrived), ns(t.queued), ns(t.scheduled), ns(t.first_token), ns(t.last_token),
                     t.preempted_in_prefill, t.preempted_in_decode);
}

void append_reason(std::string& to, FinishReason reason) {
  const std::string_view text = finish_reason_text(reason);
  if (text.empty()) {
    to += R"(,"logprobs":null,"finish_reason":null)";
  } else {
    to += R"(,"logprobs":null,"finish_reason":")";
    to += text;
    to += '"';
  }
}

void append_tokens(std::string& to, std::optional<std::span<const TokenId>> tokens) {
  if (tokens)
    fmt::format_to(std::back_inserter(to), R"(,"token_ids":[{}])", fmt::join(*tokens, ","));
}

}  // namespace

std::string json_string(std::string_view text) { return boost::json::serialize(boost::json::string_view(text)); }

std::string_view finish_reason_text(FinishReason reason) {
  switch (reason) {
    case FinishReason::kStop:
      return "stop";
    case FinishReason::kLength:
      return "length";
    case FinishReason::kToolCalls:
      return "tool_calls";
    case FinishReason::kAbort:
      return "abort";
    case FinishReason::kError:
      return "error";
    case FinishReason::kNone:
      break;
  }
  return {};
}

HttpReply error_reply(const ApiError& error) {
  HttpReply reply{error.status, "application/json", error_object(error), {}};
  if (error.status == 503)
    reply.headers.emplace_back("Retry-After", "1");
  return reply;
}

std::string error_event(const ApiError& error) { return "data: " + error_object(error) + "\n\n"; }

ApiResponse::ApiResponse(bool chat, RequestId id, std::string_view model, int64_t created) : chat_(chat) {
  const auto head = [&](std::string_view object) {
    return fmt::format(R"({{"id":"{}-{}","object":"{}","created":{},"model":{},)", chat ? "chatcmpl" : "cmpl",
                       id.value(), object, created, json_string(model));
  };
  head_ = "data: " + head(chat ? "chat.completion.chunk" : "text_completion");
  whole_head_ = head(chat ? "chat.completion" : "text_completion");
}

std::string ApiResponse::chunk(std::string_view text, bool first, FinishReason reason,
                               std::optional<std::span<const TokenId>> tokens,
                               const std::optional<Usage>& running) const {
  std::string event;
  event.reserve(head_.size() + text.size() + 160);
  event += head_;
  event += R"("choices":[{"index":0,)";
  if (chat_) {
    event += first ? R"("delta":{"role":"assistant","content":)" : R"("delta":{"content":)";
    event += json_string(text);
    event += '}';
  } else {
    event += R"("text":)";
    event += json_string(text);
  }
  append_reason(event, reason);
  append_tokens(event, tokens);
  event += "}]";
  if (running) {
    event += R"(,"usage":)";
    event += usage_object(*running);
  }
  event += "}\n\n";
  return event;
}

std::string ApiResponse::usage_chunk(const Usage& usage, const ServerTimes& times) const {
  return fmt::format("{}\"choices\":[],\"usage\":{},\"goodput\":{}}}\n\n", head_, usage_object(usage),
                     times_object(times));
}

std::string ApiResponse::whole(std::string_view text, FinishReason reason,
                               std::optional<std::span<const TokenId>> tokens, const Usage& usage,
                               const ServerTimes& times) const {
  std::string body = whole_head_ + R"("choices":[{"index":0,)";
  body += chat_ ? R"("message":{"role":"assistant","content":)" + json_string(text) + "}"
                : R"("text":)" + json_string(text);
  append_reason(body, reason);
  append_tokens(body, tokens);
  body += fmt::format("}}],\"usage\":{},\"goodput\":{}}}", usage_object(usage), times_object(times));
  return body;
}

}  // namespace goodput
