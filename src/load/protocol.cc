#include "load/protocol.h"

#include <array>

#include "base/check.h"
#include "load/event_facts.h"
#include "load/request_body.h"

namespace goodput {
namespace {

using enum Framing;
using enum KeyHeader;

constexpr std::string_view kOpenAiKey = "OPENAI_API_KEY";
constexpr std::string_view kFinish = "finish_reason or [DONE]";

constexpr std::array<Protocol, kApis> kProtocols = {{
    {Api::kCompletions, "completions", "/v1/completions", "/v1/completions", kSse, kFinish, kBearer, kOpenAiKey, true,
     write_completions_body, read_openai_event},
    {Api::kChat, "chat", "/v1/chat/completions", "/v1/chat/completions", kSse, kFinish, kBearer, kOpenAiKey, true,
     write_chat_body, read_openai_event},
    {Api::kResponses, "responses", "/v1/responses", "/v1/responses", kSse, "response.completed", kBearer, kOpenAiKey,
     true, write_responses_body, read_responses_event},
    {Api::kOllamaChat, "ollama_chat", "/api/chat", "/api/chat", kNdjson, "done: true", kBearer, "OLLAMA_API_KEY", true,
     write_ollama_chat_body, read_ollama_event},
    {Api::kOllamaGenerate, "ollama_generate", "/api/generate", "/api/generate", kNdjson, "done: true", kBearer,
     "OLLAMA_API_KEY", true, write_ollama_generate_body, read_ollama_event},
    {Api::kTgi, "tgi", "/generate_stream", "/generate", kSse, "generated_text", kBearer, "HF_TOKEN", false,
     write_tgi_body, read_tgi_event},
    {Api::kAnthropic, "anthropic", "/v1/messages", "/v1/messages", kSse, "message_stop", kXApiKey, "ANTHROPIC_API_KEY",
     true, write_anthropic_body, read_anthropic_event},
    {Api::kLlama, "llama", "/completion", "/completion", kSse, "stop: true", kBearer, kOpenAiKey, false,
     write_llama_body, read_llama_event},
}};

}  // namespace

std::span<const Protocol> protocols() { return kProtocols; }

const Protocol& protocol_of(Api api) {
  const Protocol& p = kProtocols.at(static_cast<size_t>(api));
  CHECK(p.api == api, "the table is in the order of Api");
  return p;
}

std::optional<Api> parse_api(std::string_view name) {
  for (const Protocol& p : kProtocols)
    if (p.name == name)
      return p.api;
  return std::nullopt;
}

std::string protocol_names() {
  std::string out;
  for (const Protocol& p : kProtocols)
    out.append(out.empty() ? "" : ", ").append(p.name);
  return out;
}

}  // namespace goodput
