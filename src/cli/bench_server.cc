// Flags that say where the server is and how it is asked.
#include <fmt/format.h>
#include <boost/json.hpp>

#include "base/text.h"
#include "cli/bench_plan.h"
#include "load/protocol.h"
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
    {"openai-responses", Api::kResponses},
    {"vllm", Api::kCompletions},
    {"vllm-chat", Api::kChat},
    {"lmdeploy", Api::kCompletions},
    {"sglang", Api::kCompletions},
    {"sglang-oai", Api::kCompletions},
    {"sglang-oai-chat", Api::kChat},
    {"scalellm", Api::kCompletions},
    {"llama.cpp", Api::kCompletions},
    {"llama-native", Api::kLlama},
    {"ollama", Api::kOllamaChat},
    {"ollama-generate", Api::kOllamaGenerate},
    {"tgi", Api::kTgi},
    {"anthropic", Api::kAnthropic},
    {"tensorrt-llm", std::nullopt},
    {"deepspeed-mii", std::nullopt},
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

// Base URL and path are one address to vLLM; the load generator wants the part above the API's own path and the API,
// which the path's tail decides. A protocol's name is accepted in the path's place.
Result<void> plan_endpoint(const BenchFlags& f, BenchPlan& p) {
  p.load.base_url = server_url(f);
  p.load.api = TRY(api_of_backend(f.backend));
  while (p.load.base_url.ends_with('/'))
    p.load.base_url.pop_back();
  if (const auto named = parse_api(f.endpoint)) {
    p.load.api = *named;
  } else if (!f.endpoint.empty()) {
    const std::string path = f.endpoint.starts_with('/') ? f.endpoint : "/" + f.endpoint;
    std::string whole = p.load.base_url + path;
    if (p.load.base_url.ends_with("/v1") && path.starts_with("/v1/"))
      whole = p.load.base_url + path.substr(3);
    const auto known = protocols();
    const auto found = std::ranges::find_if(known, [&](const Protocol& k) { return whole.ends_with(k.path); });
    if (found == known.end()) {
      std::vector<std::string_view> paths;
      for (const Protocol& k : known)
        paths.push_back(k.path);
      return fail(ErrorCode::kUsage,
                  fmt::format("expected a path that ends in one of {}, found {}", fmt::join(paths, ", "), path),
                  "--endpoint");
    }
    p.load.api = found->api;
    p.load.base_url = whole.substr(0, whole.size() - found->path.size());
  }
  TRY(parse_url(p.load.base_url));
  p.report.base_url = p.load.base_url;
  p.report.backend = f.backend;
  p.report.endpoint = protocol_of(p.load.api).path;
  return {};
}

// Where a protocol keeps its sampling parameters; empty: in the body itself.
std::string_view sampling_place(Api api) {
  if (api == Api::kOllamaChat || api == Api::kOllamaGenerate)
    return "options";
  return api == Api::kTgi ? "parameters" : "";
}

// --extra-body has the last word over the sampling parameters; objects in it are merged, as the load generator does.
Result<void> plan_body(const BenchFlags& f, BenchPlan& p) {
  boost::json::object sampling;
  const auto put = [&](std::string_view key, const auto& value) {
    if (value)
      sampling[key] = *value;
  };
  put("temperature", f.temperature);
  put("top_p", f.top_p);
  put("top_k", f.top_k);
  put("min_p", f.min_p);
  put("frequency_penalty", f.frequency_penalty);
  put("presence_penalty", f.presence_penalty);
  put("repetition_penalty", f.repetition_penalty);
  boost::json::object body;
  const std::string_view place = sampling_place(p.load.api);
  if (place.empty())
    body = std::move(sampling);
  else if (!sampling.empty())
    body[place] = std::move(sampling);
  if (!f.extra_body.empty()) {
    boost::system::error_code error;
    const auto extra = boost::json::parse(f.extra_body, error);
    if (error || !extra.is_object()) {
      return fail(ErrorCode::kUsage,
                  fmt::format("expected a JSON object such as '{{\"top_k\": 20}}', found {}{}", f.extra_body,
                              error ? " (" + error.message() + ")" : ""),
                  "--extra-body");
    }
    for (const auto& [key, value] : extra.get_object()) {
      auto* inner = key == place && value.is_object() && body.contains(key) ? body[key].if_object() : nullptr;
      if (!inner) {
        body[key] = value;
        continue;
      }
      for (const auto& [name, setting] : value.get_object())
        (*inner)[name] = setting;
    }
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
  p.load.transport.verify = !f.insecure;
  p.load.transport.ca_file = f.ca_file;
  p.ready_wait = seconds(f.ready_check_s);
  return {};
}

}  // namespace goodput
