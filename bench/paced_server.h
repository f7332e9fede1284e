// A server that answers every request with a stream of tokens at an exact pace: on one thread, `burst` streams at a
// time (a decode step) or one after the other. It notes the time of each token immediately before its send(), so that a
// client's stamps can be held against the truth. For benchmarks only; shares no code with the client.
#pragma once

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace paced {

inline int64_t now_ns() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1'000'000'000LL + t.tv_nsec;
}

struct Pace {
  int streams = 10'000;  // sending begins once so many requests have come
  int tokens = 50;       // of each stream
  double rate = 25'000;  // tokens per second over all streams
  int burst = 256;
  int delay_every = 0;  // > 0: each so many-th token is noted, held back by delay_ns, then sent
  int64_t delay_ns = 5'000'000;
};

// One line of the log.
struct Sent {
  uint32_t request, token;
  int64_t at_ns;    // CLOCK_MONOTONIC, before send()
  int64_t delayed;  // 1: held back
};

class Server {
 public:
  explicit Server(const Pace& pace) : pace_(pace) {
    rlimit files{};
    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
    listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    sockaddr_in a{};
    a.sin_family = AF_INET;
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof a;
    if (::bind(listener_, reinterpret_cast<sockaddr*>(&a), sizeof a) != 0 || ::listen(listener_, 4096) != 0 ||
        ::getsockname(listener_, reinterpret_cast<sockaddr*>(&a), &length) != 0) {
      std::perror("paced server");
      std::exit(1);
    }
    port_ = ntohs(a.sin_port);
    epoll_ = ::epoll_create1(EPOLL_CLOEXEC);
    epoll_event e{};
    e.events = EPOLLIN;
    e.data.fd = listener_;
    ::epoll_ctl(epoll_, EPOLL_CTL_ADD, listener_, &e);
    log_.reserve(static_cast<size_t>(pace.streams) * static_cast<size_t>(pace.tokens));
  }

  int port() const { return port_; }
  const std::vector<Sent>& log() const { return log_; }

  // Answers requests until `streams` of them wait.
  void gather() {
    while (static_cast<int>(streams_.size()) < pace_.streams)
      look(-1);
  }

  // Sends all tokens of all streams at their pace, then their ends. Returns the seconds it took.
  double play() {
    const int64_t start = now_ns() + 1'000'000;
    const double step_ns = 1e9 * pace_.burst / pace_.rate;
    const uint64_t all = static_cast<uint64_t>(pace_.streams) * static_cast<uint64_t>(pace_.tokens);
    uint64_t sent = 0;
    for (uint64_t step = 0; sent < all; ++step) {
      wait_until(start + static_cast<int64_t>(static_cast<double>(step) * step_ns));
      for (int i = 0; i < pace_.burst && sent < all; ++i, ++sent)
        send_token(streams_[sent % streams_.size()], static_cast<uint32_t>(sent / streams_.size()));
    }
    for (const Stream& s : streams_)
      send_all(s.fd, end_);
    return static_cast<double>(now_ns() - start) * 1e-9;
  }

  // Answers each request at once with a whole stream, until `until_ns` or everybody has gone after the first.
  void answer_at_once(int64_t until_ns) {
    std::string all;
    for (int i = 0; i < pace_.tokens; ++i)
      all += chunk_;
    all += end_;
    bool any = false;
    while (now_ns() < until_ns && !(any && open_ == 0)) {
      look(100);
      for (const Stream& s : streams_)
        send_all(s.fd, all);
      any = any || !streams_.empty();
      streams_.clear();
    }
  }

  // Answers what else comes (a client asks for the models again behind its run) until everybody has gone or `limit_ns`.
  void linger(int64_t limit_ns) {
    const int64_t until = now_ns() + limit_ns;
    while (now_ns() < until && open_ > 0)
      look(100);
  }

 private:
  struct Stream {
    int fd;
    uint32_t request;
  };

