// The loop of the HTTP server. Everything below `Loop` and `Connection` lives on the loop's thread; other threads only
// reach Loop::post and the atomics of an Exchange.
//
// Beast's parser is fed bytes by hand instead of composing async_read: the one pending read of a connection must also
// see the end of the connection while a request is being answered, and keep pipelined bytes for later. Writes try the
// socket first and fall back to waiting: for a token's 200 bytes that is one system call and no trip through epoll.
#include "net/http_server.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <mutex>
#include <optional>
#include <thread>
#include <unordered_set>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>

#include <fmt/format.h>

#include "base/clock.h"
#include "base/log.h"

namespace goodput {
namespace {
namespace asio = boost::asio;
namespace http = boost::beast::http;
using asio::ip::tcp;
using boost::system::error_code;

constexpr size_t kReadBytes = 16 * 1024;

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out)
    if (c >= 'A' && c <= 'Z')
      c = static_cast<char>(c - 'A' + 'a');
  return out;
}

class Connection;

}  // namespace

struct HttpServer::Loop : std::enable_shared_from_this<HttpServer::Loop> {
  Loop(const Options& o, Handler h) : options(o), handler(std::move(h)) {}

  void accept();
  void sweep();
  void post(std::function<void()> work);
  void drain_inbox();
  void mark_dirty(std::shared_ptr<Connection>);
  void flush_dirty();
  void begin_shutdown(Nanos grace);
  void stop_if_over();
  bool on_thread() const { return thread.load(std::memory_order_relaxed) == std::this_thread::get_id(); }
  HttpReply refusal(int status, std::string_view message) const {
    return options.refusal ? options.refusal(status, message)
                           : HttpReply{status, "text/plain", fmt::format("{}\n", message), {}};
  }

  Options options;
  Handler handler;
  asio::io_context io{1};
  asio::executor_work_guard<asio::io_context::executor_type> work{io.get_executor()};
  tcp::acceptor acceptor{io};
  asio::steady_timer sweeper{io}, accept_retry{io};
  int port = 0;
  std::atomic<int> open{0};
  std::atomic<std::thread::id> thread{};
  std::unordered_set<std::shared_ptr<Connection>> connections;
  std::vector<std::shared_ptr<Connection>> dirty;
  std::optional<TimePoint> shutdown_by;
  std::atomic<bool> ended{false};  // the server object is going away: nothing may call back any more

  std::mutex mutex;  // guards inbox
  std::vector<std::function<void()>> inbox;
};

using Loop = HttpServer::Loop;

// One request being answered. Held by the responders only; the connection looks at it through a weak pointer, so that a
// dropped answer is noticed.
struct HttpResponder::Exchange {
  enum class State { kWaiting, kStreaming, kDone };
  ~Exchange();

  std::weak_ptr<Loop> loop;
  std::atomic<bool> gone{false};
  std::atomic<int> queued{0};  // calls in the inbox: later calls on the loop's thread must queue behind them
  // Of the loop's thread:
  std::weak_ptr<Connection> connection;
  std::function<void()> on_gone;
  State state = State::kWaiting;
  bool chunked = true, head_only = false;
};

namespace {

using Exchange = HttpResponder::Exchange;

class Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(Loop& loop, tcp::socket socket) : loop_(loop), socket_(std::move(socket)) {
    error_code ignored;
    socket_.set_option(tcp::no_delay(true), ignored);
    socket_.non_blocking(true, ignored);
    const auto peer = socket_.remote_endpoint(ignored);
    if (!ignored)
      peer_ = fmt::format("{}:{}", peer.address().to_string(), peer.port());
    read_by_ = monotonic_now() + loop.options.idle_timeout;
  }

  void read();
  void flush();
  void process();
  void enqueue(std::string_view bytes);
  void write_head(int status, std::string_view content_type, const HttpHeaders&, std::string_view framing);
  void answered();
  void refuse(int status, std::string_view message);
  void close();
  void check_deadlines(TimePoint now) {
    if ((read_by_ && now > *read_by_) || (write_by_ && now > *write_by_))
      close();
  }
  // Nothing of value would be lost by closing now.
  bool expendable() const { return !answering_ && !writing_ && out_.empty(); }
  bool dirty = false;

 private:
  void on_read(error_code, size_t bytes);
  void write_rest();
  void flushed();
  bool parse_some();
  void dispatch();

