// The JSON of a request, one function per protocol. Boost.JSON stays in request_body.cc. Pure.
#pragma once

#include <string>
#include <string_view>

#include "load/load.h"

namespace goodput {

struct JsonBody;  // what is being written

void write_completions_body(JsonBody&, const LoadOptions&, std::string_view model, const ScheduledRequest&);
void write_chat_body(JsonBody&, const LoadOptions&, std::string_view model, const ScheduledRequest&);
void write_responses_body(JsonBody&, const LoadOptions&, std::string_view model, const ScheduledRequest&);
void write_ollama_chat_body(JsonBody&, const LoadOptions&, std::string_view model, const ScheduledRequest&);
void write_ollama_generate_body(JsonBody&, const LoadOptions&, std::string_view model, const ScheduledRequest&);
void write_tgi_body(JsonBody&, const LoadOptions&, std::string_view model, const ScheduledRequest&);
void write_anthropic_body(JsonBody&, const LoadOptions&, std::string_view model, const ScheduledRequest&);
void write_llama_body(JsonBody&, const LoadOptions&, std::string_view model, const ScheduledRequest&);

// The body of a request of `options`, with its extra body merged over it (RFC 7396: members replace, objects merge,
// null removes).
std::string request_body(const LoadOptions& options, std::string_view model, const ScheduledRequest&);

// kUsage unless it is empty or a JSON object.
Result<void> check_extra_body(std::string_view text);

}  // namespace goodput
