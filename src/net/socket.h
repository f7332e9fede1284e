// TCP sockets of the load generator: non-blocking connect, reads with the kernel's own receive stamp, names resolved
// once. No third-party type, no callbacks: the caller owns the loop. Thin over Linux; each call's failure is a value.
#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/units.h"

namespace goodput {

struct Address {
  sockaddr_storage storage{};
  socklen_t length = 0;
  std::string text;  // "127.0.0.1:8000", for messages
};

// getaddrinfo: blocks, so once per run and before it. kUnreachable names the host and the resolver's words.
Result<std::vector<Address>> resolve(const std::string& host, uint16_t port);

// A file descriptor that closes itself.
class Socket {
 public:
  Socket() = default;
  explicit Socket(int fd) : fd_(fd) {}
  ~Socket() { close(); }
  Socket(Socket&& o) noexcept : fd_(std::exchange(o.fd_, -1)) {}
  Socket& operator=(Socket&& o) noexcept {
    std::swap(fd_, o.fd_);
    return *this;
  }
  int fd() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  void close();

 private:
  int fd_ = -1;
};

// Begins a connection: non-blocking, TCP_NODELAY, kernel receive stamps on. It is established (or has failed, see
// connect_error) once the descriptor is writable. The error holds errno's words; kExhausted: descriptors or ports are
// used up on this side.
Result<Socket> start_connect(const Address&);
// 0, or the errno with which a connect ended.
int connect_error(int fd);

struct Received {
  enum class Kind : uint8_t { kBytes, kClosed, kNothing, kError } kind;
  size_t bytes = 0;
  int error = 0;                         // errno of kError
  std::optional<Nanos> kernel_realtime;  // CLOCK_REALTIME when the last byte came in
};
// One recvmsg; never blocks.
Received receive_stamped(int fd, std::span<char> buffer);

struct Sent {
  size_t bytes = 0;  // 0 and no error: the socket is full
  int error = 0;
};
Sent send_some(int fd, std::string_view bytes);

// Raises the soft limit of descriptors to the hard one; how many this process may have open then.
size_t raise_descriptor_limit();

}  // namespace goodput
