// The generator's sockets: see generator.h. Every read is stamped on return, before a byte of it is looked at.
#include <cerrno>
#include <cstring>

#include "base/check.h"
#include "base/clock.h"
#include "base/limits.h"
#include "load/generator.h"

namespace goodput {
namespace {

constexpr Nanos kLinger = seconds(1);  // between [DONE] and the end of its response

}  // namespace

uint32_t Generator::open_exchange(size_t position, TimePoint scheduled, TimePoint now) {
  if (free_exchanges_.empty()) {
    free_exchanges_.push_back(static_cast<uint32_t>(exchanges_.size()));
    exchanges_.emplace_back();
  }
  const uint32_t index = free_exchanges_.back();
  free_exchanges_.pop_back();
  Exchange& x = exchanges_[index];
  const ScheduledRequest& request = (*play_.requests)[position];
  x.record = RequestRecord{};
  x.record.index = request.index;
  x.record.cls = request.cls;
  x.record.asked_output = request.output;
  x.record.events.reserve(std::min<size_t>(static_cast<size_t>(request.output.count()), 4096));
  x.record.streamed = options_.stream;
  x.record.scheduled = scheduled;
  x.record.dispatched = now;
  x.receiver.reset(fallback_framing());
  ++x.serial;
  x.position = position;
  x.reads = 0;
  x.open = true;
  x.lingering = false;
  x.connection = kNone;
  ++in_flight_;
  in_flight_of_window_ += play_.window_end && scheduled < *play_.window_end;
  deadlines_.push_back({scheduled + options_.request_timeout, index, x.serial});
  return index;
}

void Generator::send_on_idle_or_new(uint32_t exchange) {
  if (idle_.empty())
    return send_on_new(exchange);
  const uint32_t index = idle_.back();
  idle_.pop_back();
  Connection& c = connections_[index];
  c.phase = Phase::kSending;
  c.exchange = exchange;
  c.sent = 0;
  Exchange& x = exchanges_[exchange];
  x.connection = index;
  x.record.connected = x.record.dispatched;
  ++x.record.attempts;
  write_some(index);
}

void Generator::send_on_new(uint32_t exchange) {
  Exchange& x = exchanges_[exchange];
  ++x.record.attempts;
  bool exhausted = false;
  std::string why;
  const auto index = open_connection(exhausted, why);
  if (!index)
    return end(exchange, exhausted ? Ending::kNotSent : Ending::kConnectFailed, monotonic_now(), why);
  connections_[*index].exchange = exchange;
  x.connection = *index;
}

std::optional<uint32_t> Generator::open_connection(bool& exhausted, std::string& why) {
  exhausted = connections_.size() - free_connections_.size() >= static_cast<size_t>(limits::kMaxConnections);
  if (exhausted)
    return std::nullopt;
  auto wire = Wire::open(route_);
  if (!wire) {
    why = wire.error().message;
    exhausted = wire.error().code == ErrorCode::kExhausted;
    return std::nullopt;
  }
  if (free_connections_.empty()) {
    free_connections_.push_back(static_cast<uint32_t>(connections_.size()));
    connections_.emplace_back();
  }
  const uint32_t index = free_connections_.back();
  Connection& c = connections_[index];
  ++c.serial;
  if (!loop_.watch(wire->fd(), uint64_t{c.serial} << 32 | index, true)) {
    why = std::strerror(errno);
    exhausted = true;
    return std::nullopt;
  }
  free_connections_.pop_back();
  c.wire = std::move(*wire);
  c.phase = Phase::kConnecting;
  c.exchange = kNone;
  c.sent = 0;
  c.reused = false;
  c.wants_write = true;
  ++connections_opened_;
  return index;
}

void Generator::warm(int connections) {
  bool exhausted = false;
  std::string why;
  for (int i = static_cast<int>(idle_.size()); i < connections; ++i) {
    if (!open_connection(exhausted, why))
      return;  // what cannot be had now will be tried when it is needed
  }
}

void Generator::close_connection(uint32_t index) {
  Connection& c = connections_[index];
  if (c.phase == Phase::kFree)
    return;
  if (c.phase == Phase::kIdle)
    std::erase(idle_, index);
  c.wire = Wire();
  c.phase = Phase::kFree;
  c.exchange = kNone;
  free_connections_.push_back(index);
}

void Generator::on_ready(const EventLoop::Ready& ready) {
  const auto index = static_cast<uint32_t>(ready.key);
  Connection& c = connections_[index];
  if (c.serial != ready.key >> 32 || c.phase == Phase::kFree)
    return;
  if (c.phase == Phase::kIdle)
    return close_connection(index);  // the server closed it, or speaks unasked
  if (c.phase == Phase::kConnecting)
    return set_up(index);
  if (ready.writable && c.phase == Phase::kSending)
    write_some(index);
  if (ready.readable && c.serial == ready.key >> 32 && (c.phase == Phase::kSending || c.phase == Phase::kReceiving)) {
    read_some(index);
  }
}

// The connection's set-up goes on; once it is ready it carries its exchange, or waits for one.
void Generator::set_up(uint32_t index) {
  Connection& c = connections_[index];
  const Wire::Step step = c.wire.advance();
  if (step == Wire::Step::kFailed) {
    const uint32_t exchange = c.exchange;
    const std::string why = c.wire.failure();
    close_connection(index);
    if (exchange != kNone)
      end(exchange, Ending::kConnectFailed, monotonic_now(), why);
    return;
  }
  if (step != Wire::Step::kReady)
    return want(index, step == Wire::Step::kWantsWrite);
  if (c.exchange == kNone) {  // a warm connection
    c.phase = Phase::kIdle;
    idle_.push_back(index);
    return want(index, false);
  }
  exchanges_[c.exchange].record.connected = monotonic_now();
  c.phase = Phase::kSending;
  write_some(index);
}

void Generator::want(uint32_t index, bool write) {
  Connection& c = connections_[index];
  if (write == c.wants_write)
    return;
  c.wants_write = write;
  loop_.rewatch(c.wire.fd(), uint64_t{c.serial} << 32 | index, write);
}

void Generator::write_some(uint32_t index) {
  Connection& c = connections_[index];
  Exchange& x = exchanges_[c.exchange];
  const std::string& all = (*play_.bytes)[x.position];
  while (c.sent < all.size()) {
    const Sent sent = c.wire.send(std::string_view(all).substr(c.sent));
    // The server may have answered (413, 503) before it closed: what it said counts more than that we could not finish.
    if (sent.error != 0)
      return read_some(index);
    if (sent.bytes == 0)
      break;
    c.sent += sent.bytes;
  }
  const bool wants_write = c.sent < all.size();
  if (!wants_write) {
    x.record.sent = monotonic_now();
    c.phase = Phase::kReceiving;
  }
  want(index, wants_write);
}

ReadStamp Generator::stamp_of(const Received& got, TimePoint user, Exchange& x) const {
  ReadStamp stamp{user, std::nullopt, x.reads++};
  if (got.kernel_realtime)
    stamp.kernel = std::min(user, TimePoint(*got.kernel_realtime - realtime_offset_));
  return stamp;
}

// One read per readiness, so that no stream holds up the others; under TLS until nothing is left, since what is
// decrypted already makes no descriptor ready.
void Generator::read_some(uint32_t index) {
  const uint32_t serial = connections_[index].serial;
  while (read_once(index)) {
    const Connection& c = connections_[index];
    if (!c.wire.buffers() || c.serial != serial || (c.phase != Phase::kSending && c.phase != Phase::kReceiving))
      return;
  }
}

// False: nothing came, or the exchange is over.
bool Generator::read_once(uint32_t index) {
  Connection& c = connections_[index];
  const Received got = c.wire.receive(buffer_);
  const TimePoint user = monotonic_now();
  Exchange& x = exchanges_[c.exchange];
  switch (got.kind) {
    case Received::Kind::kNothing:
      // Only after a failed send does nothing mean the end; otherwise readiness was about writing.
      if (c.phase == Phase::kSending && connect_error(c.wire.fd()) != 0)
        broken(index, Ending::kReset);
      return false;
    case Received::Kind::kError:
      broken(index, Ending::kReset);
      return false;
    case Received::Kind::kClosed:
      broken(index, x.receiver.closed());
      return false;
    case Received::Kind::kBytes:
      break;
  }
  const auto ended = x.receiver.feed({buffer_.data(), got.bytes}, stamp_of(got, user, x));
  if (ended) {
    end(c.exchange, *ended, user);
    return false;
  }
  constexpr size_t kClosingEvents = 4;  // finish, usage, and what a server adds
  if (x.receiver.capture().marks.size() == 1)
    x.receiver.expect(static_cast<size_t>(x.record.asked_output.count()) + kClosingEvents);
  if (x.receiver.capture().done_sentinel && !x.lingering) {
    x.lingering = true;
    lingering_.push_back({user + kLinger, c.exchange, x.serial});
  }
  return true;
}

// The connection ended under an exchange. A reused one that had been closed before anything came is nobody's fault: the
// server closed it as we wrote. Then, once, on a new connection; the clock runs on.
void Generator::broken(uint32_t index, Ending ending) {
  Connection& c = connections_[index];
  const uint32_t exchange = c.exchange;
  Exchange& x = exchanges_[exchange];
  if (c.reused && !x.receiver.capture().any_bytes && x.record.attempts == 1) {
    close_connection(index);
    ++stale_retries_;
    x.receiver.reset(fallback_framing());
    x.record.connected.reset();
    x.record.sent.reset();
    return send_on_new(exchange);
  }
  end(exchange, ending, monotonic_now());
}

void Generator::end(uint32_t exchange, Ending ending, TimePoint when, std::string_view why) {
  Exchange& x = exchanges_[exchange];
  CHECK(x.open, "an exchange ends once");
  x.open = false;
  x.ending = ending;
  x.record.closed = when;
  if (ending == Ending::kNotSent)
    x.record.dispatched.reset();
  if (x.connection != kNone) {
    Connection& c = connections_[x.connection];
    if (ending == Ending::kComplete && c.phase == Phase::kReceiving && x.receiver.keep_alive()) {
      c.phase = Phase::kIdle;
      c.exchange = kNone;
      c.reused = true;
      idle_.push_back(x.connection);
    } else {
      close_connection(x.connection);
    }
    x.connection = kNone;
  }
  --in_flight_;
  in_flight_of_window_ -= play_.window_end && x.record.scheduled < *play_.window_end;
  if (play_.concurrency > 0)
    places_.push_back(when + play_.think_time);
  if (!measured_) {
    if (auto error_found = not_an_api(x, why); error_found && !fatal_)
      fatal_ = std::move(error_found);
    measured_ = x.receiver.capture().status != 0;
  }
  behind_.push_back(exchange);
}

}  // namespace goodput
