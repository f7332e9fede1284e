#include "net/wire.h"

#include <arpa/inet.h>
#include <poll.h>
#include <sys/un.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <thread>

#include <gtest/gtest.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include "base/clock.h"
#include "net/http_fetch.h"

namespace goodput {
namespace {

const std::string kAnswer = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";

std::string scratch_folder() {
  char folder[] = "/tmp/goodput-wire-XXXXXX";
  return ::mkdtemp(folder);
}

// A self-signed certificate for `names`, as files.
struct Certificate {
  explicit Certificate(const std::string& names) : folder(scratch_folder()) {
    key = EVP_EC_gen("P-256");
    x509 = X509_new();
    ASN1_INTEGER_set(X509_get_serialNumber(x509), 1);
    X509_gmtime_adj(X509_getm_notBefore(x509), -3600);
    X509_gmtime_adj(X509_getm_notAfter(x509), 86400);
    X509_set_version(x509, 2);
    X509_set_pubkey(x509, key);
    X509_NAME* name = X509_get_subject_name(x509);
    X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, reinterpret_cast<const unsigned char*>("test"), -1, -1, 0);
    X509_set_issuer_name(x509, name);
    X509V3_CTX context;
    X509V3_set_ctx_nodb(&context);
    X509V3_set_ctx(&context, x509, x509, nullptr, nullptr, 0);
    X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, &context, NID_subject_alt_name, names.c_str());
    X509_add_ext(x509, extension, -1);
    X509_EXTENSION_free(extension);
    X509_sign(x509, key, EVP_sha256());
    std::FILE* out = std::fopen(file().c_str(), "w");
    PEM_write_X509(out, x509);
    std::fclose(out);
  }
  ~Certificate() {
    X509_free(x509);
    EVP_PKEY_free(key);
    std::filesystem::remove_all(folder);
  }
  std::string file() const { return folder + "/certificate.pem"; }

  std::string folder;
  EVP_PKEY* key = nullptr;
  X509* x509 = nullptr;
};

// Accepts one connection after the other and hands each to `serve`.
class Listener {
 public:
  Listener(const std::string& unix_path, std::function<void(int)> serve) : serve_(std::move(serve)) {
    if (unix_path.empty()) {
      fd_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
      sockaddr_in a{};
      a.sin_family = AF_INET;
      a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
      socklen_t length = sizeof a;
      ::bind(fd_, reinterpret_cast<sockaddr*>(&a), length);
      ::getsockname(fd_, reinterpret_cast<sockaddr*>(&a), &length);
      port_ = ntohs(a.sin_port);
    } else {
      fd_ = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
      sockaddr_un a{};
      a.sun_family = AF_UNIX;
      unix_path.copy(a.sun_path, sizeof a.sun_path - 1);
      ::bind(fd_, reinterpret_cast<sockaddr*>(&a), sizeof a);
    }
    ::listen(fd_, 16);
    thread_ = std::thread([this] {
      for (int peer; (peer = ::accept4(fd_, nullptr, nullptr, SOCK_CLOEXEC)) >= 0; ::close(peer))
        serve_(peer);
    });
  }
  ~Listener() {
    ::shutdown(fd_, SHUT_RDWR);
    thread_.join();
    ::close(fd_);
  }
  int port() const { return port_; }

 private:
  std::function<void(int)> serve_;
  int fd_ = -1, port_ = 0;
  std::thread thread_;
};

std::string read_head(int fd) {
  std::string in;
  for (char c; !in.ends_with("\r\n\r\n") && ::recv(fd, &c, 1, 0) == 1;)
    in += c;
  return in;
}

void send_all(int fd, const std::string& bytes) {
  static_cast<void>(::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL));
}

