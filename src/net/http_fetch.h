// One small HTTP exchange, blocking, with a deadline: what a run asks a server before and after it measures.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "base/units.h"
#include "net/route.h"

namespace goodput {

struct HttpAnswer {
  int status = 0;
  std::string server;  // the Server header
  std::string content_type;
  std::string body;  // up to limits::kMaxErrorBody
};

// Sends `request` (a whole HTTP/1.1 request) and reads the answer. kUnreachable says what was expected and what was
// found: refused, silent, closed, TLS, or the first bytes of what is not HTTP.
Result<HttpAnswer> http_fetch(const Route&, std::string_view request, Nanos limit);

// "it looks like TLS: use https" or "the answer began with \"SSH-2.0-…\"": for messages about a peer that is not HTTP.
std::string describe_foreign_bytes(std::string_view first_bytes);

}  // namespace goodput
