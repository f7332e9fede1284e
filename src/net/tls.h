// TLS of the load generator over a socket that it owns: non-blocking, verified against the system's certificates and
// the host's name. OpenSSL stays behind this header. Bytes under TLS have no kernel stamp of their own: a record is
// decrypted from several segments, so only user-space stamps are honest.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "net/socket.h"

namespace goodput {

// What all connections of a run share. Thread-compatible.
class TlsContext {
 public:
  // `ca_file`: more trusted certificates (PEM); empty: the system's only (SSL_CERT_FILE and SSL_CERT_DIR are honoured).
  // `verify` off accepts any certificate. kUsage: the file cannot be read or holds none.
  static Result<std::shared_ptr<const TlsContext>> create(bool verify, const std::string& ca_file);
  ~TlsContext();

 private:
  TlsContext() = default;
  friend class TlsSession;
  void* context_ = nullptr;
  bool verify_ = true;
};

// One connection. Not thread-safe.
class TlsSession {
 public:
  // Over a connected, non-blocking `fd`, which stays the caller's. `host`: name or address that the certificate must be
  // for.
  static Result<std::unique_ptr<TlsSession>> start(const TlsContext&, int fd, const std::string& host);
  ~TlsSession();

  enum class Step : uint8_t { kDone, kWantsRead, kWantsWrite, kFailed };
  Step handshake();
  // After kFailed: why, for people.
  const std::string& failure() const { return failure_; }

  // As receive_stamped and send_some. More may be decrypted already than one call returned, which no readiness tells:
  // call until kNothing.
  Received receive(std::span<char> buffer);
  Sent send(std::string_view bytes);

 private:
  TlsSession() = default;
  void* session_ = nullptr;
  std::string failure_;
};

}  // namespace goodput
