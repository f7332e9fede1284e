// Errors and ends in the words of many servers: what they mean for a record. Pure.
#include <algorithm>

#include "load/event_facts.h"
#include "load/json_object.h"

namespace goodput {
namespace {

constexpr size_t kLongestMessage = 300;

// Whether an error object says that the request was never admitted: the server is full, or refused it on sight.
bool says_not_admitted(std::string_view type, std::string_view message, std::optional<int64_t> code) {
  if (code == 429 || code == 503 || code == 529)
    return true;
  static constexpr std::string_view kTypes[] = {"validation",  "overloaded",          "overloaded_error",
                                                "queue_full",  "rate_limit_exceeded", "rate_limit_error",
                                                "server_busy", "unavailable_error",   "service_unavailable"};
  if (std::find(std::begin(kTypes), std::end(kTypes), type) != std::end(kTypes))
    return true;
  std::string low(message.substr(0, 256));
  for (char& c : low)
    c = c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  static constexpr std::string_view kPhrases[] = {"queue is full", "queue full",   "overloaded", "too many requests",
                                                  "rate limit",    "not admitted", "server busy"};
  return std::any_of(std::begin(kPhrases), std::end(kPhrases),
                     [&](std::string_view p) { return low.find(p) != low.npos; });
}

EventError make(std::string_view type, std::string_view text, const JsonObject& details) {
  EventError out;
  out.not_admitted = says_not_admitted(type, text, details.number("code"));
  out.message = text.substr(0, kLongestMessage);
  if (out.message.empty())
    out.message = type.empty() ? "an error object without a message" : type.substr(0, 100);
  // A prompt beyond the context: the numbers that say what to change.
  const auto prompt = details.number("n_prompt_tokens"), context = details.number("n_ctx");
  if (prompt && context) {
    out.message += " (prompt " + std::to_string(*prompt) + " tokens, context " + std::to_string(*context) + ")";
  }
  return out;
}

}  // namespace

EventError error_of(const JsonObject& details) {
  std::string_view type = details.text("type");
  if (type.empty() || type == "error")
    type = details.text("code");  // Responses put the kind there
  return make(type, details.text("message"), details);
}

std::optional<EventError> error_in(const JsonObject& event) {
  if (event.has("error")) {
    if (const auto details = event.object("error"))
      return error_of(*details);
    return make(event.text("error_type"), event.text("error"), event);
  }
  if (event.text("object") == "error" || event.text("type") == "error")
    return error_of(event);
  return std::nullopt;
}

FinishReason finish_reason(std::string_view word) {
  struct Word {
    std::string_view word;
    FinishReason reason;
  };
  static constexpr Word kWords[] = {
      {"length", FinishReason::kLength},                         // OpenAI, TGI, Ollama
      {"max_tokens", FinishReason::kLength},                     // Anthropic
      {"max_output_tokens", FinishReason::kLength},              // Responses
      {"model_context_window_exceeded", FinishReason::kLength},  // Anthropic
      {"limit", FinishReason::kLength},                          // llama-server
      {"tool_calls", FinishReason::kToolCalls},
      {"function_call", FinishReason::kToolCalls},
      {"tool_use", FinishReason::kToolCalls},  // Anthropic
      {"abort", FinishReason::kAbort},
      {"cancelled", FinishReason::kAbort},
      {"error", FinishReason::kError},
  };
  for (const Word& w : kWords)
    if (w.word == word)
      return w.reason;
  return FinishReason::kStop;
}

}  // namespace goodput
