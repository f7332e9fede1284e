// Text Generation Inference's /generate_stream and /generate: one token an event, the last one with the whole text.
#include "load/event_facts.h"
#include "load/json_object.h"

namespace goodput {

void read_tgi_event(const JsonObject& event, EventFacts& facts) {
  if (const auto token = event.object("token")) {
    // A special token (the end of the text) is counted and has a text, but that text is not part of the answer.
    if (!token->flag("special").value_or(false) && !token->text("text").empty()) {
      facts.channel = Channel::kContent;
      facts.event_tokens = Tokens(1);
    }
  }
  if (!event.has("generated_text"))
    return;
  facts.end = true;
  if (!event.object("token") && !event.text("generated_text").empty())
    facts.channel = Channel::kContent;  // a whole answer
  const auto details = event.object("details");
  if (!details)
    return;
  if (const auto word = details->text("finish_reason"); !word.empty())
    facts.finish = finish_reason(word);
  facts.output = details->tokens("generated_tokens");
  facts.prompt = details->tokens("input_length");
  if (const size_t n = details->length("prefill"); !facts.prompt && n > 0)
    facts.prompt = Tokens(n);  // with decoder_input_details, one entry a prompt token
}

}  // namespace goodput
