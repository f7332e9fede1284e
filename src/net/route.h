// How the bytes of a request reach a server: straight, over a Unix socket, under TLS, through a proxy of the
// environment. Decided once per run; every connection of the run takes the same way.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "net/socket.h"
#include "net/tls.h"
#include "net/url.h"

namespace goodput {

struct TransportOptions {
  bool verify = true;       // certificates
  std::string ca_file;      // more of them to trust
  bool use_proxies = true;  // http_proxy, https_proxy (and HTTPS_PROXY), all_proxy, no_proxy, as curl reads them
};

struct Route {
  Address address;                        // of the server, or of the proxy
  std::string tunnel;                     // "CONNECT …" to send first; empty: none. May hold the proxy's password
  std::shared_ptr<const TlsContext> tls;  // null: plain
  std::string tls_host;                   // whom the certificate must name
  // Of a plain request through a proxy: what stands before the path in the request line, and a header with the proxy's
  // password (never printed or stored).
  std::string target_prefix, proxy_authorization;
};

// One route per address of the name, in the resolver's order. Resolves: blocks. kUnreachable: the name does not
// resolve; kUsage: a proxy's URL that is none, a scheme of it that is not http, a file without certificates.
Result<std::vector<Route>> find_routes(const Url&, const TransportOptions&);

// Whether no_proxy's `list` ("localhost,.corp.example,10.0.0.7:8000,*") exempts the host.
bool is_exempt(std::string_view list, std::string_view host, uint16_t port);

}  // namespace goodput
