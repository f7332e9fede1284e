#include "net/wire.h"

#include <array>
#include <cstring>

#include "base/limits.h"
#include "base/text.h"

namespace goodput {

Result<Wire> Wire::open(const Route& route) {
  Wire wire;
  wire.socket_ = TRY(start_connect(route.address));
  wire.route_ = &route;
  return wire;
}

Wire::Step Wire::failed(std::string why) {
  failure_ = std::move(why);
  return Step::kFailed;
}

Wire::Step Wire::tunnel_send() {
  while (!scratch_.empty()) {
    const Sent sent = send_some(fd(), scratch_);
    if (sent.error != 0)
      return failed(std::string("the proxy broke off: ") + std::strerror(sent.error));
    if (sent.bytes == 0)
      return Step::kWantsWrite;
    scratch_.erase(0, sent.bytes);
  }
  stage_ = Stage::kTunnelReceive;
  return Step::kReady;
}

// The proxy's answer is a head without a body; nothing of the server can be behind it, because a TLS server waits.
Wire::Step Wire::tunnel_receive() {
  std::array<char, 1> byte;
  while (!scratch_.ends_with("\r\n\r\n")) {
    const Received got = receive_stamped(fd(), byte);
    if (got.kind == Received::Kind::kNothing)
      return Step::kWantsRead;
    if (got.kind != Received::Kind::kBytes)
      return failed("the proxy closed the connection");
    scratch_ += byte[0];
    if (scratch_.size() > limits::kMaxHeaderBytes)
      return failed("the proxy's answer is too long");
  }
  const std::string_view line = std::string_view(scratch_).substr(0, scratch_.find("\r\n"));
  if (!line.starts_with("HTTP/1.") || line.size() < 12 || line[9] != '2')
    return failed("the proxy answered " + std::string(line.substr(line.starts_with("HTTP/1.") ? 9 : 0, 80)));
  scratch_ = std::string();
  return Step::kReady;
}

Wire::Step Wire::advance() {
  while (true) {
    switch (stage_) {
      case Stage::kConnect:
        if (const int error = connect_error(fd()))
          return failed(std::strerror(error));
        scratch_ = route_->tunnel;
        stage_ = !scratch_.empty() ? Stage::kTunnelSend : route_->tls ? Stage::kTlsStart : Stage::kReady;
        break;
      case Stage::kTunnelSend:
        if (const Step step = tunnel_send(); step != Step::kReady)
          return step;
        break;
      case Stage::kTunnelReceive:
        if (const Step step = tunnel_receive(); step != Step::kReady)
          return step;
        stage_ = route_->tls ? Stage::kTlsStart : Stage::kReady;
        break;
      case Stage::kTlsStart: {
        auto session = TlsSession::start(*route_->tls, fd(), route_->tls_host);
        if (!session)
          return failed(session.error().message);
        tls_ = std::move(*session);
        stage_ = Stage::kTlsHandshake;
        break;
      }
      case Stage::kTlsHandshake:
        switch (tls_->handshake()) {
          case TlsSession::Step::kDone:
            stage_ = Stage::kReady;
            break;
          case TlsSession::Step::kWantsRead:
            return Step::kWantsRead;
          case TlsSession::Step::kWantsWrite:
            return Step::kWantsWrite;
          case TlsSession::Step::kFailed:
            return failed(tls_->failure());
        }
        break;
      case Stage::kReady:
        return Step::kReady;
    }
  }
}

}  // namespace goodput
