// The bytes of requests, made before the run: while it runs, sending is one system call.
#pragma once

#include <string>
#include <string_view>

#include "load/load.h"
#include "net/url.h"

namespace goodput {

// "/v1/completions" below the base URL, which may itself end in /v1 (or /api).
std::string api_path(const Url& base, std::string_view path);

// A whole HTTP/1.1 POST: head and JSON body for one scheduled request.
std::string request_bytes(const Url& base, const LoadOptions&, std::string_view model, const ScheduledRequest&);
// A GET with the options' headers and key.
std::string get_bytes(const Url& base, const LoadOptions&, std::string_view path);

// Headers that would break the framing and an extra body that is no JSON object are refused here, before a byte is
// sent: kUsage.
Result<void> check_options(const LoadOptions&);

}  // namespace goodput