  Loop& loop_;
  tcp::socket socket_;
  std::string peer_;
  boost::beast::flat_buffer in_;
  std::optional<http::request_parser<http::string_body>> parser_;
  std::weak_ptr<Exchange> exchange_;
  std::string out_, flying_;  // waiting to be written; being written, from flying_at_
  size_t flying_at_ = 0, discarded_ = 0;
  TimePoint last_read_;
  std::optional<TimePoint> read_by_, write_by_;
  bool reading_ = false, writing_ = false, answering_ = false;
  bool keep_alive_ = true;
  bool closing_ = false;    // close once everything is written
  bool lingering_ = false;  // our side is closed; what the client still sends is dropped
  bool closed_ = false;
};

void Connection::read() {
  if (reading_ || closed_ || (answering_ && in_.size() >= limits::kMaxPipelinedBytes))
    return;
  reading_ = true;
  socket_.async_read_some(in_.prepare(kReadBytes),
                          [self = shared_from_this()](error_code error, size_t bytes) { self->on_read(error, bytes); });
}

void Connection::on_read(error_code error, size_t bytes) {
  reading_ = false;
  if (closed_)
    return;
  if (error)
    return close();
  last_read_ = monotonic_now();
  in_.commit(bytes);
  if (lingering_) {
    discarded_ += bytes;
    in_.clear();
    if (discarded_ > limits::kMaxDiscardedBytes)
      return close();
  } else {
    process();
  }
  read();
}

void Connection::process() {
  while (!answering_ && !closing_ && !closed_ && in_.size() > 0)
    if (!parse_some())
      break;
}

// False: the parser needs bytes that are not here yet.
bool Connection::parse_some() {
  const auto& options = loop_.options;
  if (!parser_) {
    parser_.emplace();
    parser_->eager(true);
    parser_->header_limit(static_cast<uint32_t>(options.max_header_bytes));
    parser_->body_limit(options.max_body_bytes);
    read_by_ = last_read_ + options.header_timeout;
  }
  const bool had_header = parser_->is_header_done();
  error_code error;
  const size_t used = parser_->put(in_.data(), error);
  in_.consume(used);
  if (error == http::error::need_more)
    error = {};
  if (!error && !parser_->is_header_done() && in_.size() > options.max_header_bytes)
    error = http::error::header_limit;
  if (error == http::error::body_limit || error == http::error::buffer_overflow)
    refuse(413, fmt::format("the request body is larger than {} bytes", options.max_body_bytes));
  else if (error == http::error::header_limit)
    refuse(431, fmt::format("the request headers are larger than {} bytes", options.max_header_bytes));
  else if (error)
    refuse(400, "not a valid HTTP request: " + error.message());
  else if (parser_->is_done())
    dispatch();
  else if (parser_->is_header_done() && !had_header) {
    read_by_ = last_read_ + options.body_timeout;
    if (lower(std::string(parser_->get()[http::field::expect])) == "100-continue")
      enqueue("HTTP/1.1 100 Continue\r\n\r\n");
  }
  return used > 0;
}

void Connection::dispatch() {
  auto message = parser_->release();
  parser_.reset();
  read_by_.reset();
  IncomingRequest request;
  request.method = std::string(message.method_string());
  request.target = std::string(message.target());
  for (const auto& field : message)
    request.headers.emplace_back(lower(std::string(field.name_string())), std::string(field.value()));
  request.body = std::move(message.body());
  request.peer = peer_;
  request.received = last_read_;

  keep_alive_ = message.keep_alive();
  answering_ = true;
  auto exchange = std::make_shared<Exchange>();
  exchange->loop = loop_.weak_from_this();
  exchange->connection = weak_from_this();
  exchange->chunked = message.version() >= 11;
  exchange->head_only = request.method == "HEAD";
  exchange_ = exchange;
  loop_.handler(std::move(request), HttpResponder(std::move(exchange)));
}

void Connection::write_head(int status, std::string_view content_type, const HttpHeaders& headers,
                            std::string_view framing) {
  if (loop_.shutdown_by)
    keep_alive_ = false;
  std::string head =
      fmt::format("HTTP/1.1 {} {}\r\nServer: goodput\r\nContent-Type: {}\r\n{}Connection: {}\r\n", status,
                  std::string(http::obsolete_reason(http::int_to_status(static_cast<unsigned>(status)))), content_type,
                  framing, keep_alive_ ? "keep-alive" : "close");
  for (const auto& [name, value] : headers)
    fmt::format_to(std::back_inserter(head), "{}: {}\r\n", name, value);
  enqueue(head + "\r\n");
}

