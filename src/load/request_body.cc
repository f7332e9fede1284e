// Every body asks for the same: this prompt, so many tokens, the likeliest each time, as a stream, with the server's
// counts. What a protocol has no word for is left out, never guessed: strict servers refuse fields that they do not
// know. `--extra-body` adds and removes what is missing.
#include "load/request_body.h"

#include <boost/json.hpp>

#include "base/limits.h"
#include "load/protocol.h"

namespace goodput {

struct JsonBody {
  boost::json::object json;
};

namespace {

namespace json = boost::json;

json::string_view view(std::string_view text) { return {text.data(), text.size()}; }

json::array user_message(const ScheduledRequest& request) { return {{{"role", "user"}, {"content", request.text}}}; }

void write_openai(json::object& o, const LoadOptions& options, std::string_view model, const ScheduledRequest& r) {
  o["model"] = view(model);
  o["max_tokens"] = r.output.count();
  o["temperature"] = 0;
  o["stream"] = options.stream;
  if (options.stream) {
    json::object stream_options{{"include_usage", true}};
    if (options.running_usage)
      stream_options["continuous_usage_stats"] = true;
    o["stream_options"] = std::move(stream_options);
  }
  if (options.ignore_eos)
    o["ignore_eos"] = true;
  if (r.priority != 0)
    o["priority"] = r.priority;
}

// Ollama has no word for ignore_eos; `stream` must be said, since its default is true.
void write_ollama(json::object& o, const LoadOptions& options, std::string_view model, const ScheduledRequest& r) {
  o["model"] = view(model);
  o["stream"] = options.stream;
  o["options"] = json::object{{"num_predict", r.output.count()}, {"temperature", 0}};
}

Result<json::object> parse_extra_body(std::string_view text) {
  if (text.empty())
    return json::object{};
  json::error_code bad;
  json::parse_options limits_of_it;
  limits_of_it.max_depth = limits::kMaxJsonDepth;
  json::value v = json::parse(view(text), bad, {}, limits_of_it);
  if (bad || !v.is_object()) {
    return fail(ErrorCode::kUsage,
                "the extra body must be a JSON object, e.g. {\"top_k\": 1}" + (bad ? ": " + bad.message() : ""),
                std::string(text.substr(0, 80)));
  }
  return std::move(v.get_object());
}

void merge_patch(json::object& target, const json::object& patch) {
  for (const auto& member : patch) {
    if (member.value().is_null()) {
      target.stable_erase(member.key());  // what stays keeps its order
    } else if (member.value().is_object()) {
      json::value& inner = target[member.key()];
      if (!inner.is_object())
        inner = json::object{};
      merge_patch(inner.get_object(), member.value().get_object());
    } else {
      target[member.key()] = member.value();
    }
  }
}

}  // namespace

void write_completions_body(JsonBody& body, const LoadOptions& options, std::string_view model,
                            const ScheduledRequest& r) {
  write_openai(body.json, options, model, r);
  body.json["prompt"] = r.text;
}

void write_chat_body(JsonBody& body, const LoadOptions& options, std::string_view model, const ScheduledRequest& r) {
  write_openai(body.json, options, model, r);
  body.json["messages"] = user_message(r);
}

// Usage always comes at the end. `store`: the answers are nobody's to keep.
void write_responses_body(JsonBody& body, const LoadOptions& options, std::string_view model,
                          const ScheduledRequest& r) {
  body.json = {{"model", view(model)}, {"input", r.text},          {"max_output_tokens", r.output.count()},
               {"temperature", 0},     {"stream", options.stream}, {"store", false}};
}

void write_ollama_chat_body(JsonBody& body, const LoadOptions& options, std::string_view model,
                            const ScheduledRequest& r) {
  write_ollama(body.json, options, model, r);
  body.json["messages"] = user_message(r);
}

void write_ollama_generate_body(JsonBody& body, const LoadOptions& options, std::string_view model,
                                const ScheduledRequest& r) {
  write_ollama(body.json, options, model, r);
  body.json["prompt"] = r.text;
}

// TGI refuses a temperature of 0 and means the same by do_sample; `details` are its usage. It has no word for
// ignore_eos.
void write_tgi_body(JsonBody& body, const LoadOptions&, std::string_view, const ScheduledRequest& r) {
  body.json = {
      {"inputs", r.text},
      {"parameters", json::object{{"max_new_tokens", r.output.count()}, {"do_sample", false}, {"details", true}}}};
}

// Anthropic has no word for ignore_eos and refuses fields that it does not know.
void write_anthropic_body(JsonBody& body, const LoadOptions& options, std::string_view model,
                          const ScheduledRequest& r) {
  body.json = {{"model", view(model)},
               {"max_tokens", r.output.count()},
               {"messages", user_message(r)},
               {"temperature", 0},
               {"stream", options.stream}};
}

void write_llama_body(JsonBody& body, const LoadOptions& options, std::string_view, const ScheduledRequest& r) {
  body.json = {{"prompt", r.text}, {"n_predict", r.output.count()}, {"temperature", 0}, {"stream", options.stream}};
  if (options.ignore_eos)
    body.json["ignore_eos"] = true;
}

Result<void> check_extra_body(std::string_view text) {
  const auto parsed = parse_extra_body(text);
  if (!parsed)
    return tl::unexpected<Error>(parsed.error());
  return {};
}

std::string request_body(const LoadOptions& options, std::string_view model, const ScheduledRequest& request) {
  JsonBody body;
  protocol_of(options.api).write_body(body, options, model, request);
  if (!options.extra_body.empty()) {
    if (const auto extra = parse_extra_body(options.extra_body))  // (check_extra_body has refused what is none)
      merge_patch(body.json, *extra);
  }
  return json::serialize(body.json);
}

}  // namespace goodput
