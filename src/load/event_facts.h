// What one event of an answer says, whatever the protocol. Each protocol's reader (…_events.cc) fills in what its JSON
// tells and leaves the rest absent; record_builder.h turns facts and stamps into the record. Plain values; pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "metrics/record.h"

namespace goodput {

class JsonObject;

// An error object, in an answer of any status.
struct EventError {
  std::string message;
  bool not_admitted = false;  // it says that the request never got in: queue full, overloaded, refused on sight
};

// How long the server says it took; absent: it does not say.
struct ServerDurations {
  std::optional<Nanos> load, prefill, decode;
};

struct EventFacts {
  // The event carries generated text on this channel; absent: it is no token (role, usage, progress, finish).
  std::optional<Channel> channel;

  // Tokens: of this event (token ids), of the answer so far with this event (running usage), of the whole answer.
  std::optional<Tokens> event_tokens, running, output;
  std::optional<Tokens> prompt, cached;
  std::optional<Tokens> reasoning;      // inside `output`
  bool hides_tokens = false;            // some of `output` come without their text, nobody says how many
  bool prompt_may_omit_cached = false;  // the server may count only what it computed (Ollama before mid-2026)

  std::optional<FinishReason> finish;
  bool end = false;  // the protocol's mark that the answer is complete
  std::optional<EventError> error;
  std::optional<ServerTimes> server;  // of our own server, on this machine's clock
  ServerDurations durations;
};

// The error object of an event or body, in any of the shapes in use: {"error": {…}}, {"error": "…"}, {"object":
// "error", …}, {"type": "error", …}.
std::optional<EventError> error_in(const JsonObject&);
// The same for the members of such an object themselves.
EventError error_of(const JsonObject& details);

// Any protocol's word for why an answer ended; kStop for words that are not known.
FinishReason finish_reason(std::string_view word);

// OpenAI's tool calls, which Ollama has too: a name or arguments in "tool_calls".
bool calls_a_tool(const JsonObject& message);

// The readers.
void read_openai_event(const JsonObject&, EventFacts&);  // completions and chat
void read_responses_event(const JsonObject&, EventFacts&);
void read_ollama_event(const JsonObject&, EventFacts&);  // chat and generate
void read_tgi_event(const JsonObject&, EventFacts&);
void read_anthropic_event(const JsonObject&, EventFacts&);
void read_llama_event(const JsonObject&, EventFacts&);

// llama-server's "timings", which it adds to every protocol but Anthropic's.
void read_llama_timings(const JsonObject& event, EventFacts&);

}  // namespace goodput