void Connection::refuse(int status, std::string_view message) {
  keep_alive_ = false;
  const HttpReply reply = loop_.refusal(status, message);
  write_head(status, reply.content_type, reply.headers, fmt::format("Content-Length: {}\r\n", reply.body.size()));
  enqueue(reply.body);
  answered();
}

void Connection::enqueue(std::string_view bytes) {
  if (closed_ || bytes.empty())
    return;
  out_ += bytes;
  if (out_.size() + flying_.size() - flying_at_ > loop_.options.max_unsent_bytes)
    return close();
  loop_.mark_dirty(shared_from_this());
}

void Connection::flush() {
  if (closed_ || writing_)
    return;
  if (out_.empty())
    return flushed();
  error_code error;
  const size_t sent = socket_.write_some(asio::buffer(out_), error);
  if (error && error != asio::error::would_block)
    return close();
  if (sent == out_.size()) {
    out_.clear();
    return flushed();
  }
  flying_ = std::move(out_);
  out_.clear();
  flying_at_ = sent;
  write_rest();
}

void Connection::write_rest() {
  writing_ = true;
  write_by_ = monotonic_now() + loop_.options.write_timeout;
  socket_.async_write_some(asio::buffer(flying_.data() + flying_at_, flying_.size() - flying_at_),
                           [self = shared_from_this()](error_code error, size_t sent) {
                             self->writing_ = false;
                             self->write_by_.reset();
                             if (self->closed_)
                               return;
                             if (error)
                               return self->close();
                             self->flying_at_ += sent;
                             if (self->flying_at_ < self->flying_.size())
                               return self->write_rest();
                             self->flying_ = {};
                             self->flying_at_ = 0;
                             self->flush();
                           });
}

// Closing at once would reset the connection if the client is still sending (a refused body), and the reset would
// take the answer with it. So: end our side, read on for a while, then close.
void Connection::flushed() {
  if (!closing_ || lingering_)
    return;
  lingering_ = true;
  in_.clear();
  error_code ignored;
  socket_.shutdown(tcp::socket::shutdown_send, ignored);
  read_by_ = monotonic_now() + limits::kLingerTimeout;
  read();
  loop_.stop_if_over();
}

void Connection::answered() {
  answering_ = false;
  exchange_.reset();
  if (!keep_alive_ || loop_.shutdown_by) {
    closing_ = true;
  } else {
    read_by_ = monotonic_now() + loop_.options.idle_timeout;
    // Not from here: a thousand pipelined requests would recurse a thousand deep.
    if (in_.size() > 0 || !reading_)
      asio::post(loop_.io, [self = shared_from_this()] {
        self->process();
        self->read();
      });
  }
  loop_.mark_dirty(shared_from_this());
}

void Connection::close() {
  if (closed_)
    return;
  closed_ = true;
  if (const auto exchange = exchange_.lock()) {
    exchange->gone = true;
    if (exchange->on_gone)
      loop_.post(std::exchange(exchange->on_gone, nullptr));
  }
  error_code ignored;
  socket_.close(ignored);
  const auto self = shared_from_this();
  loop_.connections.erase(self);
  loop_.open = static_cast<int>(loop_.connections.size());
  loop_.stop_if_over();
}

// Runs `call` on the loop's thread, in the order of the calls. At once if this is the loop's thread and nothing from
// another thread is still on its way.
template <class Call>
void on_loop(const std::shared_ptr<Exchange>& exchange, Call call) {
  if (!exchange || exchange->gone.load(std::memory_order_relaxed))
    return;
  const auto loop = exchange->loop.lock();
  if (!loop)
    return;
  const auto run = [](const std::shared_ptr<Exchange>& e, Call& c) {
    if (const auto connection = e->connection.lock(); connection && e->state != Exchange::State::kDone)
      c(*e, *connection);
  };
  if (loop->on_thread() && exchange->queued.load(std::memory_order_acquire) == 0)
    return run(exchange, call);
  exchange->queued.fetch_add(1, std::memory_order_acq_rel);
  loop->post([exchange, run, call = std::move(call)]() mutable {
    run(exchange, call);
    exchange->queued.fetch_sub(1, std::memory_order_acq_rel);
  });
}

void send_now(Exchange& exchange, Connection& connection, const HttpReply& reply) {
  if (exchange.state != Exchange::State::kWaiting)
    return;
  connection.write_head(reply.status, reply.content_type, reply.headers,
                        fmt::format("Content-Length: {}\r\n", reply.body.size()));
  if (!exchange.head_only)
    connection.enqueue(reply.body);
  exchange.state = Exchange::State::kDone;
  connection.answered();
}

}  // namespace

