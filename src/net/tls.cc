#include "net/tls.h"

#include <arpa/inet.h>

#include <cerrno>

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

namespace goodput {
namespace {

SSL_CTX* context_of(void* p) { return static_cast<SSL_CTX*>(p); }
SSL* session_of(void* p) { return static_cast<SSL*>(p); }

std::string last_error() {
  const unsigned long code = ERR_get_error();
  ERR_clear_error();
  const char* reason = code != 0 ? ERR_reason_error_string(code) : nullptr;
  return reason != nullptr ? reason : "unknown error";
}

bool is_address(const std::string& host) {
  unsigned char buffer[sizeof(in6_addr)];
  return inet_pton(AF_INET, host.c_str(), buffer) == 1 || inet_pton(AF_INET6, host.c_str(), buffer) == 1;
}

}  // namespace

Result<std::shared_ptr<const TlsContext>> TlsContext::create(bool verify, const std::string& ca_file) {
  std::shared_ptr<TlsContext> made(new TlsContext);
  made->context_ = SSL_CTX_new(TLS_client_method());
  if (made->context_ == nullptr)
    return fail(ErrorCode::kFailed, "TLS cannot be set up: " + last_error());
  SSL_CTX* context = context_of(made->context_);
  made->verify_ = verify;
  SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
  // A peer that ends without close_notify is judged by HTTP's own framing.
  SSL_CTX_set_options(context, SSL_OP_IGNORE_UNEXPECTED_EOF);
  SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                                SSL_MODE_RELEASE_BUFFERS);  // 10,000 idle streams hold no buffers
  SSL_CTX_set_verify(context, verify ? SSL_VERIFY_PEER : SSL_VERIFY_NONE, nullptr);
  SSL_CTX_set_default_verify_paths(context);
  if (!ca_file.empty() && SSL_CTX_load_verify_locations(context, ca_file.c_str(), nullptr) != 1)
    return fail(ErrorCode::kUsage, "expected a file of certificates (PEM): " + last_error(), ca_file);
  ERR_clear_error();
  return std::shared_ptr<const TlsContext>(std::move(made));
}

TlsContext::~TlsContext() { SSL_CTX_free(context_of(context_)); }

Result<std::unique_ptr<TlsSession>> TlsSession::start(const TlsContext& context, int fd, const std::string& host) {
  std::unique_ptr<TlsSession> made(new TlsSession);
  SSL* session = SSL_new(context_of(context.context_));
  made->session_ = session;
  if (session == nullptr || SSL_set_fd(session, fd) != 1)
    return fail(ErrorCode::kFailed, "TLS cannot begin: " + last_error(), host);
  if (is_address(host)) {
    X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(session), host.c_str());
  } else {
    SSL_set_tlsext_host_name(session, host.c_str());
    SSL_set1_host(session, host.c_str());
  }
  SSL_set_connect_state(session);
  return made;
}

TlsSession::~TlsSession() { SSL_free(session_of(session_)); }

TlsSession::Step TlsSession::handshake() {
  ERR_clear_error();
  errno = 0;
  const int done = SSL_do_handshake(session_of(session_));
  if (done == 1)
    return Step::kDone;
  switch (SSL_get_error(session_of(session_), done)) {
    case SSL_ERROR_WANT_READ:
      return Step::kWantsRead;
    case SSL_ERROR_WANT_WRITE:
      return Step::kWantsWrite;
    default:
      break;
  }
  const long verified = SSL_get_verify_result(session_of(session_));
  if (verified != X509_V_OK)
    failure_ = std::string("the certificate is refused: ") + X509_verify_cert_error_string(verified);
  else
    failure_ = "the TLS handshake failed: " + last_error() + " (is it a TLS server?)";
  ERR_clear_error();
  return Step::kFailed;
}

Received TlsSession::receive(std::span<char> buffer) {
  ERR_clear_error();
  errno = 0;
  size_t n = 0;
  const int ok = SSL_read_ex(session_of(session_), buffer.data(), buffer.size(), &n);
  if (ok == 1)
    return {Received::Kind::kBytes, n, 0, std::nullopt};
  switch (SSL_get_error(session_of(session_), ok)) {
    case SSL_ERROR_WANT_READ:
    case SSL_ERROR_WANT_WRITE:
      return {Received::Kind::kNothing, 0, 0, std::nullopt};
    case SSL_ERROR_ZERO_RETURN:
      return {Received::Kind::kClosed, 0, 0, std::nullopt};
    default:
      break;
  }
  const int error = errno;
  ERR_clear_error();
  if (error == 0)
    return {Received::Kind::kClosed, 0, 0, std::nullopt};
  return {Received::Kind::kError, 0, error, std::nullopt};
}

Sent TlsSession::send(std::string_view bytes) {
  ERR_clear_error();
  errno = 0;
  size_t n = 0;
  const int ok = SSL_write_ex(session_of(session_), bytes.data(), bytes.size(), &n);
  if (ok == 1)
    return {n, 0};
  const int kind = SSL_get_error(session_of(session_), ok);
  if (kind == SSL_ERROR_WANT_READ || kind == SSL_ERROR_WANT_WRITE)
    return {0, 0};
  const int error = errno;
  ERR_clear_error();
  return {0, error != 0 ? error : EPIPE};
}

}  // namespace goodput
