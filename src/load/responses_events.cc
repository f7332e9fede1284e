// OpenAI's Responses: typed events, of which the deltas carry text and the last one the whole response again.
#include "load/event_facts.h"
#include "load/json_object.h"

namespace goodput {
namespace {

struct Delta {
  std::string_view type;
  Channel channel;
};
constexpr Delta kDeltas[] = {
    {"response.output_text.delta", Channel::kContent},
    {"response.reasoning_text.delta", Channel::kReasoning},
    {"response.reasoning_summary_text.delta", Channel::kReasoning},
    {"response.refusal.delta", Channel::kRefusal},
    {"response.function_call_arguments.delta", Channel::kToolCall},
    {"response.custom_tool_call_input.delta", Channel::kToolCall},
    {"response.mcp_call_arguments.delta", Channel::kToolCall},
    {"response.code_interpreter_call_code.delta", Channel::kToolCall},
};

void read_usage(const JsonObject& usage, EventFacts& facts) {
  facts.prompt = usage.tokens("input_tokens");
  facts.output = usage.tokens("output_tokens");
  if (const auto details = usage.object("input_tokens_details"))
    facts.cached = details->tokens("cached_tokens");
  if (const auto details = usage.object("output_tokens_details"))
    facts.reasoning = details->tokens("reasoning_tokens").value_or(Tokens(0));
}

// The response itself: at the end of a stream, or the whole answer.
void read_response(const JsonObject& response, EventFacts& facts) {
  const std::string_view status = response.text("status");
  if (status == "in_progress" || status == "queued")
    return;
  facts.end = true;
  facts.finish = FinishReason::kStop;
  response.each("output", [&](const JsonObject& item) {
    if (item.text("type").ends_with("_call"))
      facts.finish = FinishReason::kToolCalls;
  });
  if (const auto details = response.object("incomplete_details"); details && status == "incomplete")
    facts.finish = finish_reason(details->text("reason"));
  if (status == "cancelled")
    facts.finish = FinishReason::kAbort;
  if (const auto usage = response.object("usage"))
    read_usage(*usage, facts);
  if (const auto error = response.object("error")) {
    facts.error = error_of(*error);
  } else if (status == "failed") {
    facts.error = EventError{"the response failed, without a reason", false};
  }
}

}  // namespace

void read_responses_event(const JsonObject& event, EventFacts& facts) {
  const std::string_view type = event.text("type");
  for (const Delta& d : kDeltas) {
    if (d.type == type && !event.text("delta").empty())
      facts.channel = d.channel;
  }
  // A summary is text, but not the tokens that `usage` counts as reasoning.
  facts.hides_tokens = facts.channel && type == "response.reasoning_summary_text.delta";
  if (type == "response.output_item.added") {
    // The name of a function is generated, and comes only here.
    const auto item = event.object("item");
    if (item && item->text("type").ends_with("_call") && !item->text("name").empty())
      facts.channel = Channel::kToolCall;
  }
  if (type == "response.completed" || type == "response.incomplete" || type == "response.failed") {
    if (const auto response = event.object("response"))
      read_response(*response, facts);
    facts.end = true;
    if (type == "response.failed" && !facts.error)
      facts.error = EventError{"the response failed, without a reason", false};
  } else if (event.text("object") == "response") {
    read_response(event, facts);
  }
  read_llama_timings(event, facts);
}

}  // namespace goodput
