#include "load/server_identity.h"

#include <array>
#include <span>

#include "base/limits.h"
#include "load/json_object.h"
#include "load/protocol.h"
#include "load/request_bytes.h"
#include "net/http_fetch.h"

namespace goodput {
namespace {

constexpr Nanos kAnswerLimit = seconds(5);

void add_text(ServerIdentity& identity, std::string_view separator, std::string_view text) {
  if (text.empty())
    return;
  if (!identity.text.empty())
    identity.text += separator;
  identity.text += text;
}

void add_number(ServerIdentity& identity, std::string_view what, std::optional<int64_t> n) {
  if (n)
    add_text(identity, ", ", std::string(what) + " " + std::to_string(*n));
}

// {"data": [{"id": …}]}
void read_models(const JsonObject& answer, const LoadOptions&, ServerIdentity& identity) {
  answer.each("data", [&](const JsonObject& model) {
    std::string id(model.text("id"));
    if (id.empty())
      return;
    if (identity.first_model.empty())
      identity.first_model = id;
    if (const auto length = model.number("max_model_len"))
      id += " (" + std::to_string(*length) + ")";
    add_text(identity, ", ", id);
  });
}

// Where a probe before it has named the model, this one would only say it again.
void read_models_if_unknown(const JsonObject& answer, const LoadOptions& options, ServerIdentity& identity) {
  if (identity.first_model.empty())
    read_models(answer, options, identity);
}

// Everything that was ever pulled is listed, in any order: only what is used counts as the server's identity.
void read_ollama_tags(const JsonObject& answer, const LoadOptions& options, ServerIdentity& identity) {
  answer.each("models", [&](const JsonObject& model) {
    const std::string name(model.text("name"));
    const bool wanted = options.model.empty() || name == options.model || name == options.model + ":latest";
    if (name.empty() || !wanted || !identity.first_model.empty())
      return;
    identity.first_model = name;
    add_text(identity, ", ", name);
    add_text(identity, " ", model.text("digest").substr(0, 12));
  });
}

void read_ollama_version(const JsonObject& answer, const LoadOptions&, ServerIdentity& identity) {
  if (const auto version = answer.text("version"); !version.empty())
    add_text(identity, " on ", "Ollama " + std::string(version));
}

void read_tgi_info(const JsonObject& answer, const LoadOptions&, ServerIdentity& identity) {
  identity.first_model = answer.text("model_id");
  add_text(identity, ", ", identity.first_model);
  add_text(identity, " ", answer.text("model_sha").substr(0, 12));
  add_text(identity, ", version ", answer.text("version"));
  for (const char* limit : {"max_concurrent_requests", "max_total_tokens", "max_batch_total_tokens"})
    add_number(identity, limit, answer.number(limit));
}

void read_llama_props(const JsonObject& answer, const LoadOptions&, ServerIdentity& identity) {
  identity.first_model = answer.text("model_alias");
  if (identity.first_model.empty())
    identity.first_model = answer.text("model_path");
  add_text(identity, ", ", identity.first_model);
  add_text(identity, ", build ", answer.text("build_info"));
  add_number(identity, "slots", answer.number("total_slots"));
  if (const auto settings = answer.object("default_generation_settings"))
    add_number(identity, "n_ctx", settings->number("n_ctx"));
}

struct Probe {
  std::string_view path;
  void (*read)(const JsonObject&, const LoadOptions&, ServerIdentity&);
};
constexpr std::array kModels{Probe{"/v1/models", read_models}};
constexpr std::array kOllama{Probe{"/api/tags", read_ollama_tags}, Probe{"/api/version", read_ollama_version}};
constexpr std::array kTgi{Probe{"/info", read_tgi_info}};
constexpr std::array kLlama{Probe{"/props", read_llama_props}, Probe{"/v1/models", read_models_if_unknown}};

std::span<const Probe> probes_of(Api api) {
  switch (api) {
    case Api::kOllamaChat:
    case Api::kOllamaGenerate:
      return kOllama;
    case Api::kTgi:
      return kTgi;
    case Api::kLlama:
      return kLlama;
    default:
      return kModels;
  }
}

void read_answer(const HttpAnswer& answer, const Probe& probe, const LoadOptions& options, ServerIdentity& identity) {
  if (answer.status != 200)
    return;
  JsonParser parser;
  if (const auto body = parser.parse_copy(answer.body))
    probe.read(*body, options, identity);
}

}  // namespace

Result<ServerIdentity> identify(const Url& url, const LoadOptions& options, const std::vector<Route>& routes) {
  const auto probes = probes_of(options.api);
  Error last{ErrorCode::kUnreachable, "the name has no address", url.host};
  for (const Route& route : routes) {
    auto answer = http_fetch(route, get_bytes(url, options, route, probes.front().path), kAnswerLimit);
    if (!answer) {
      last = std::move(answer.error());
      continue;
    }
    ServerIdentity identity{route, {}, {}, std::string(probes.front().path)};
    read_answer(*answer, probes.front(), options, identity);
    for (const Probe& probe : probes.subspan(1)) {
      if (const auto more = http_fetch(route, get_bytes(url, options, route, probe.path), kAnswerLimit))
        read_answer(*more, probe, options, identity);
    }
    if (!identity.text.empty() && !answer->server.empty())
      identity.text += " on " + answer->server;
    return identity;
  }
  last.message += "; expected a server that speaks " + std::string(protocol_of(options.api).name) + " at " +
                  options.base_url + " (is it running, is the port right?)";
  return tl::unexpected<Error>(std::move(last));
}

}  // namespace goodput
