// An HTTP/1.1 server without Boost in its interface: one loop thread owns every connection, handlers answer now or
// later from any thread, and a stream's chunks that were pushed before the loop wakes go out in one write.
//
// Beast only parses (as a passive state machine); reading and writing are ours, because a read must stay pending while
// an answer is being made: that is how a vanished client is noticed while its request still waits in a queue.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/limits.h"
#include "base/result.h"
#include "base/units.h"

namespace goodput {

using HttpHeaders = std::vector<std::pair<std::string, std::string>>;

struct IncomingRequest {
  std::string method;   // as sent: "GET"
  std::string target;   // path and query, as sent
  HttpHeaders headers;  // names in lower case, order of arrival
  std::string body;
  std::string peer;    // "127.0.0.1:4711"
  TimePoint received;  // monotonic; the read that completed the request returned then

  // The first header of this (lower-case) name; empty if there is none.
  std::string_view header(std::string_view name) const;
};

struct HttpReply {
  int status = 200;
  std::string content_type = "application/json";
  std::string body;
  HttpHeaders headers = {};
};

// The right and the duty to answer one request. Copies share it; every call may come from any thread, and calls that
// happen one after the other take effect in that order. Once the client has gone, calls do nothing. When the last copy
// is dropped without an answer, the client gets a 500 (or, within a stream, a closed connection).
class HttpResponder {
 public:
  struct Exchange;  // http_server.cc
  HttpResponder() = default;
  explicit HttpResponder(std::shared_ptr<Exchange>);

  void send(HttpReply) const;  // the whole answer
  // A stream: chunked under HTTP/1.1, until close under 1.0. `push` sends one piece (empty: nothing), `finish` ends it.
  void start_stream(std::string content_type, HttpHeaders = {}) const;
  void push(std::string bytes) const;
  void finish() const;
  // `gone` runs once on the loop's thread if the client disconnects (or half-closes, or stops reading for too long)
  // before the answer is complete; at the loop's next turn if that has already happened.
  void on_disconnect(std::function<void()> gone) const;
  bool gone() const;

 private:
  std::shared_ptr<Exchange> exchange_;
};

class HttpServer {
 public:
  struct Options {
    std::string host = "127.0.0.1";  // a name or an address; "::" and "0.0.0.0" for all
    int port = 0;                    // 0: any free one
    size_t max_header_bytes = limits::kMaxHeaderBytes;
    size_t max_body_bytes = limits::kMaxBodyBytes;
    size_t max_unsent_bytes = limits::kMaxUnsentBytes;
    int max_connections = limits::kMaxConnections;
    Nanos header_timeout = limits::kHeaderTimeout;
    Nanos body_timeout = limits::kBodyTimeout;
    Nanos idle_timeout = limits::kIdleTimeout;
    Nanos write_timeout = limits::kWriteTimeout;
    // What a client hears when HTTP itself refuses it: 400 malformed, 413 body, 431 headers, 500, 503 connections.
    std::function<HttpReply(int status, std::string_view message)> refusal;
  };
  // Runs on the loop's thread; must not block.
  using Handler = std::function<void(IncomingRequest&&, HttpResponder)>;

  // Binds and listens. kUsage: the port is taken, not permitted, or the host is not one of this machine's.
  static Result<std::unique_ptr<HttpServer>> create(const Options&, Handler);
  ~HttpServer();

  int port() const;
  int connections() const;  // open now; any thread
  // The loop, on the calling thread, until shutdown() is done.
  void run();
  // Thread-safe: runs `work` on the loop's thread, in order.
  void post(std::function<void()> work);
  // Thread-safe. Stops accepting, closes idle connections, lets answers in progress end; closes what remains after
  // `grace`; then run() returns.
  void shutdown(Nanos grace);

  struct Loop;  // http_server.cc

 private:
  explicit HttpServer(std::shared_ptr<Loop>);
  std::shared_ptr<Loop> loop_;
};

}  // namespace goodput