Exchange::~Exchange() {
  const auto alive = loop.lock();
  if (!alive || gone || state == State::kDone)
    return;
  alive->post([weak = connection, waiting = state == State::kWaiting] {
    if (const auto c = weak.lock())
      waiting ? c->refuse(500, "the request was dropped") : c->close();
  });
}

std::string_view IncomingRequest::header(std::string_view name) const {
  for (const auto& [key, value] : headers)
    if (key == name)
      return value;
  return {};
}

HttpResponder::HttpResponder(std::shared_ptr<Exchange> exchange) : exchange_(std::move(exchange)) {}

void HttpResponder::send(HttpReply reply) const {
  on_loop(exchange_, [reply = std::move(reply)](Exchange& exchange, Connection& c) { send_now(exchange, c, reply); });
}

void HttpResponder::start_stream(std::string content_type, HttpHeaders headers) const {
  on_loop(exchange_, [type = std::move(content_type), headers = std::move(headers)](Exchange& e, Connection& c) {
    if (e.state != Exchange::State::kWaiting)
      return;
    e.state = Exchange::State::kStreaming;
    c.write_head(200, type, headers, e.chunked ? "Transfer-Encoding: chunked\r\n" : "");
  });
}

void HttpResponder::push(std::string bytes) const {
  on_loop(exchange_, [bytes = std::move(bytes)](Exchange& e, Connection& c) {
    if (e.state != Exchange::State::kStreaming || bytes.empty() || e.head_only)
      return;
    if (!e.chunked)
      return c.enqueue(bytes);
    fmt::memory_buffer piece;
    fmt::format_to(std::back_inserter(piece), "{:x}\r\n{}\r\n", bytes.size(), bytes);
    c.enqueue({piece.data(), piece.size()});
  });
}

void HttpResponder::finish() const {
  on_loop(exchange_, [](Exchange& e, Connection& c) {
    if (e.state != Exchange::State::kStreaming)
      return;
    if (e.chunked && !e.head_only)
      c.enqueue("0\r\n\r\n");
    e.state = Exchange::State::kDone;
    c.answered();
  });
}

void HttpResponder::on_disconnect(std::function<void()> gone) const {
  if (!exchange_)
    return;
  const auto loop = exchange_->loop.lock();
  if (!loop)
    return;
  // Always through the inbox, because the client may have gone before this call.
  loop->post([exchange = exchange_, gone = std::move(gone)]() mutable {
    if (exchange->gone)
      gone();
    else if (exchange->state != Exchange::State::kDone)
      exchange->on_gone = std::move(gone);
  });
}

bool HttpResponder::gone() const { return !exchange_ || exchange_->gone.load(std::memory_order_relaxed); }

void Loop::post(std::function<void()> call) {
  if (ended)
    return;
  bool first = false;
  {
    std::lock_guard lock(mutex);
    first = inbox.empty();
    inbox.push_back(std::move(call));
  }
  if (first)
    asio::post(io, [self = shared_from_this()] { self->drain_inbox(); });
}

void Loop::drain_inbox() {
  std::vector<std::function<void()>> calls;
  {
    std::lock_guard lock(mutex);
    calls.swap(inbox);
  }
  for (auto& call : calls) {
    call();
    call = nullptr;  // what it holds may post again; let that happen before the flush
  }
}

void Loop::mark_dirty(std::shared_ptr<Connection> connection) {
  if (connection->dirty)
    return;
  connection->dirty = true;
  if (dirty.empty())
    asio::post(io, [self = shared_from_this()] { self->flush_dirty(); });
  dirty.push_back(std::move(connection));
}

void Loop::flush_dirty() {
  std::vector<std::shared_ptr<Connection>> now;
  now.swap(dirty);
  for (const auto& connection : now) {
    connection->dirty = false;
    connection->flush();
  }
}

void Loop::accept() {
  acceptor.async_accept([self = shared_from_this()](error_code error, tcp::socket socket) {
    if (error == asio::error::operation_aborted || !self->acceptor.is_open())
      return;
    if (error) {  // out of descriptors or memory: the queue keeps, try again soon
      self->accept_retry.expires_after(std::chrono::milliseconds(50));
      self->accept_retry.async_wait([self](error_code cancelled) {
        if (!cancelled)
          self->accept();
      });
      return;
    }
    auto connection = std::make_shared<Connection>(*self, std::move(socket));
    self->connections.insert(connection);
    self->open = static_cast<int>(self->connections.size());
    if (self->open > self->options.max_connections)
      connection->refuse(503, fmt::format("more than {} connections", self->options.max_connections));
    else
      connection->read();
    self->accept();
  });
}

