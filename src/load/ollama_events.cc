// Ollama's /api/chat and /api/generate: one JSON object a line, the last one (`done`) with counts and durations.
// Durations are nanoseconds. A prompt that was cached is counted in three ways, by age of the server: not at all (the
// count is missing or 0), by what was computed, or whole with the cached part beside it (case 28).
#include "load/event_facts.h"
#include "load/json_object.h"

namespace goodput {
namespace {

constexpr Nanos kNanosecond{1};

// The text of a chat message, or of the event itself (generate).
std::optional<Channel> channel_of(const JsonObject& part, std::string_view text_key) {
  if (!part.text(text_key).empty())
    return Channel::kContent;
  if (calls_a_tool(part))
    return Channel::kToolCall;
  if (!part.text("thinking").empty())
    return Channel::kReasoning;
  return std::nullopt;
}

std::optional<Tokens> above_zero(std::optional<Tokens> n) { return n && n->count() > 0 ? n : std::nullopt; }

}  // namespace

void read_ollama_event(const JsonObject& event, EventFacts& facts) {
  const auto message = event.object("message");
  facts.channel = message ? channel_of(*message, "content") : channel_of(event, "response");
  if (!event.flag("done").value_or(false))
    return;
  facts.end = true;
  if (const auto word = event.text("done_reason"); !word.empty())
    facts.finish = finish_reason(word);
  facts.output = above_zero(event.tokens("eval_count"));
  facts.prompt = above_zero(event.tokens("prompt_eval_count"));  // no prompt has 0 tokens: 0 says "cached"
  facts.cached = event.tokens("prompt_eval_cached_count");
  facts.prompt_may_omit_cached = !facts.cached;
  facts.durations.load = event.duration("load_duration", kNanosecond);
  facts.durations.prefill = event.duration("prompt_eval_duration", kNanosecond);
  facts.durations.decode = event.duration("eval_duration", kNanosecond);
}

}  // namespace goodput
