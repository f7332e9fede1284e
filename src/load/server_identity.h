// Who answers behind the URL: asked before and after a run, so that a server that changed in between is noticed.
#pragma once

#include <optional>
#include <string>

#include "load/load.h"
#include "net/socket.h"
#include "net/url.h"

namespace goodput {

struct ServerIdentity {
  Address address;          // of the name's addresses, the one that answers
  std::string first_model;  // empty: it does not tell
  std::string text;         // models and version as reported; empty: it reports nothing
  std::string asked;        // the route that names models, for messages
};

// Asks where the options' protocol has its models, on each address until one speaks HTTP: /v1/models (OpenAI,
// Anthropic), /api/tags and /api/version (Ollama), /info (TGI), /props (llama-server). A server without such a route is
// fine: `first_model` is empty then. kUnreachable: what was expected and what was found.
Result<ServerIdentity> identify(const Url&, const LoadOptions&, const std::vector<Address>&);

}  // namespace goodput
