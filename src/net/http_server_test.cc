// The server against raw sockets: what it answers to whole, split, pipelined, slow and hostile clients.
#include "net/http_server.h"

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/random.h"

namespace goodput {
namespace {

// A blocking socket with a generous receive limit: a test that would hang fails instead.
class Client {
 public:
  explicit Client(int port, int receive_buffer = 0) : fd_(::socket(AF_INET, SOCK_STREAM, 0)) {
    if (receive_buffer)
      ::setsockopt(fd_, SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof receive_buffer);
    const timeval limit{20, 0};
    ::setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(static_cast<uint16_t>(port));
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::connect(fd_, reinterpret_cast<sockaddr*>(&to), sizeof to), 0);
  }
  ~Client() { close(); }
  void close() {
    if (fd_ >= 0)
      ::close(fd_);
    fd_ = -1;
  }
  void send(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t n = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (n <= 0)
        return;
      bytes.remove_prefix(static_cast<size_t>(n));
    }
  }
  // Reads until `marker` was seen, or the end.
  std::string until(std::string_view marker) {
    std::string all;
    char buffer[4096];
    while (marker.empty() || all.find(marker) == std::string::npos) {
      const ssize_t n = ::recv(fd_, buffer, sizeof buffer, 0);
      if (n <= 0)
        break;
      all.append(buffer, static_cast<size_t>(n));
    }
    return all;
  }
  std::string to_end() { return until(""); }

 private:
  int fd_;
};

