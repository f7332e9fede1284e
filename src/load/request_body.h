// The JSON of a request, one function per protocol. Private to the room: Boost.JSON stays out of its other headers.
#pragma once

#include <boost/json.hpp>

#include <string>
#include <string_view>

#include "load/load.h"

namespace goodput {

struct JsonBody {
  boost::json::object json;
};

void write_completions_body(JsonBody&, const LoadOptions&, std::string_view model, const ScheduledRequest&);
void write_chat_body(JsonBody&, const LoadOptions&, std::string_view model, const ScheduledRequest&);
void write_responses_body(JsonBody&, const LoadOptions&, std::string_view model, const ScheduledRequest&);
void write_ollama_chat_body(JsonBody&, const LoadOptions&, std::string_view model, const ScheduledRequest&);
void write_ollama_generate_body(JsonBody&, const LoadOptions&, std::string_view model, const ScheduledRequest&);
void write_tgi_body(JsonBody&, const LoadOptions&, std::string_view model, const ScheduledRequest&);
void write_anthropic_body(JsonBody&, const LoadOptions&, std::string_view model, const ScheduledRequest&);
void write_llama_body(JsonBody&, const LoadOptions&, std::string_view model, const ScheduledRequest&);

// The body of a request of `options`, with its extra body merged over it.
std::string request_body(const LoadOptions& options, std::string_view model, const ScheduledRequest&);

// LoadOptions::extra_body as an object; kUsage where it is none.
Result<boost::json::object> parse_extra_body(std::string_view text);

// RFC 7396: members replace, objects merge, null removes.
void merge_patch(boost::json::object& target, const boost::json::object& patch);

}  // namespace goodput
