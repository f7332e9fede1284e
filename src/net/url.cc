#include "net/url.h"

#include "base/text.h"

namespace goodput {
namespace {

tl::unexpected<Error> bad(std::string_view text, const std::string& what) {
  return fail(ErrorCode::kUsage, what + "; expected a URL like http://127.0.0.1:8000", std::string(text));
}

// "unix:///run/server.sock": the whole rest is the socket's path.
Result<Url> unix_url(std::string_view text, std::string_view path) {
  if (!path.starts_with('/') || path.size() < 2)
    return bad(text, "a Unix socket needs an absolute path, as in unix:///run/server.sock");
  Url url;
  url.host = "localhost";
  url.unix_path = path;
  return url;
}

}  // namespace

std::string Url::authority() const {
  std::string out = host.find(':') != std::string::npos ? "[" + host + "]" : host;
  if (port != (tls ? 443 : 80) && unix_path.empty())
    out += ":" + std::to_string(port);
  return out;
}

Result<Url> parse_url(std::string_view text) {
  std::string_view rest = trim(text);
  Url url;
  for (const char c : rest) {
    if (static_cast<unsigned char>(c) <= ' ' || c == 0x7f)
      return bad(text, "the URL contains a space or control byte");
  }
  if (const size_t scheme = rest.find("://"); scheme != std::string_view::npos) {
    const std::string_view name = rest.substr(0, scheme);
    if (name == "unix")
      return unix_url(text, rest.substr(scheme + 3));
    if (name != "http" && name != "https")
      return bad(text, "unknown scheme \"" + std::string(name) + "\"");
    url.tls = name == "https";
    url.port = url.tls ? 443 : 80;
    rest.remove_prefix(scheme + 3);
  }
  if (rest.find_first_of("?#@") != std::string_view::npos)
    return bad(text, "user names, queries and fragments are refused");
  const size_t slash = rest.find('/');
  std::string_view authority = rest.substr(0, slash);
  if (slash != std::string_view::npos)
    url.path = rest.substr(slash);
  while (url.path.ends_with('/'))
    url.path.pop_back();

  std::string_view port;
  if (authority.starts_with('[')) {
    const size_t close = authority.find(']');
    if (close == std::string_view::npos)
      return bad(text, "the IPv6 address lacks its closing bracket");
    url.host = authority.substr(1, close - 1);
    std::string_view after = authority.substr(close + 1);
    if (!after.empty() && !after.starts_with(':'))
      return bad(text, "rubbish behind the IPv6 address");
    if (!after.empty())
      port = after.substr(1);
    if (!after.empty() && port.empty())
      return bad(text, "the port is empty");
  } else if (const size_t colon = authority.find(':'); colon != std::string_view::npos) {
    url.host = authority.substr(0, colon);
    port = authority.substr(colon + 1);
    if (port.empty())
      return bad(text, "the port is empty");
  } else {
    url.host = authority;
  }
  if (url.host.empty())
    return bad(text, "the host is empty");
  if (!port.empty()) {
    const auto number = parse_int(port);
    if (!number || *number < 1 || *number > 65535)
      return bad(text, "the port is not a number in 1..65535");
    url.port = static_cast<uint16_t>(*number);
  }
  return url;
}

}  // namespace goodput