// Lets a test wait for something that another thread does.
class Gate {
 public:
  void open() {
    std::lock_guard lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }
  bool wait() {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(20), [this] { return open_; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool open_ = false;
};

class Running {
 public:
  explicit Running(HttpServer::Handler handler, const HttpServer::Options& options = {}) {
    server = std::move(*HttpServer::create(options, std::move(handler)));
    thread_ = std::thread([this] { server->run(); });
  }
  ~Running() {
    server->shutdown(milliseconds(0));
    thread_.join();
  }
  void join_after_shutdown() {
    thread_.join();
    thread_ = std::thread([] {});
  }
  std::unique_ptr<HttpServer> server;

 private:
  std::thread thread_;
};

void echo(IncomingRequest&& request, const HttpResponder& responder) {
  responder.send({200, "text/plain", fmt::format("{} {} {}", request.method, request.target, request.body), {}});
}

TEST(HttpServer, AnswersAndKeepsTheConnection) {
  Running r(echo);
  Client client(r.server->port());
  client.send("GET /a HTTP/1.1\r\nHost: x\r\n\r\n");
  const std::string first = client.until("GET /a ");
  EXPECT_TRUE(first.starts_with("HTTP/1.1 200 OK\r\n")) << first;
  EXPECT_NE(first.find("Connection: keep-alive"), std::string::npos);
  client.send("POST /b HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nConnection: close\r\n\r\nxyz");
  EXPECT_NE(client.to_end().find("POST /b xyz"), std::string::npos);
}

TEST(HttpServer, AnswersPipelinedRequestsInOrder) {
  Running r(echo);
  Client client(r.server->port());
  std::string all;
  for (int i = 0; i < 2000; ++i)
    all += fmt::format("GET /{}. HTTP/1.1\r\nHost: x\r\n\r\n", i);
  std::thread sender([&] { client.send(all); });
  std::string answers = client.until("GET /1999. ");
  sender.join();
  size_t at = 0;
  for (int i = 0; i < 2000; ++i) {
    at = answers.find(fmt::format("GET /{}. ", i), at);
    ASSERT_NE(at, std::string::npos) << i;
  }
}

TEST(HttpServer, AnySplitOfARequestIsTheSameRequest) {
  Running r(echo);
  const std::string request =
      "POST /split HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n";
  for (size_t cut = 1; cut < request.size(); ++cut) {
    Client client(r.server->port());
    client.send(request.substr(0, cut));
    client.send(request.substr(cut));
    ASSERT_NE(client.until("abcde").find("POST /split abcde"), std::string::npos) << cut;
  }
}

TEST(HttpServer, StreamsChunksFromAnotherThread) {
  std::vector<std::thread> writers;
  std::mutex mutex;
  Running r([&](IncomingRequest&&, const HttpResponder& responder) {
    std::lock_guard lock(mutex);
    writers.emplace_back([responder] {
      responder.start_stream("text/event-stream");
      for (int i = 0; i < 1000; ++i)
        responder.push(fmt::format("data: {}\n\n", i));
      responder.finish();
    });
  });
  Client client(r.server->port());
  client.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  std::string answer = client.until("\r\n0\r\n\r\n");
  EXPECT_NE(answer.find("Transfer-Encoding: chunked"), std::string::npos);
  // Undo the chunking, then every event must be there in order.
  std::string body;
  for (size_t at = answer.find("\r\n\r\n") + 4;;) {
    const size_t size = std::stoul(answer.substr(at), nullptr, 16);
    if (size == 0)
      break;
    at = answer.find("\r\n", at) + 2;
    body += answer.substr(at, size);
    at += size + 2;
  }
  std::string expected;
  for (int i = 0; i < 1000; ++i)
    expected += fmt::format("data: {}\n\n", i);
  EXPECT_EQ(body, expected);
  // The same connection serves again.
  client.send("GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  EXPECT_NE(client.to_end().find("data: 999\n\n"), std::string::npos);
  for (auto& writer : writers)
    writer.join();
}

TEST(HttpServer, StreamsWithoutChunkingToHttp10) {
  Running r([](IncomingRequest&&, const HttpResponder& responder) {
    responder.start_stream("text/plain");
    responder.push("abc");
    responder.finish();
  });
  Client client(r.server->port());
  client.send("GET / HTTP/1.0\r\n\r\n");
  EXPECT_TRUE(client.to_end().ends_with("\r\n\r\nabc"));
}

TEST(HttpServer, NoticesAClientThatLeavesWhileItsRequestWaits) {
  Gate arrived, gone;
  HttpResponder kept;
  Running r([&](IncomingRequest&&, const HttpResponder& responder) {
    responder.on_disconnect([&] { gone.open(); });
    kept = responder;
    arrived.open();
  });
  Client client(r.server->port());
  client.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  ASSERT_TRUE(arrived.wait());
  client.close();
  ASSERT_TRUE(gone.wait());
  EXPECT_TRUE(kept.gone());
  kept.send({});  // does nothing
}

TEST(HttpServer, DropsAClientThatDoesNotRead) {
  Gate gone;
  HttpServer::Options options;
  options.max_unsent_bytes = 256 * 1024;
  std::atomic<int> pushed{0};
  Running r(
      [&](IncomingRequest&&, const HttpResponder& responder) {
        responder.on_disconnect([&] { gone.open(); });
        responder.start_stream("text/plain");
        std::thread([responder, &pushed] {
          const std::string block(64 * 1024, 'x');
          for (; !responder.gone() && pushed < 100'000; ++pushed) {
            responder.push(block);
            std::this_thread::yield();
          }
        }).detach();
      },
      options);
  Client client(r.server->port(), 4096);
  client.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_TRUE(gone.wait());
}

TEST(HttpServer, RefusesWhatIsTooLargeAndStillDeliversTheAnswer) {
  HttpServer::Options options;
  options.max_body_bytes = 1000;
  options.max_header_bytes = 2000;
  options.refusal = [](int status, std::string_view message) {
    return HttpReply{status, "text/plain", fmt::format("refused {}: {}", status, message), {}};
  };
  Running r(echo, options);
  {
    Client client(r.server->port());
    client.send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5000000\r\n\r\n" + std::string(5'000'000, 'b'));
    const std::string answer = client.to_end();
    EXPECT_TRUE(answer.starts_with("HTTP/1.1 413 ")) << answer;
    EXPECT_NE(answer.find("larger than 1000 bytes"), std::string::npos);
  }
  {
    Client client(r.server->port());
    client.send("POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n7d0\r\n" + std::string(2000, 'b'));
    EXPECT_TRUE(client.to_end().starts_with("HTTP/1.1 413 "));
  }
  for (const std::string& rest : {std::string(100'000, 'h'), "x\r\nY: " + std::string(100'000, 'h') + "\r\n\r\n"}) {
    Client client(r.server->port());
    client.send("GET / HTTP/1.1\r\nX: " + rest);
    EXPECT_TRUE(client.to_end().starts_with("HTTP/1.1 431 "));
  }
  Client exact(r.server->port());
  exact.send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n" + std::string(1000, 'b'));
  EXPECT_TRUE(exact.until("bbb").starts_with("HTTP/1.1 200 "));
}

TEST(HttpServer, SendsContinueWhenAsked) {
  Running r(echo);
  Client client(r.server->port());
  client.send("POST /c HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n");
  EXPECT_EQ(client.until("\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
  client.send("ok");
  EXPECT_NE(client.until("ok").find("POST /c ok"), std::string::npos);
}

TEST(HttpServer, ClosesSlowAndIdleClients) {
  HttpServer::Options options;
  options.header_timeout = options.idle_timeout = options.body_timeout = milliseconds(50);
  Running r(echo, options);
  Client silent(r.server->port()), half(r.server->port()), bodiless(r.server->port()), done(r.server->port());
  half.send("GET / HTTP/1.1\r\nHo");
  bodiless.send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nab");
  done.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_EQ(silent.to_end(), "");
  EXPECT_EQ(half.to_end(), "");
  EXPECT_EQ(bodiless.to_end(), "");
  EXPECT_TRUE(done.to_end().ends_with("GET / "));
}

TEST(HttpServer, RefusesConnectionsBeyondTheLimit) {
  HttpServer::Options options;
  options.max_connections = 2;
  Running r(echo, options);
  Client a(r.server->port()), b(r.server->port());
  a.send("GET /a HTTP/1.1\r\nHost: x\r\n\r\n");
  b.send("GET /b HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_NE(a.until("GET /a ").find("200"), std::string::npos);
  EXPECT_NE(b.until("GET /b ").find("200"), std::string::npos);
  Client c(r.server->port());
  EXPECT_TRUE(c.to_end().starts_with("HTTP/1.1 503 "));
}

TEST(HttpServer, AnswersForAHandlerThatForgets) {
  Running r([](IncomingRequest&& request, const HttpResponder& responder) {
    if (request.target == "/stream")
      responder.start_stream("text/plain");
  });
  Client client(r.server->port());
  client.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_TRUE(client.to_end().starts_with("HTTP/1.1 500 "));
  Client stream(r.server->port());
  stream.send("GET /stream HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_EQ(stream.to_end().find("\r\n0\r\n\r\n"), std::string::npos);  // visibly truncated
}

TEST(HttpServer, ShutdownLetsAnswersFinish) {
  Gate arrived;
  HttpResponder kept;
  Running r([&](IncomingRequest&&, const HttpResponder& responder) {
    responder.start_stream("text/plain");
    kept = responder;
    arrived.open();
  });
  Client idle(r.server->port()), busy(r.server->port());
  busy.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  ASSERT_TRUE(arrived.wait());
  r.server->shutdown(seconds(20));
  EXPECT_EQ(idle.to_end(), "");
  kept.push("last words");
  kept.finish();
  EXPECT_NE(busy.to_end().find("last words"), std::string::npos);
  r.join_after_shutdown();
}

TEST(HttpServer, ABusyPortIsAClearError) {
  Running r(echo);
  HttpServer::Options options;
  options.port = r.server->port();
  const auto second = HttpServer::create(options, echo);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, ErrorCode::kUsage);
  EXPECT_NE(describe(second.error()).find(std::to_string(options.port)), std::string::npos);
  EXPECT_NE(describe(second.error()).find("--port"), std::string::npos);
  options.host = "no.such.host.invalid";
  EXPECT_FALSE(HttpServer::create(options, echo));
}

// Random damage to valid requests, and plain noise: any answer will do, as long as the server still serves afterwards.
TEST(HttpServer, SurvivesGarbage) {
  Running r(echo);
  const std::string valid =
      "POST /x HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\nbodyGET / HTTP/1.1\r\n\r\n";
  Random random(7, "garbage");
  for (int i = 0; i < 500; ++i) {
    std::string bytes = valid;
    if (i % 5 == 0) {
      bytes.assign(static_cast<size_t>(random.uniform_int(1, 3000)), '\0');
      for (char& c : bytes)
        c = static_cast<char>(random.next());
    } else {
      for (int64_t n = random.uniform_int(1, 5); n > 0; --n)
        bytes[static_cast<size_t>(random.uniform_int(0, static_cast<int64_t>(bytes.size()) - 1))] =
            static_cast<char>(random.next());
    }
    Client client(r.server->port());
    client.send(bytes);
  }
  Client client(r.server->port());
  client.send("GET /alive HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_NE(client.until("GET /alive ").find("200 OK"), std::string::npos);
}

}  // namespace
}  // namespace goodput
