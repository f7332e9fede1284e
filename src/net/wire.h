// One connection along a route: TCP or Unix connect, then a proxy's tunnel, then TLS, each without blocking; afterwards
// bytes out and in. The caller owns the loop and tells it when the descriptor is ready. Not thread-safe.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "net/route.h"
#include "net/socket.h"
#include "net/tls.h"

namespace goodput {

class Wire {
 public:
  Wire() = default;
  // Begins; `route` outlives the wire. Fails as start_connect does.
  static Result<Wire> open(const Route& route);

  int fd() const { return socket_.fd(); }
  enum class Step : uint8_t { kReady, kWantsRead, kWantsWrite, kFailed };
  // Goes on with the set-up; first once the descriptor is writable, then as each step wants.
  Step advance();
  // After kFailed: why, for people. "Connection refused", "the certificate is refused: …", "the proxy answered 407 …".
  const std::string& failure() const { return failure_; }

  // As receive_stamped and send_some. Under TLS call receive until kNothing: see buffers().
  Received receive(std::span<char> buffer) { return tls_ ? tls_->receive(buffer) : receive_stamped(fd(), buffer); }
  Sent send(std::string_view bytes) { return tls_ ? tls_->send(bytes) : send_some(fd(), bytes); }
  // Whether bytes may wait here that no readiness of the descriptor tells.
  bool buffers() const { return tls_ != nullptr; }

 private:
  enum class Stage : uint8_t { kConnect, kTunnelSend, kTunnelReceive, kTlsStart, kTlsHandshake, kReady };
  Step failed(std::string why);
  Step tunnel_send();
  Step tunnel_receive();

  Socket socket_;
  const Route* route_ = nullptr;
  Stage stage_ = Stage::kConnect;
  std::unique_ptr<TlsSession> tls_;
  std::string scratch_;  // of the tunnel: sent so far (as a count of bytes left) or the proxy's answer
  std::string failure_;
};

}  // namespace goodput
