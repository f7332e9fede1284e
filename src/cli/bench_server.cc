// Flags that say where the server is and how it is asked.
#include <fmt/format.h>
#include <boost/json.hpp>

#include "base/text.h"
#include "cli/bench_plan.h"
#include "net/url.h"

namespace goodput {
namespace {

// vLLM's backends, and the servers people name. One row for each; a row without an API says what to use instead.
struct Backend {
  std::string_view name;
  std::optional<Api> api;
};
constexpr Backend kBackends[] = {
    {"openai", Api::kCompletions},
    {"openai-chat", Api::kChat},
    {"vllm", Api::kCompletions},
    {"vllm-chat", Api::kChat},
    {"lmdeploy", Api::kCompletions},
    {"sglang", Api::kCompletions},
    {"sglang-oai", Api::kCompletions},
    {"sglang-oai-chat", Api::kChat},
    {"scalellm", Api::kCompletions},
    {"llama.cpp", Api::kCompletions},
    {"ollama", Api::kCompletions},
    // One line each where an API of its own is added to load/load.h:
    {"tgi", std::nullopt},
    {"anthropic", std::nullopt},
    {"openai-responses", std::nullopt},
    {"tensorrt-llm", std::nullopt},
    {"deepspeed-mii", std::nullopt},
};

// An endpoint as a path, as vLLM has it; the path's tail decides the API when the backend does not fit it.
struct Endpoint {
  Api api;
  std::string_view word, tail;
};
constexpr Endpoint kEndpoints[] = {
    {Api::kCompletions, "completions", "/v1/completions"},
    {Api::kChat, "chat", "/v1/chat/completions"},
};

Result<Api> api_of_backend(const std::string& name) {
  std::vector<std::string_view> served;
  for (const Backend& b : kBackends) {
    if (b.api)
      served.push_back(b.name);
    if (b.name == name && b.api)
      return *b.api;
  }
  const bool known = std::ranges::find(kBackends, name, &Backend::name) != std::end(kBackends);
  return fail(ErrorCode::kUsage,
              fmt::format("{} '{}'; served are {}; most servers also speak openai-chat",
                          known ? "no client yet for" : "unknown backend", name, fmt::join(served, ", ")),
              "--backend");
}

std::string server_url(const BenchFlags& f) {
  if (!f.base_url.empty())
    return f.base_url;
  const bool v6 = f.host.find(':') != std::string::npos && !f.host.starts_with('[');
  return fmt::format("http://{}:{}", v6 ? "[" + f.host + "]" : f.host, f.port);
}

// Base URL and path are one address to vLLM; the load generator wants the part above /v1 and the API.
Result<void> plan_endpoint(const BenchFlags& f, BenchPlan& p) {
  p.load.base_url = server_url(f);
  p.load.api = TRY(api_of_backend(f.backend));
  while (p.load.base_url.ends_with('/'))
    p.load.base_url.pop_back();
  if (!f.endpoint.empty()) {
    const auto word = std::ranges::find(kEndpoints, f.endpoint, &Endpoint::word);
    const std::string path = word != std::end(kEndpoints)  ? std::string(word->tail)
                             : f.endpoint.starts_with('/') ? f.endpoint
                                                           : "/" + f.endpoint;
    std::string whole = p.load.base_url + path;
    if (p.load.base_url.ends_with("/v1") && path.starts_with("/v1/"))
      whole = p.load.base_url + path.substr(3);
    const auto found = std::ranges::find_if(kEndpoints, [&](const Endpoint& e) { return whole.ends_with(e.tail); });
    if (found == std::end(kEndpoints)) {
      return fail(ErrorCode::kUsage,
                  fmt::format("expected a path that ends in /v1/completions or /v1/chat/completions, found {}", path),
                  "--endpoint");
    }
    p.load.api = found->api;
    p.load.base_url = whole.substr(0, whole.size() - found->tail.size());
  }
  TRY(parse_url(p.load.base_url));
  p.report.base_url = p.load.base_url;
  p.report.backend = f.backend;
  p.report.endpoint = std::ranges::find(kEndpoints, p.load.api, &Endpoint::api)->tail;
  return {};
}

// Sampling parameters are members of the body; --extra-body has the last word.
Result<void> plan_body(const BenchFlags& f, BenchPlan& p) {
  boost::json::object body;
  const auto put = [&](std::string_view key, const auto& value) {
    if (value)
      body[key] = *value;
  };
  put("temperature", f.temperature);
  put("top_p", f.top_p);
  put("top_k", f.top_k);
  put("min_p", f.min_p);
  put("frequency_penalty", f.frequency_penalty);
  put("presence_penalty", f.presence_penalty);
  put("repetition_penalty", f.repetition_penalty);
  if (!f.extra_body.empty()) {
    boost::system::error_code error;
    const auto extra = boost::json::parse(f.extra_body, error);
    if (error || !extra.is_object()) {
      return fail(ErrorCode::kUsage,
                  fmt::format("expected a JSON object such as '{{\"top_k\": 20}}', found {}{}", f.extra_body,
                              error ? " (" + error.message() + ")" : ""),
                  "--extra-body");
    }
    for (const auto& [key, value] : extra.get_object())
      body[key] = value;
  }
  if (!body.empty())
    p.load.extra_body = boost::json::serialize(body);
  return {};
}

}  // namespace

Result<void> plan_server(const BenchFlags& f, BenchPlan& p) {
  TRY(plan_endpoint(f, p));
  TRY(plan_body(f, p));
  p.load.model = f.served_model_name.empty() ? f.model : f.served_model_name;
  p.report.model = f.model;
  p.load.stream = !f.no_stream;
  p.load.request_timeout = seconds(f.timeout_s);
  p.load.request_id_prefix = f.request_id_prefix;
  for (const std::string& header : f.headers)
    p.load.headers.push_back(TRY(key_value("--header", header)));
  if (f.insecure)
    p.notes.push_back("--insecure: nothing to ignore, the connection is not encrypted");
  p.ready_wait = seconds(f.ready_check_s);
  return {};
}

}  // namespace goodput
