// OpenAI's completions and chat, with the dialects seen in vLLM, SGLang, llama-server, TGI and gateways.
#include <algorithm>

#include "base/limits.h"
#include "load/event_facts.h"
#include "load/json_object.h"

namespace goodput {
namespace {

// On which channel a choice carries generated text; nullopt: it carries none (role, finish, progress).
std::optional<Channel> channel_of(const JsonObject& choice) {
  auto part = choice.object("delta");
  if (!part)
    part = choice.object("message");
  if (!part)
    part = choice;
  if (!part->text("content").empty() || !part->text("text").empty() || part->length("content") > 0)
    return Channel::kContent;
  if (!part->text("refusal").empty())
    return Channel::kRefusal;
  if (calls_a_tool(*part))
    return Channel::kToolCall;
  if (!part->text("reasoning_content").empty() || !part->text("reasoning").empty())
    return Channel::kReasoning;
  return std::nullopt;
}

std::optional<TimePoint> time_at(const JsonObject& o, std::string_view key) {
  const auto ns = o.number(key);
  const int64_t most = limits::kMaxStoredTime.count() / 2;  // a record holds it, whatever the other end's clock says
  return ns && *ns <= most && *ns >= -most ? std::optional(TimePoint(Nanos(*ns))) : std::nullopt;
}

ServerTimes server_times(const JsonObject& o) {
  const auto count = [&](std::string_view key) {
    return static_cast<int>(std::clamp<int64_t>(o.number(key).value_or(0), 0, INT32_MAX));
  };
  ServerTimes t;
  t.arrived = time_at(o, "arrived_ns");
  t.queued = time_at(o, "queued_ns");
  t.scheduled = time_at(o, "scheduled_ns");
  t.first_token = time_at(o, "first_token_ns");
  t.last_token = time_at(o, "last_token_ns");
  t.preempted_in_prefill = count("preempted_in_prefill");
  t.preempted_in_decode = count("preempted_in_decode");
  return t;
}

void read_usage(const JsonObject& usage, EventFacts& facts, bool has_choices) {
  facts.prompt = usage.tokens("prompt_tokens");
  const auto n = usage.tokens("completion_tokens");
  if (has_choices)
    facts.running = n;
  if (!has_choices || facts.finish)
    facts.output = n;
  if (const auto details = usage.object("completion_tokens_details"))
    facts.reasoning = details->tokens("reasoning_tokens").value_or(Tokens(0));
  if (const auto details = usage.object("prompt_tokens_details"))
    facts.cached = details->tokens("cached_tokens");
}

}  // namespace

bool calls_a_tool(const JsonObject& message) {
  bool called = false;
  // A name counts although its arguments are still empty; Ollama's arguments are an object.
  const auto says_something = [](const JsonObject& function) {
    return !function.text("name").empty() || !function.text("arguments").empty();
  };
  message.each("tool_calls", [&](const JsonObject& call) {
    const auto function = call.object("function");
    called = called || (function && says_something(*function));
  });
  const auto legacy = message.object("function_call");
  return called || (legacy && says_something(*legacy));
}

void read_openai_event(const JsonObject& event, EventFacts& facts) {
  event.each("choices", [&](const JsonObject& choice) {
    const auto carried = channel_of(choice);
    if (carried && (!facts.channel || *facts.channel == Channel::kReasoning))
      facts.channel = carried;
    if (const auto word = choice.text("finish_reason"); !word.empty()) {
      facts.finish = finish_reason(word);
      facts.end = true;
    }
    if (const size_t ids = choice.length("token_ids"); ids > 0 && carried)  // vLLM's return_token_ids
      facts.event_tokens = Tokens(ids);
  });
  const bool has_choices = event.length("choices") > 0;
  if (const auto usage = event.object("usage"))
    read_usage(*usage, facts, has_choices);
  read_llama_timings(event, facts);
  if (const auto times = event.object("goodput"))
    facts.server = server_times(*times);
}

}  // namespace goodput
