#include "load/request_bytes.h"

#include <algorithm>

#include "load/protocol.h"
#include "load/request_body.h"

namespace goodput {
namespace {

constexpr std::string_view kAnthropicVersion = "2023-06-01";

bool same_name(std::string_view a, std::string_view b) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; };
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [&](char x, char y) { return lower(x) == lower(y); });
}

// A header of ours, unless the user has set his own.
void append_header(std::string& out, const LoadOptions& options, std::string_view name, std::string_view value) {
  for (const auto& header : options.headers)
    if (same_name(header.first, name))
      return;
  out.append(name).append(": ").append(value).append("\r\n");
}

void append_head(std::string& out, std::string_view method, const Url& base, const LoadOptions& options,
                 const Route& route, std::string_view path) {
  out.append(method)
      .append(" ")
      .append(route.target_prefix)
      .append(api_path(base, path))
      .append(" HTTP/1.1\r\nHost: ")
      .append(base.authority());
  out += "\r\n";
  append_header(out, options, "User-Agent", "goodput");
  out += route.proxy_authorization;
  const KeyHeader key = protocol_of(options.api).key_header;
  if (!options.api_key.empty() && key == KeyHeader::kBearer)
    append_header(out, options, "Authorization", "Bearer " + options.api_key);
  if (!options.api_key.empty() && key == KeyHeader::kXApiKey)
    append_header(out, options, "x-api-key", options.api_key);
  if (key == KeyHeader::kXApiKey)
    append_header(out, options, "anthropic-version", kAnthropicVersion);
  for (const auto& [name, value] : options.headers)
    out.append(name).append(": ").append(value).append("\r\n");
}

bool is_clean(std::string_view text) {
  return text.find_first_of(std::string_view("\r\n\0", 3)) == std::string_view::npos;
}

}  // namespace

std::string api_path(const Url& base, std::string_view path) {
  std::string_view prefix = base.path;
  for (const std::string_view root : {"/v1", "/api"})
    if (prefix.ends_with(root)) {
      prefix.remove_suffix(root.size());
      break;
    }
  return std::string(prefix).append(path);
}

std::string request_bytes(const Url& base, const LoadOptions& options, const Route& route, std::string_view model,
                          const ScheduledRequest& request) {
  const Protocol& protocol = protocol_of(options.api);
  const std::string body = request_body(options, model, request);
  std::string out;
  append_head(out, "POST", base, options, route, options.stream ? protocol.path : protocol.whole_path);
  if (!options.request_id_prefix.empty())
    append_header(out, options, "X-Request-Id", options.request_id_prefix + std::to_string(request.index));
  const bool lines = options.stream && protocol.framing == Framing::kNdjson;
  append_header(out, options, "Accept",
                lines            ? "application/x-ndjson"
                : options.stream ? "text/event-stream"
                                 : "application/json");
  out += "Content-Type: application/json\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n";
  return out += body;
}

std::string get_bytes(const Url& base, const LoadOptions& options, const Route& route, std::string_view path) {
  std::string out;
  append_head(out, "GET", base, options, route, path);
  return out += "Accept: application/json\r\nConnection: close\r\n\r\n";
}

Result<void> check_options(const LoadOptions& options) {
  for (const auto& [name, value] : options.headers) {
    const bool named = !name.empty() && is_clean(name) && name.find_first_of(" :\t") == std::string::npos;
    if (!named || !is_clean(value)) {
      return fail(ErrorCode::kUsage, "a header needs a name without blanks and a value on one line", name);
    }
  }
  if (!is_clean(options.request_id_prefix))
    return fail(ErrorCode::kUsage, "the prefix of request ids contains a line break");
  if (!is_clean(options.api_key))
    return fail(ErrorCode::kUsage, "the API key contains a line break");
  return check_extra_body(options.extra_body);
}

}  // namespace goodput
