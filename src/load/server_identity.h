// Who answers behind the URL: asked before and after a run, so that a server that changed in between is noticed.
#pragma once

#include <optional>
#include <string>

#include "load/load.h"
#include "net/route.h"
#include "net/url.h"

namespace goodput {

struct ServerIdentity {
  Route route;              // of those to the name's addresses, the one that answers
  std::string first_model;  // empty: /v1/models does not tell
  std::string text;         // models and version as reported; empty: it reports nothing
};

// GET /v1/models on each address until one speaks HTTP. A server without that route is fine: `first_model` is empty
// then. kUnreachable: what was expected and what was found.
Result<ServerIdentity> identify(const Url&, const LoadOptions&, const std::vector<Route>&);

}  // namespace goodput
