// Where a server is. Only what a client needs of RFC 3986: scheme, authority, path.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace goodput {

struct Url {
  bool tls = false;       // https
  std::string unix_path;  // of a Unix socket; then host is "localhost"
  std::string host;       // without the brackets of an IPv6 literal
  uint16_t port = 80;
  std::string path;  // without a trailing slash; empty for the root

  // As the Host header wants it: brackets for IPv6, the port unless it is the scheme's own.
  std::string authority() const;
};

// "http://host[:port][/path]", "https://…", "unix:///path/of.sock"; a missing scheme is http. kUsage with what is wrong
// and an example otherwise. User names, queries and fragments are refused: they would be sent or dropped unseen.
Result<Url> parse_url(std::string_view text);

}  // namespace goodput