// One timer for all deadlines: they are seconds long and a connection's changes with every request.
void Loop::sweep() {
  const Nanos shortest =
      std::min({options.header_timeout, options.body_timeout, options.idle_timeout, options.write_timeout, seconds(2)});
  sweeper.expires_after(std::chrono::nanoseconds(std::max(shortest / 4, milliseconds(5)).count()));
  sweeper.async_wait([self = shared_from_this()](error_code cancelled) {
    if (cancelled)
      return;
    const TimePoint now = monotonic_now();
    const std::vector<std::shared_ptr<Connection>> all(self->connections.begin(), self->connections.end());
    for (const auto& connection : all) {
      connection->check_deadlines(now);
      if (self->shutdown_by && now > *self->shutdown_by)
        connection->close();
    }
    self->stop_if_over();
    self->sweep();
  });
}

void Loop::begin_shutdown(Nanos grace) {
  if (shutdown_by)
    return;
  shutdown_by = monotonic_now() + grace;
  error_code ignored;
  acceptor.close(ignored);
  const std::vector<std::shared_ptr<Connection>> all(connections.begin(), connections.end());
  for (const auto& connection : all)
    if (connection->expendable())
      connection->close();
  stop_if_over();
}

void Loop::stop_if_over() {
  if (!shutdown_by)
    return;
  if (std::all_of(connections.begin(), connections.end(), [](const auto& c) { return c->expendable(); }))
    io.stop();
}

HttpServer::HttpServer(std::shared_ptr<Loop> loop) : loop_(std::move(loop)) {}

HttpServer::~HttpServer() {
  // What waits in the loop holds it; letting it all be cancelled breaks the cycle.
  loop_->ended = true;
  error_code ignored;
  loop_->acceptor.close(ignored);
  const auto connections = std::move(loop_->connections);
  loop_->connections.clear();
  for (const auto& connection : connections)
    connection->close();
  loop_->dirty.clear();
  loop_->handler = nullptr;
  loop_->sweeper.cancel();
  loop_->accept_retry.cancel();
  loop_->io.restart();
  loop_->io.poll();
}

Result<std::unique_ptr<HttpServer>> HttpServer::create(const Options& options, Handler handler) {
  auto loop = std::make_shared<Loop>(options, std::move(handler));
  const std::string where = fmt::format("{}:{}", options.host, options.port);
  error_code error;
  tcp::resolver resolver(loop->io);
  const auto found = resolver.resolve(options.host, std::to_string(options.port),
                                      tcp::resolver::passive | tcp::resolver::numeric_service, error);
  if (error || found.empty())
    return fail(ErrorCode::kUsage, fmt::format("cannot resolve the host: {}", error.message()), where);
  const tcp::endpoint endpoint = found.begin()->endpoint();
  loop->acceptor.open(endpoint.protocol(), error);
  if (!error)
    loop->acceptor.set_option(tcp::acceptor::reuse_address(true), error);
  if (!error)
    loop->acceptor.bind(endpoint, error);
  if (!error)
    loop->acceptor.listen(tcp::acceptor::max_listen_connections, error);
  if (error == asio::error::address_in_use)
    return fail(ErrorCode::kUsage,
                fmt::format("port {} is already in use: stop what listens there (ss -ltnp 'sport = :{}'), or choose "
                            "another port with --port (0 takes any free one)",
                            options.port, options.port),
                where);
  if (error)
    return fail(ErrorCode::kUsage, fmt::format("cannot listen: {}", error.message()), where);
  loop->port = loop->acceptor.local_endpoint(error).port();
  return std::unique_ptr<HttpServer>(new HttpServer(std::move(loop)));
}

int HttpServer::port() const { return loop_->port; }
int HttpServer::connections() const { return loop_->open; }
void HttpServer::post(std::function<void()> work) { loop_->post(std::move(work)); }

void HttpServer::run() {
  loop_->thread = std::this_thread::get_id();
  if (!loop_->shutdown_by) {
    loop_->accept();
    loop_->sweep();
  }
  loop_->io.run();
  loop_->thread = std::thread::id{};
}

void HttpServer::shutdown(Nanos grace) {
  loop_->post([loop = loop_.get(), grace] { loop->begin_shutdown(grace); });
}

}  // namespace goodput