  static void wait_until(int64_t ns) {
    const timespec t{ns / 1'000'000'000, ns % 1'000'000'000};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, nullptr) != 0) {
    }
  }

  static void send_all(int fd, const std::string& bytes) {
    size_t done = 0;
    while (done < bytes.size()) {
      const ssize_t n = ::send(fd, bytes.data() + done, bytes.size() - done, MSG_NOSIGNAL);
      if (n < 0 && errno == EAGAIN)
        continue;
      if (n <= 0)
        return;
      done += static_cast<size_t>(n);
    }
  }

  void send_token(const Stream& s, uint32_t token) {
    const bool held = pace_.delay_every > 0 && log_.size() % static_cast<size_t>(pace_.delay_every) == 0;
    log_.push_back({s.request, token, now_ns(), held});
    if (held)
      while (now_ns() < log_.back().at_ns + pace_.delay_ns) {
      }
    send_all(s.fd, chunk_);
  }

  void look(int timeout_ms) {
    epoll_event ready[256];
    const int n = ::epoll_wait(epoll_, ready, 256, timeout_ms);
    for (int i = 0; i < n; ++i)
      if (ready[i].data.fd == listener_)
        accept_all();
      else
        read_request(ready[i].data.fd);
  }

  void accept_all() {
    for (int fd; (fd = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK)) >= 0; ++open_) {
      const int on = 1;
      ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
      epoll_event e{};
      e.events = EPOLLIN;
      e.data.fd = fd;
      ::epoll_ctl(epoll_, EPOLL_CTL_ADD, fd, &e);
      if (input_.size() <= static_cast<size_t>(fd))
        input_.resize(static_cast<size_t>(fd) + 1);
    }
  }

  void read_request(int fd) {
    char buffer[65536];
    const ssize_t n = ::recv(fd, buffer, sizeof buffer, 0);
    if (n <= 0) {
      ::close(fd);
      --open_;
      return;
    }
    std::string& in = input_[static_cast<size_t>(fd)];
    in.append(buffer, static_cast<size_t>(n));
    const size_t head = in.find("\r\n\r\n");
    if (head == std::string::npos)
      return;
    if (in.starts_with("GET ")) {
      in.clear();
      return send_all(fd, models_);
    }
    const size_t length_at = in.find("Content-Length: ");
    if (length_at == std::string::npos || in.size() < head + 4 + std::strtoul(in.c_str() + length_at + 16, nullptr, 10))
      return;
    const size_t id_at = in.find("X-Request-Id: ");
    const size_t dash = id_at == std::string::npos ? id_at : in.find_last_of('-', in.find("\r\n", id_at));
    streams_.push_back(
        {fd, dash == std::string::npos ? 0 : static_cast<uint32_t>(std::strtoul(in.c_str() + dash + 1, nullptr, 10))});
    in = std::string();
    send_all(fd, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n");
  }

  static std::string chunk(const std::string& body) {
    char size[32];
    std::snprintf(size, sizeof size, "%zx\r\n", body.size());
    return size + body + "\r\n";
  }
  static std::string json_answer(const std::string& body) {
    return "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: " +
           std::to_string(body.size()) + "\r\n\r\n" + body;
  }

  Pace pace_;
  int listener_ = -1, epoll_ = -1, port_ = 0, open_ = 0;
  std::vector<std::string> input_;  // by descriptor
  std::vector<Stream> streams_;
  std::vector<Sent> log_;
  const std::string models_ = json_answer(R"({"object":"list","data":[{"id":"paced","object":"model"}]})");
  const std::string chunk_ = chunk(
      "data: {\"id\":\"cmpl-0123456789abcdef0123\",\"object\":\"text_completion\",\"created\":1764500000,\"model\":"
      "\"paced\",\"choices\":[{\"index\":0,\"text\":\" token\",\"logprobs\":null,\"finish_reason\":null}],"
      "\"system_fingerprint\":\"b0-0000000\"}\n\n");
  const std::string end_ =
      chunk(
          "data: "
          "{\"id\":\"cmpl-0123456789abcdef0123\",\"object\":\"text_completion\",\"choices\":[{\"index\":0,\"text\":"
          "\"\",\"finish_reason\":\"length\"}]}\n\n") +
      chunk("data: {\"choices\":[],\"usage\":{\"prompt_tokens\":8,\"completion_tokens\":" +
            std::to_string(pace_.tokens) + "}}\n\n") +
      chunk("data: [DONE]\n\n") + "0\r\n\r\n";
};

}  // namespace paced