// A TLS server over one accepted connection; its request ends up in `seen`.
void serve_tls(int fd, const Certificate& certificate, const std::string& answer, std::string* seen = nullptr) {
  SSL_CTX* context = SSL_CTX_new(TLS_server_method());
  SSL_CTX_use_certificate(context, certificate.x509);
  SSL_CTX_use_PrivateKey(context, certificate.key);
  SSL* session = SSL_new(context);
  SSL_set_fd(session, fd);
  if (SSL_accept(session) == 1) {
    std::string in;
    for (char c; !in.ends_with("\r\n\r\n") && SSL_read(session, &c, 1) == 1;)
      in += c;
    if (seen != nullptr)
      *seen = in;
    for (size_t done = 0; done < answer.size();) {
      const int n =
          SSL_write(session, answer.data() + done, static_cast<int>(std::min<size_t>(answer.size() - done, 7000)));
      if (n <= 0)
        break;
      done += static_cast<size_t>(n);
    }
    SSL_shutdown(session);
  }
  SSL_free(session);
  SSL_CTX_free(context);
}

class WireTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::signal(SIGPIPE, SIG_IGN);
    for (const char* name :
         {"http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY", "no_proxy", "NO_PROXY"})
      ::unsetenv(name);
  }
  void TearDown() override { SetUp(); }

  static Result<HttpAnswer> fetch(const std::string& url, const TransportOptions& options = {}) {
    const Url parsed = TRY(parse_url(url));
    const auto routes = TRY(find_routes(parsed, options));
    const Route& route = routes.front();
    return http_fetch(route,
                      "GET " + route.target_prefix + "/ HTTP/1.1\r\nHost: " + parsed.authority() + "\r\n" +
                          route.proxy_authorization + "\r\n",
                      seconds(10));
  }
};

TEST_F(WireTest, UnixSocket) {
  const std::string folder = scratch_folder(), path = folder + "/socket";
  {
    std::string seen;
    Listener server(path, [&](int fd) {
      seen = read_head(fd);
      send_all(fd, kAnswer);
    });
    const auto answer = fetch("unix://" + path);
    ASSERT_TRUE(answer) << describe(answer.error());
    EXPECT_EQ(answer->body, "hello");
    EXPECT_NE(seen.find("Host: localhost\r\n"), std::string::npos) << seen;
  }
  const auto gone = fetch("unix://" + path);
  ASSERT_FALSE(gone);
  EXPECT_EQ(gone.error().code, ErrorCode::kUnreachable);
  std::filesystem::remove_all(folder);
  EXPECT_EQ(fetch("unix:///" + std::string(200, 'x')).error().code, ErrorCode::kUsage);
}

