#include "load/request_bytes.h"

#include <boost/json.hpp>

namespace goodput {
namespace {

void append_head(std::string& out, std::string_view method, const Url& base, const LoadOptions& options,
                 std::string_view path) {
  out.append(method).append(" ").append(api_path(base, path)).append(" HTTP/1.1\r\nHost: ").append(base.authority());
  out += "\r\nUser-Agent: goodput\r\n";
  if (!options.api_key.empty())
    out += "Authorization: Bearer " + options.api_key + "\r\n";
  for (const auto& [name, value] : options.headers)
    out += name + ": " + value + "\r\n";
}

boost::json::object body_of(const LoadOptions& options, std::string_view model, const ScheduledRequest& request) {
  boost::json::object body;
  body["model"] = boost::json::string_view(model.data(), model.size());
  if (options.api == Api::kChat) {
    body["messages"] = boost::json::array{{{"role", "user"}, {"content", request.text}}};
  } else {
    body["prompt"] = request.text;
  }
  body["max_tokens"] = request.output.count();
  body["temperature"] = 0;
  body["stream"] = options.stream;
  if (options.stream) {
    boost::json::object stream_options{{"include_usage", true}};
    if (options.running_usage)
      stream_options["continuous_usage_stats"] = true;
    body["stream_options"] = std::move(stream_options);
  }
  if (options.ignore_eos)
    body["ignore_eos"] = true;
  if (request.priority != 0)
    body["priority"] = request.priority;
  if (!options.extra_body.empty()) {
    const boost::json::value extra = boost::json::parse(options.extra_body);  // an object: check_headers saw it
    for (const auto& [key, value] : extra.get_object())
      body[key] = value;
  }
  return body;
}

bool is_clean(std::string_view text) {
  return text.find_first_of(std::string_view("\r\n\0", 3)) == std::string_view::npos;
}

}  // namespace

std::string api_path(const Url& base, std::string_view path) {
  std::string_view prefix = base.path;
  if (prefix.ends_with("/v1"))
    prefix.remove_suffix(3);
  return std::string(prefix).append(path);
}

std::string request_bytes(const Url& base, const LoadOptions& options, std::string_view model,
                          const ScheduledRequest& request) {
  const std::string body = boost::json::serialize(body_of(options, model, request));
  std::string out;
  append_head(out, "POST", base, options, options.api == Api::kChat ? "/v1/chat/completions" : "/v1/completions");
  out += options.stream ? "Accept: text/event-stream\r\n" : "Accept: application/json\r\n";
  if (!options.request_id_prefix.empty())
    out += "X-Request-Id: " + options.request_id_prefix + std::to_string(request.index) + "\r\n";
  out += "Content-Type: application/json\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n";
  return out += body;
}

std::string get_bytes(const Url& base, const LoadOptions& options, std::string_view path) {
  std::string out;
  append_head(out, "GET", base, options, path);
  return out += "Accept: application/json\r\nConnection: close\r\n\r\n";
}

Result<void> check_headers(const LoadOptions& options) {
  for (const auto& [name, value] : options.headers) {
    const bool named = !name.empty() && is_clean(name) && name.find_first_of(" :\t") == std::string::npos;
    if (!named || !is_clean(value)) {
      return fail(ErrorCode::kUsage, "a header needs a name without blanks and a value on one line", name);
    }
  }
  if (!is_clean(options.request_id_prefix))
    return fail(ErrorCode::kUsage, "the prefix of request ids contains a line break");
  if (!options.extra_body.empty()) {
    boost::system::error_code error;
    const auto extra = boost::json::parse(options.extra_body, error);
    if (error || !extra.is_object())
      return fail(ErrorCode::kUsage, "the extra body is not a JSON object");
  }
  if (!is_clean(options.api_key))
    return fail(ErrorCode::kUsage, "the API key contains a line break");
  return {};
}

}  // namespace goodput
