#include "net/route.h"

#include <sys/un.h>

#include <cstdlib>
#include <cstring>

#include <openssl/evp.h>

#include "base/text.h"

namespace goodput {
namespace {

std::string environment(std::initializer_list<const char*> names) {
  for (const char* name : names)
    if (const char* value = std::getenv(name); value != nullptr && *value != '\0')
      return value;
  return {};
}

std::string base64(std::string_view text) {
  std::string out(4 * ((text.size() + 2) / 3) + 1, '\0');
  const int n = EVP_EncodeBlock(reinterpret_cast<unsigned char*>(out.data()),
                                reinterpret_cast<const unsigned char*>(text.data()), static_cast<int>(text.size()));
  out.resize(static_cast<size_t>(n));
  return out;
}

// "%40" in a password stands for '@'.
std::string percent_decoded(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    unsigned value = 0;
    if (text[i] == '%' && i + 2 < text.size() &&
        std::sscanf(std::string(text.substr(i + 1, 2)).c_str(), "%2x", &value) == 1) {
      out += static_cast<char>(value);
      i += 2;
    } else {
      out += text[i];
    }
  }
  return out;
}

struct Proxy {
  Url url;
  std::string authorization;  // the header line, or empty
};

Result<Proxy> parse_proxy(std::string text) {
  Proxy proxy;
  const size_t scheme = text.find("://");
  const size_t begin = scheme == std::string::npos ? 0 : scheme + 3;
  if (scheme != std::string::npos && text.substr(0, scheme) != "http")
    return fail(ErrorCode::kUsage, "only http:// proxies are supported, not " + text.substr(0, scheme) + "://",
                "proxy");
  if (const size_t at = text.rfind('@'); at != std::string::npos && at >= begin) {
    proxy.authorization = "Proxy-Authorization: Basic " +
                          base64(percent_decoded(std::string_view(text).substr(begin, at - begin))) + "\r\n";
    text.erase(begin, at + 1 - begin);
  }
  auto url = parse_url(text);
  if (!url)
    return fail(ErrorCode::kUsage, "the environment names a proxy that is no URL", "proxy");  // it may hold a password
  proxy.url = std::move(*url);
  return proxy;
}

Result<Route> unix_route(const Url& url) {
  Route route;
  sockaddr_un a{};
  a.sun_family = AF_UNIX;
  if (url.unix_path.size() >= sizeof a.sun_path)
    return fail(ErrorCode::kUsage, "the path of a Unix socket has at most 107 bytes", url.unix_path);
  std::memcpy(a.sun_path, url.unix_path.data(), url.unix_path.size());
  std::memcpy(&route.address.storage, &a, sizeof a);
  route.address.length = sizeof a;
  route.address.text = "unix:" + url.unix_path;
  return route;
}

}  // namespace

bool is_exempt(std::string_view list, std::string_view host, uint16_t port) {
  for (std::string_view entry : split(list, ',')) {
    entry = trim(entry);
    if (entry == "*")
      return true;
    if (const size_t colon = entry.rfind(':'); colon != std::string_view::npos && entry.find(':') == colon) {
      const auto number = parse_int(entry.substr(colon + 1));
      if (!number || *number != port)
        continue;
      entry = entry.substr(0, colon);
    }
    while (entry.starts_with('.'))
      entry.remove_prefix(1);
    if (entry.empty())
      continue;
    if (host == entry)
      return true;
    if (host.size() > entry.size() && host.ends_with(entry) && host[host.size() - entry.size() - 1] == '.')
      return true;
  }
  return false;
}

Result<std::vector<Route>> find_routes(const Url& url, const TransportOptions& options) {
  if (!url.unix_path.empty())
    return std::vector{TRY(unix_route(url))};
  Route common;
  if (url.tls) {
    common.tls = TRY(TlsContext::create(options.verify, options.ca_file));
    common.tls_host = url.host;
  }
  std::string host = url.host;
  uint16_t port = url.port;
  std::string named;
  if (options.use_proxies && !is_exempt(environment({"no_proxy", "NO_PROXY"}), url.host, url.port))
    // HTTP_PROXY in capitals is a request header's name in CGI: curl does not read it either.
    named = url.tls ? environment({"https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"})
                    : environment({"http_proxy", "all_proxy", "ALL_PROXY"});
  if (!named.empty()) {
    const Proxy proxy = TRY(parse_proxy(named));
    const std::string full =
        (url.host.find(':') != std::string::npos ? "[" + url.host + "]" : url.host) + ":" + std::to_string(url.port);
    if (url.tls) {
      common.tunnel = "CONNECT " + full + " HTTP/1.1\r\nHost: " + full + "\r\n" + proxy.authorization + "\r\n";
    } else {
      common.target_prefix = "http://" + url.authority();
      common.proxy_authorization = proxy.authorization;
    }
    host = proxy.url.host;
    port = proxy.url.port;
  }
  std::vector<Route> routes;
  for (Address& address : TRY(resolve(host, port))) {
    routes.push_back(common);
    routes.back().address = std::move(address);
  }
  return routes;
}

}  // namespace goodput
