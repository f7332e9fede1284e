// The protocols that the load generator speaks: one table, from which flags, requests, framing and the reading of
// answers derive. To add one: an enumerator of Api, a body (request_body.cc), a reader (…_events.cc), a row. Pure.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "load/load.h"
#include "load/receiver.h"

namespace goodput {

class JsonObject;
struct JsonBody;
struct EventFacts;

enum class KeyHeader : uint8_t { kBearer, kXApiKey };  // Authorization: Bearer …, or x-api-key: …

struct Protocol {
  Api api;
  std::string_view name;        // in flags, jobs and results
  std::string_view path;        // of a streamed answer, below the server's root
  std::string_view whole_path;  // of a whole one
  Framing framing;              // of a streamed answer whose Content-Type does not tell
  std::string_view ends_with;   // what says that an answer is complete, for messages
  KeyHeader key_header;
  std::string_view key_variable;  // of the environment, where a key is looked for
  bool names_model;               // requests say which model; else the server has one
  void (*write_body)(JsonBody&, const LoadOptions&, std::string_view model, const ScheduledRequest&);
  void (*read_event)(const JsonObject&, EventFacts&);
};

// In the order of Api.
std::span<const Protocol> protocols();
const Protocol& protocol_of(Api);
std::optional<Api> parse_api(std::string_view name);
// "completions, chat, …": for messages and help.
std::string protocol_names();

}  // namespace goodput
