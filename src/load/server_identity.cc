#include "load/server_identity.h"

#include <simdjson.h>

#include "base/limits.h"
#include "load/request_bytes.h"
#include "net/http_fetch.h"

namespace goodput {
namespace {

constexpr Nanos kAnswerLimit = seconds(5);

void read_models(const HttpAnswer& answer, ServerIdentity& identity) {
  simdjson::dom::parser parser;
  simdjson::dom::array models;
  const simdjson::padded_string body(answer.body);
  if (answer.status != 200 || parser.parse(body)["data"].get(models) != simdjson::SUCCESS)
    return;
  for (const simdjson::dom::element model : models) {
    std::string_view id;
    if (model["id"].get(id) != simdjson::SUCCESS || id.empty())
      continue;
    if (identity.first_model.empty())
      identity.first_model = id;
    if (!identity.text.empty())
      identity.text += ", ";
    identity.text += id;
    int64_t length = 0;
    if (model["max_model_len"].get(length) == simdjson::SUCCESS)
      identity.text += " (" + std::to_string(length) + ")";
  }
  if (!answer.server.empty())
    identity.text += " on " + answer.server;
}

}  // namespace

Result<ServerIdentity> identify(const Url& url, const LoadOptions& options, const std::vector<Route>& routes) {
  Error last{ErrorCode::kUnreachable, "the name has no address", url.host};
  for (const Route& route : routes) {
    auto answer = http_fetch(route, get_bytes(url, options, route, "/v1/models"), kAnswerLimit);
    if (!answer) {
      last = std::move(answer.error());
      continue;
    }
    ServerIdentity identity{route, {}, {}};
    read_models(*answer, identity);
    return identity;
  }
  last.message +=
      "; expected an OpenAI-compatible server at " + options.base_url + " (is it running, is the port right?)";
  return tl::unexpected<Error>(std::move(last));
}

}  // namespace goodput
