// A server for tests that does exactly what it is told, byte by byte: resets, stalls, half answers, things that are no
// HTTP. Plain blocking sockets, one thread per connection, an ephemeral port on 127.0.0.1. Shares no code with the
// client.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/check.h"

namespace goodput {

class ScriptedServer {
 public:
  // One connection, while a request of it is being answered.
  struct Peer {
    int fd;
    bool open = true;
    const std::atomic<bool>& stopping;

    void send(std::string_view bytes) const {
      while (!bytes.empty()) {
        const ssize_t n = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
        if (n <= 0)
          return;
        bytes.remove_prefix(static_cast<size_t>(n));
      }
    }
    void close() { open = false; }
    void reset() {
      const linger now{1, 0};
      setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
      open = false;
    }
    // Until the client goes away or the test is over.
    void stall() {
      char byte;
      while (!stopping && ::recv(fd, &byte, 1, MSG_DONTWAIT) != 0)
        usleep(2000);
      open = false;
    }
  };
  // Answers POST number `n` (from 0, over all connections).
  using Answer = std::function<void(int n, const std::string& request, Peer&)>;

  explicit ScriptedServer(Answer answer, Answer models = {}) : answer_(std::move(answer)), models_(std::move(models)) {
    listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in a{};
    a.sin_family = AF_INET;
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof a;
    CHECK(::bind(listener_, reinterpret_cast<sockaddr*>(&a), sizeof a) == 0 && ::listen(listener_, 512) == 0 &&
              ::getsockname(listener_, reinterpret_cast<sockaddr*>(&a), &length) == 0,
          "the test's server cannot listen");
    port_ = ntohs(a.sin_port);
    acceptor_ = std::thread([this] { accept_all(); });
  }
  ~ScriptedServer() {
    stopping_ = true;
    ::shutdown(listener_, SHUT_RDWR);
    acceptor_.join();
    ::close(listener_);
    {
      std::lock_guard lock(mutex_);
      for (const int fd : open_)
        ::shutdown(fd, SHUT_RDWR);
    }
    for (auto& t : threads_)
      t.join();
  }

  std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }
  int port() const { return port_; }
  int posts() const { return posts_; }
  int connections() const { return accepted_; }
  std::vector<std::string> requests() {
    std::lock_guard lock(mutex_);
    return requests_;
  }

  static std::string chunk(std::string_view body) {
    char size[32];
    snprintf(size, sizeof size, "%zx\r\n", body.size());
    return size + std::string(body) + "\r\n";
  }
  static std::string stream_head() {
    return "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
  }
  static std::string body(int status, std::string_view type, std::string_view text) {
    return "HTTP/1.1 " + std::to_string(status) + " Some Reason\r\nContent-Type: " + std::string(type) +
           "\r\nContent-Length: " + std::to_string(text.size()) + "\r\n\r\n" + std::string(text);
  }
  static std::string token(std::string_view text) {
    return "data: {\"choices\":[{\"index\":0,\"text\":\"" + std::string(text) + "\",\"finish_reason\":null}]}\n\n";
  }
  static std::string finish(int tokens) {
    return "data: {\"choices\":[{\"index\":0,\"text\":\"\",\"finish_reason\":\"length\"}]}\n\n"
           "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":" +
           std::to_string(tokens) + "}}\n\n";
  }
  // A whole good answer of `n` tokens.
  static std::string good(int n) {
    std::string out = stream_head();
    for (int i = 0; i < n; ++i)
      out += chunk(token("t"));
    return out + chunk(finish(n)) + chunk("data: [DONE]\n\n") + "0\r\n\r\n";
  }

 private:
  void accept_all() {
    while (!stopping_) {
      const int fd = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
      if (fd < 0)
        return;
      const int on = 1;
      setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
      std::lock_guard lock(mutex_);
      ++accepted_;
      open_.push_back(fd);
      threads_.emplace_back([this, fd] { serve(fd); });
    }
  }

  void serve(int fd) {
    std::string in;
    Peer peer{fd, true, stopping_};
    while (peer.open && read_request(fd, in)) {
      const size_t head = in.find("\r\n\r\n") + 4;
      const size_t at = in.find("Content-Length: ");
      const size_t length = at != std::string::npos && at < head ? std::stoul(in.substr(at + 16)) : 0;
      const std::string request = in.substr(0, head + length);
      in.erase(0, head + length);
      if (request.starts_with("GET ")) {
        if (models_) {
          models_(0, request, peer);
        } else {
          peer.send(body(200, "application/json", R"({"data":[{"id":"test-model"}]})"));
        }
        continue;
      }
      {
        std::lock_guard lock(mutex_);
        requests_.push_back(request);
      }
      answer_(posts_++, request, peer);
    }
    std::lock_guard lock(mutex_);
    std::erase(open_, fd);
    ::close(fd);
  }

  static bool read_request(int fd, std::string& in) {
    char buffer[65536];
    while (true) {
      const size_t head = in.find("\r\n\r\n");
      if (head != std::string::npos) {
        const size_t at = in.find("Content-Length: ");
        const size_t length = at != std::string::npos && at < head ? std::stoul(in.substr(at + 16)) : 0;
        if (in.size() >= head + 4 + length)
          return true;
      }
      const ssize_t n = ::recv(fd, buffer, sizeof buffer, 0);
      if (n <= 0)
        return false;
      in.append(buffer, static_cast<size_t>(n));
    }
  }

  Answer answer_, models_;
  int listener_ = -1, port_ = 0;
  std::atomic<bool> stopping_ = false;
  std::atomic<int> posts_ = 0, accepted_ = 0;
  std::mutex mutex_;
  std::vector<int> open_;
  std::vector<std::string> requests_;
  std::vector<std::thread> threads_;
  std::thread acceptor_;
};

}  // namespace goodput
