#include "net/socket.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace goodput {
namespace {

std::string to_text(const addrinfo& a) {
  char host[NI_MAXHOST], port[NI_MAXSERV];
  const int rc =
      getnameinfo(a.ai_addr, a.ai_addrlen, host, sizeof host, port, sizeof port, NI_NUMERICHOST | NI_NUMERICSERV);
  if (rc != 0)
    return "?";
  return a.ai_family == AF_INET6 ? "[" + std::string(host) + "]:" + port : std::string(host) + ":" + port;
}

}  // namespace

Result<std::vector<Address>> resolve(const std::string& host, uint16_t port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV;
  addrinfo* list = nullptr;
  const int rc = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &list);
  if (rc != 0)
    return fail(ErrorCode::kUnreachable, std::string("the name does not resolve: ") + gai_strerror(rc), host);
  std::vector<Address> out;
  for (const addrinfo* a = list; a != nullptr; a = a->ai_next) {
    if (a->ai_addrlen > sizeof(sockaddr_storage))
      continue;
    Address address;
    std::memcpy(&address.storage, a->ai_addr, a->ai_addrlen);
    address.length = a->ai_addrlen;
    address.text = to_text(*a);
    out.push_back(std::move(address));
  }
  freeaddrinfo(list);
  if (out.empty())
    return fail(ErrorCode::kUnreachable, "the name has no address", host);
  return out;
}

void Socket::close() {
  if (fd_ >= 0)
    ::close(fd_);
  fd_ = -1;
}

Result<Socket> start_connect(const Address& to) {
  Socket s(::socket(to.storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!s) {
    const bool full = errno == EMFILE || errno == ENFILE;
    return fail(full ? ErrorCode::kExhausted : ErrorCode::kFailed, std::strerror(errno), to.text);
  }
  const int on = 1;
  setsockopt(s.fd(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  setsockopt(s.fd(), SOL_SOCKET, SO_TIMESTAMPNS, &on, sizeof on);  // where refused, user-space stamps remain
  if (::connect(s.fd(), reinterpret_cast<const sockaddr*>(&to.storage), to.length) != 0 && errno != EINPROGRESS) {
    const bool full = errno == EADDRNOTAVAIL || errno == EAGAIN;
    return fail(full ? ErrorCode::kExhausted : ErrorCode::kUnreachable, std::strerror(errno), to.text);
  }
  return s;
}

int connect_error(int fd) {
  int error = 0;
  socklen_t length = sizeof error;
  return getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length) != 0 ? errno : error;
}

Received receive_stamped(int fd, std::span<char> buffer) {
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(timespec))];
  iovec piece{buffer.data(), buffer.size()};
  msghdr message{};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  const ssize_t n = ::recvmsg(fd, &message, MSG_DONTWAIT);
  if (n == 0)
    return {Received::Kind::kClosed, 0, 0, std::nullopt};
  if (n < 0) {
    if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)
      return {Received::Kind::kNothing, 0, 0, std::nullopt};
    return {Received::Kind::kError, 0, errno, std::nullopt};
  }
  Received out{Received::Kind::kBytes, static_cast<size_t>(n), 0, std::nullopt};
  for (cmsghdr* c = CMSG_FIRSTHDR(&message); c != nullptr; c = CMSG_NXTHDR(&message, c)) {
    if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_TIMESTAMPNS)
      continue;
    timespec t;
    std::memcpy(&t, CMSG_DATA(c), sizeof t);
    if (t.tv_sec != 0)
      out.kernel_realtime = Nanos(int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec);
  }
  return out;
}

Sent send_some(int fd, std::string_view bytes) {
  const ssize_t n = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  if (n >= 0)
    return {static_cast<size_t>(n), 0};
  if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)
    return {0, 0};
  return {0, errno};
}

size_t raise_descriptor_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
    return 1024;
  if (limit.rlim_cur < limit.rlim_max) {
    const rlimit raised{limit.rlim_max, limit.rlim_max};
    if (setrlimit(RLIMIT_NOFILE, &raised) == 0)
      limit.rlim_cur = limit.rlim_max;
  }
  return static_cast<size_t>(limit.rlim_cur);
}

}  // namespace goodput
