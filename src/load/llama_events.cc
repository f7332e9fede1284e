// llama-server's own /completion, and the timings that it adds to other protocols' answers.
#include "load/event_facts.h"
#include "load/json_object.h"

namespace goodput {

void read_llama_timings(const JsonObject& event, EventFacts& facts) {
  const auto timings = event.object("timings");
  if (!timings)
    return;
  const auto cached = timings->tokens("cache_n"), computed = timings->tokens("prompt_n");
  if (!facts.cached)
    facts.cached = cached;
  if (!facts.prompt && computed)
    facts.prompt = believable(int64_t{computed->count()} + cached.value_or(Tokens(0)).count());
  const auto predicted = timings->tokens("predicted_n");
  if (!facts.running && !facts.output && predicted && predicted->count() > 0)
    (facts.end ? facts.output : facts.running) = predicted;
  facts.durations.prefill = timings->duration("prompt_ms", milliseconds(1));
  facts.durations.decode = timings->duration("predicted_ms", milliseconds(1));
}

void read_llama_event(const JsonObject& event, EventFacts& facts) {
  facts.end = event.flag("stop").value_or(false);
  if (!event.text("content").empty())
    facts.channel = Channel::kContent;
  const auto predicted = event.tokens("tokens_predicted");
  if (const size_t ids = event.length("tokens"); facts.channel && ids > 0)
    facts.event_tokens = Tokens(ids);
  facts.running = predicted;
  facts.prompt = event.tokens("tokens_evaluated");
  if (facts.end) {
    facts.output = predicted;
    facts.finish = finish_reason(event.text("stop_type"));
    if (event.flag("stopped_limit").value_or(false))  // before `stop_type`
      facts.finish = FinishReason::kLength;
  }
  read_llama_timings(event, facts);
}

}  // namespace goodput
