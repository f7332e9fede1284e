#include "serve/api_request.h"

#include <cmath>

#include <fmt/format.h>
#include <simdjson.h>

#include "base/limits.h"
#include "base/random.h"

namespace goodput {
namespace {
namespace dom = simdjson::dom;
using Parsed = tl::expected<void, ApiError>;

tl::unexpected<ApiError> refuse(std::string_view param, std::string message, std::string code = {}) {
  return tl::unexpected(
      ApiError{400, std::move(message), "invalid_request_error", std::string(param), std::move(code)});
}

tl::unexpected<ApiError> expected_type(std::string_view param, std::string_view what) {
  return refuse(param, fmt::format("'{}' must be {}", param, what), "invalid_type");
}

Parsed read_bool(const dom::element& e, std::string_view name, bool& to) {
  if (e.get(to))
    return expected_type(name, "true or false");
  return {};
}

Parsed read_int(const dom::element& e, std::string_view name, int64_t low, int64_t high, int64_t& to) {
  if (e.get(to))
    return expected_type(name, "a whole number");
  if (to < low || to > high)
    return refuse(name, fmt::format("'{}' must be between {} and {}, found {}", name, low, high, to), "invalid_value");
  return {};
}

Parsed read_number(const dom::element& e, std::string_view name, double low, double high, float& to) {
  double value = 0;
  if (e.get(value))
    return expected_type(name, "a number");
  if (!(value >= low && value <= high))
    return refuse(name, fmt::format("'{}' must be between {} and {}, found {}", name, low, high, value),
                  "invalid_value");
  to = static_cast<float>(value);
  return {};
}

Parsed read_stop(const dom::element& e, std::vector<std::string>& to) {
  std::string_view text;
  dom::array list;
  if (!e.get(text)) {
    to.emplace_back(text);
  } else if (!e.get(list)) {
    for (const auto item : list) {
      if (item.get(text))
        return expected_type("stop", "a string or a list of strings");
      to.emplace_back(text);
      if (to.size() > limits::kMaxStopStrings)
        return refuse("stop", fmt::format("at most {} stop strings", limits::kMaxStopStrings), "invalid_value");
    }
  } else {
    return expected_type("stop", "a string or a list of strings");
  }
  for (const auto& stop : to) {
    if (stop.empty())
      return refuse("stop", "a stop string cannot be empty", "invalid_value");
    if (stop.size() > limits::kMaxStopBytes)
      return refuse("stop", fmt::format("a stop string has at most {} bytes", limits::kMaxStopBytes), "invalid_value");
  }
  return {};
}

Parsed read_prompt(const dom::element& e, ApiRequest& to) {
  constexpr std::string_view kWhat = "a string or an array of token ids (one prompt per request)";
  std::string_view text;
  dom::array list;
  if (!e.get(text)) {
    to.prompt = text;
    return {};
  }
  if (e.get(list))
    return expected_type("prompt", kWhat);
  dom::element first;
  if (list.size() == 1 && !list.at(0).get(first) && !first.get(text)) {
    to.prompt = text;
    return {};
  }
  to.prompt_tokens.reserve(list.size());
  for (const auto item : list) {
    int64_t id = 0;
    if (item.get(id))
      return expected_type("prompt", kWhat);
    if (id < 0 || id > INT32_MAX)
      return refuse("prompt", fmt::format("{} is no token id", id), "invalid_value");
    to.prompt_tokens.push_back(static_cast<TokenId>(id));
  }
  if (to.prompt_tokens.empty())
    return refuse("prompt", "'prompt' is empty", "invalid_value");
  return {};
}

// Text, or a list of parts of which each must be text.
Parsed read_content(const dom::element& e, std::string_view where, std::string& to) {
  std::string_view text;
  if (!e.get(text)) {
    to = text;
    return {};
  }
  if (e.is_null())
    return {};
  dom::array parts;
  if (e.get(parts))
    return expected_type(where, "a string or a list of text parts");
  for (const auto part : parts) {
    std::string_view type;
    if (part["type"].get(type) || type != "text" || part["text"].get(text))
      return refuse(where, "only parts {\"type\": \"text\", \"text\": …} are supported", "unsupported_value");
    to += text;
  }
  return {};
}

Parsed read_messages(const dom::element& e, ApiRequest& to) {
  dom::array list;
  if (e.get(list))
    return expected_type("messages", "a list of messages");
  for (const auto item : list) {
    const std::string where = fmt::format("messages[{}]", to.messages.size());
    std::string_view role;
    if (item["role"].get(role) || role.empty())
      return refuse(where + ".role", "every message needs a 'role'", "invalid_type");
    ChatMessage message{std::string(role), {}};
    dom::element content;
    if (item["content"].get(content))
      return refuse(where + ".content", "every message needs 'content'");
    if (auto ok = read_content(content, where + ".content", message.content); !ok)
      return ok;
    to.messages.push_back(std::move(message));
    if (to.messages.size() > limits::kMaxChatMessages)
      return refuse("messages", fmt::format("at most {} messages", limits::kMaxChatMessages), "invalid_value");
  }
  if (to.messages.empty())
    return refuse("messages", "'messages' is empty", "invalid_value");
  return {};
}

Parsed read_stream_options(const dom::element& e, ApiRequest& to) {
  dom::object options;
  if (e.get(options))
    return expected_type("stream_options", "an object");
  for (const auto [key, value] : options) {
    Parsed ok;
    if (key == "include_usage")
      ok = read_bool(value, "stream_options.include_usage", to.include_usage);
    if (key == "continuous_usage_stats")
      ok = read_bool(value, "stream_options.continuous_usage_stats", to.continuous_usage);
    if (!ok)
      return ok;
  }
  return {};
}

// Fields that would change the answer in ways we cannot honour. Their harmless values are accepted.
Parsed refuse_unsupported(std::string_view key, const dom::element& e) {
  const auto is_zero = [&] {
    double number = 0;
    return !e.get(number) && number == 0;
  };
  const auto is_false = [&] {
    bool flag = true;
    return !e.get(flag) && !flag;
  };
  const auto is_empty = [&] {
    dom::array list;
    dom::object object;
    return (!e.get(list) && list.size() == 0) || (!e.get(object) && object.size() == 0);
  };
  bool harmless = true;
  if (key == "n" || key == "best_of") {
    int64_t count = 0;
    harmless = !e.get(count) && count == 1;
  } else if (key == "echo" || key == "logprobs" || key == "use_beam_search") {
    harmless = is_false();
  } else if (key == "presence_penalty" || key == "frequency_penalty" || key == "top_logprobs" || key == "min_p") {
    harmless = is_zero();
  } else if (key == "logit_bias" || key == "tools" || key == "functions") {
    harmless = is_empty();
  } else if (key == "suffix") {
    std::string_view text;
    harmless = !e.get(text) && text.empty();
  } else if (key == "response_format") {
    std::string_view type;
    harmless = !e["type"].get(type) && type == "text";
  }
  if (harmless)
    return {};
  return refuse(key, fmt::format("this value of '{}' is not supported here", key), "unsupported_value");
}

Parsed read_field(std::string_view key, const dom::element& e, ApiRequest& to) {
  if (e.is_null())
    return {};  // OpenAI: null is "not given"
  int64_t number = 0;
  Parsed ok;
  std::string_view text;
  if (key == "model") {
    if (e.get(text))
      return expected_type(key, "a string");
    to.model = text;
  } else if (key == "prompt" && !to.chat) {
    ok = read_prompt(e, to);
  } else if (key == "messages" && to.chat) {
    ok = read_messages(e, to);
  } else if (key == "max_tokens" || key == "max_completion_tokens") {
    ok = read_int(e, key, 1, limits::kMaxModelLen.count(), number);
    if (ok)
      to.max_tokens = static_cast<int>(number);
  } else if (key == "stream") {
    ok = read_bool(e, key, to.stream);
  } else if (key == "stream_options") {
    ok = read_stream_options(e, to);
  } else if (key == "ignore_eos") {
    ok = read_bool(e, key, to.sampling.ignore_eos);
  } else if (key == "return_token_ids") {
    ok = read_bool(e, key, to.return_token_ids);
  } else if (key == "stop") {
    ok = read_stop(e, to.stop);
  } else if (key == "temperature") {
    ok = read_number(e, key, 0, 100, to.sampling.temperature);
  } else if (key == "top_p") {
    ok = read_number(e, key, 0, 1, to.sampling.top_p);
    if (ok && to.sampling.top_p == 0)
      return refuse(key, "'top_p' must be above 0", "invalid_value");
  } else if (key == "top_k") {
    ok = read_int(e, key, -1, INT32_MAX, number);
    to.sampling.top_k = number < 0 ? 0 : static_cast<int>(number);
  } else if (key == "seed") {
    ok = read_int(e, key, INT64_MIN, INT64_MAX, number);
    to.seed = static_cast<uint64_t>(number);
  } else if (key == "priority") {
    ok = read_int(e, key, INT32_MIN, INT32_MAX, number);
    to.priority = static_cast<int>(number);
  } else if (key == "cache_salt") {
    if (e.get(text))
      return expected_type(key, "a string");
    to.cache_salt = text.empty() ? 0 : fnv1a(text);
  } else {
    ok = refuse_unsupported(key, e);
  }
  return ok;
}

}  // namespace

tl::expected<ApiRequest, ApiError> parse_api_request(std::string_view body, bool chat) {
  dom::parser parser;
  // One more than the limit, because simdjson counts the document itself.
  if (parser.allocate(std::max<size_t>(body.size(), 64), limits::kMaxJsonDepth + 1))
    return tl::unexpected(ApiError{500, "out of memory", "server_error", {}, {}});
  dom::element document;
  if (const auto error = parser.parse(body.data(), body.size()).get(document))
    return refuse({}, fmt::format("the body is not valid JSON: {}", simdjson::error_message(error)), "invalid_json");
  dom::object fields;
  if (document.get(fields))
    return refuse({}, "the body must be a JSON object", "invalid_type");
  ApiRequest request;
  request.chat = chat;
  bool has_stream_options = false, has_prompt = false;
  for (const auto [key, value] : fields) {
    has_stream_options |= key == "stream_options" && !value.is_null();
    has_prompt |= key == (chat ? "messages" : "prompt") && !value.is_null();
    if (auto ok = read_field(key, value, request); !ok)
      return tl::unexpected(std::move(ok.error()));
  }
  if (!has_prompt) {
    const std::string_view name = chat ? "messages" : "prompt";
    return refuse(name, fmt::format("'{}' is required", name), "missing_required_parameter");
  }
  if (has_stream_options && !request.stream)
    return refuse("stream_options", "'stream_options' needs 'stream': true", "invalid_value");
  if (request.prompt.empty() && request.prompt_tokens.empty() && !chat)
    return refuse("prompt", "'prompt' is empty", "invalid_value");
  return request;
}

}  // namespace goodput
