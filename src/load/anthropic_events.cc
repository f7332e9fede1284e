// Anthropic's Messages: a message starts, its content blocks start, grow and stop, and the message stops.
#include "load/event_facts.h"
#include "load/json_object.h"

namespace goodput {
namespace {

// Input tokens are those that were neither read from nor written to the cache: the prompt is the sum.
void read_usage(const JsonObject& usage, EventFacts& facts) {
  const auto fresh = usage.tokens("input_tokens");
  const auto read = usage.tokens("cache_read_input_tokens"), written = usage.tokens("cache_creation_input_tokens");
  if (fresh) {
    facts.prompt =
        believable(int64_t{fresh->count()} + read.value_or(Tokens(0)).count() + written.value_or(Tokens(0)).count());
  }
  facts.cached = read;
}

std::optional<Channel> channel_of_block(const JsonObject& block) {
  const std::string_view type = block.text("type");
  if (type == "text" && !block.text("text").empty())
    return Channel::kContent;
  if (type == "thinking" && !block.text("thinking").empty())
    return Channel::kReasoning;
  if (type.ends_with("tool_use") && !block.text("name").empty())
    return Channel::kToolCall;  // the name is generated, and comes only here
  return std::nullopt;
}

std::optional<Channel> channel_of_delta(const JsonObject& delta) {
  const std::string_view type = delta.text("type");
  if (type == "text_delta" && !delta.text("text").empty())
    return Channel::kContent;
  if (type == "thinking_delta" && !delta.text("thinking").empty())
    return Channel::kReasoning;
  if (type == "input_json_delta" && !delta.text("partial_json").empty())
    return Channel::kToolCall;
  return std::nullopt;
}

void read_stop(const JsonObject& holder, EventFacts& facts) {
  if (const auto word = holder.text("stop_reason"); !word.empty())
    facts.finish = finish_reason(word);
}

// The answer of a request that did not ask for a stream.
void read_message(const JsonObject& message, EventFacts& facts) {
  facts.end = true;
  read_stop(message, facts);
  message.each("content", [&](const JsonObject& block) {
    const auto carried = channel_of_block(block);
    if (carried && (!facts.channel || *facts.channel == Channel::kReasoning))
      facts.channel = carried;
    facts.hides_tokens = facts.hides_tokens || block.text("type") == "redacted_thinking";
  });
  if (const auto usage = message.object("usage")) {
    read_usage(*usage, facts);
    facts.output = usage->tokens("output_tokens");
  }
}

}  // namespace

void read_anthropic_event(const JsonObject& event, EventFacts& facts) {
  const std::string_view type = event.text("type");
  if (type == "content_block_delta") {
    if (const auto delta = event.object("delta"))
      facts.channel = channel_of_delta(*delta);
  } else if (type == "content_block_start") {
    if (const auto block = event.object("content_block")) {
      facts.channel = channel_of_block(*block);
      facts.hides_tokens = block->text("type") == "redacted_thinking";
    }
  } else if (type == "message_start") {
    // Its output_tokens count what was prepared, not what the answer will have.
    const auto message = event.object("message");
    if (const auto usage = message ? message->object("usage") : std::nullopt)
      read_usage(*usage, facts);
  } else if (type == "message_delta") {
    if (const auto delta = event.object("delta"))
      read_stop(*delta, facts);
    if (const auto usage = event.object("usage")) {
      read_usage(*usage, facts);
      facts.output = usage->tokens("output_tokens");
    }
  } else if (type == "message_stop") {
    facts.end = true;
  } else if (type == "message") {
    read_message(event, facts);
  }
}

}  // namespace goodput