TEST_F(WireTest, TlsWithATrustedCertificate) {
  const Certificate certificate("IP:127.0.0.1");
  const std::string body(100'000, 'x');
  Listener server(
      "", [&](int fd) { serve_tls(fd, certificate, "HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n" + body); });
  const auto answer = fetch("https://127.0.0.1:" + std::to_string(server.port()), {.ca_file = certificate.file()});
  ASSERT_TRUE(answer) << describe(answer.error());
  EXPECT_EQ(answer->status, 200);
  EXPECT_EQ(answer->body, body.substr(0, answer->body.size()));
}

TEST_F(WireTest, TlsRefusesWhatItCannotVerify) {
  const Certificate certificate("IP:127.0.0.1,DNS:other.example");
  Listener server("", [&](int fd) { serve_tls(fd, certificate, kAnswer); });
  const std::string port = std::to_string(server.port());
  const auto untrusted = fetch("https://127.0.0.1:" + port);
  ASSERT_FALSE(untrusted);
  EXPECT_EQ(untrusted.error().code, ErrorCode::kUnreachable);
  EXPECT_NE(untrusted.error().message.find("certificate is refused"), std::string::npos) << untrusted.error().message;
  const auto wrong_name = fetch("https://localhost:" + port, {.ca_file = certificate.file()});
  ASSERT_FALSE(wrong_name);
  EXPECT_NE(wrong_name.error().message.find("certificate is refused: "), std::string::npos)
      << wrong_name.error().message;
  const auto unverified = fetch("https://127.0.0.1:" + port, {.verify = false});
  EXPECT_TRUE(unverified) << describe(unverified.error());
}

TEST_F(WireTest, TlsToAServerThatSpeaksNone) {
  Listener server("", [&](int fd) { send_all(fd, kAnswer); });
  const auto answer = fetch("https://127.0.0.1:" + std::to_string(server.port()));
  ASSERT_FALSE(answer);
  EXPECT_NE(answer.error().message.find("TLS handshake failed"), std::string::npos) << answer.error().message;
}

TEST_F(WireTest, PlainRequestsGoThroughAProxyWithTheWholeUrl) {
  std::string seen;
  Listener proxy("", [&](int fd) {
    seen = read_head(fd);
    send_all(fd, kAnswer);
  });
  ::setenv("http_proxy", ("http://user:p%40ss@127.0.0.1:" + std::to_string(proxy.port())).c_str(), 1);
  const auto answer = fetch("http://model.example:8000/v1");
  ASSERT_TRUE(answer) << describe(answer.error());
  EXPECT_TRUE(seen.starts_with("GET http://model.example:8000/ HTTP/1.1\r\n")) << seen;
  EXPECT_NE(seen.find("Proxy-Authorization: Basic dXNlcjpwQHNz\r\n"), std::string::npos) << seen;  // user:p@ss
  ::setenv("no_proxy", "127.0.0.1", 1);
  Listener direct("", [&](int fd) { send_all(fd, kAnswer); });
  EXPECT_TRUE(fetch("http://127.0.0.1:" + std::to_string(direct.port())));
}

TEST_F(WireTest, TlsGoesThroughAProxysTunnel) {
  const Certificate certificate("DNS:model.example");
  std::string connect, inside;
  Listener proxy("", [&](int fd) {
    connect = read_head(fd);
    send_all(fd, "HTTP/1.1 200 Connection established\r\nVia: test\r\n\r\n");
    serve_tls(fd, certificate, kAnswer, &inside);
  });
  ::setenv("https_proxy", ("127.0.0.1:" + std::to_string(proxy.port())).c_str(), 1);
  const auto answer = fetch("https://model.example/v1", {.ca_file = certificate.file()});
  ASSERT_TRUE(answer) << describe(answer.error());
  EXPECT_EQ(connect, "CONNECT model.example:443 HTTP/1.1\r\nHost: model.example:443\r\n\r\n");
  EXPECT_TRUE(inside.starts_with("GET / HTTP/1.1\r\n")) << inside;
}

TEST_F(WireTest, AProxyThatRefusesSaysWhy) {
  Listener proxy("", [&](int fd) {
    read_head(fd);
    send_all(fd, "HTTP/1.1 407 Proxy Authentication Required\r\n\r\n");
  });
  ::setenv("https_proxy", ("http://127.0.0.1:" + std::to_string(proxy.port())).c_str(), 1);
  const auto answer = fetch("https://model.example");
  ASSERT_FALSE(answer);
  EXPECT_NE(answer.error().message.find("the proxy answered 407"), std::string::npos) << answer.error().message;
  ::setenv("https_proxy", "socks5://secret:word@127.0.0.1:1", 1);
  const auto socks = fetch("https://model.example");
  ASSERT_FALSE(socks);
  EXPECT_EQ(socks.error().code, ErrorCode::kUsage);
  EXPECT_EQ(describe(socks.error()).find("word"), std::string::npos) << "a password must not be shown";
}

TEST(NoProxy, Exemptions) {
  EXPECT_TRUE(is_exempt("*", "a.b", 80));
  EXPECT_TRUE(is_exempt("localhost, .corp.example", "x.corp.example", 80));
  EXPECT_TRUE(is_exempt("corp.example", "corp.example", 80));
  EXPECT_TRUE(is_exempt("corp.example", "x.corp.example", 80));
  EXPECT_FALSE(is_exempt("corp.example", "xcorp.example", 80));
  EXPECT_TRUE(is_exempt("10.0.0.7:8000", "10.0.0.7", 8000));
  EXPECT_FALSE(is_exempt("10.0.0.7:8000", "10.0.0.7", 80));
  EXPECT_FALSE(is_exempt("", "a", 80));
  EXPECT_FALSE(is_exempt(",,", "a", 80));
}

}  // namespace
}  // namespace goodput
