#include "net/http_fetch.h"

#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/clock.h"
#include "base/limits.h"
#include "base/text.h"
#include "net/http_codec.h"
#include "net/wire.h"

namespace goodput {
namespace {

tl::unexpected<Error> unreachable(const Address& a, std::string message) {
  return fail(ErrorCode::kUnreachable, std::move(message), a.text);
}

// Waits until the socket is ready or the deadline has passed.
bool wait_for(int fd, short what, TimePoint deadline) {
  while (true) {
    const Nanos left = deadline - monotonic_now();
    if (left <= Nanos(0))
      return false;
    pollfd p{fd, what, 0};
    const int n = ::poll(&p, 1, static_cast<int>(std::min<int64_t>(left.count() / 1'000'000 + 1, 60'000)));
    if (n > 0)
      return true;
    if (n < 0 && errno != EINTR)
      return false;
  }
}

Result<void> connect(const Address& to, Wire& wire, TimePoint deadline) {
  short what = POLLOUT;
  while (true) {
    if (!wait_for(wire.fd(), what, deadline))
      return unreachable(to, "no connection in time");
    switch (wire.advance()) {
      case Wire::Step::kReady:
        return {};
      case Wire::Step::kFailed:
        return unreachable(to, "cannot connect: " + wire.failure());
      case Wire::Step::kWantsRead:
        what = POLLIN;
        break;
      case Wire::Step::kWantsWrite:
        what = POLLOUT;
        break;
    }
  }
}

Result<void> send_all(const Address& to, Wire& wire, std::string_view bytes, TimePoint deadline) {
  while (!bytes.empty()) {
    if (!wait_for(wire.fd(), POLLOUT, deadline))
      return unreachable(to, "the server takes no bytes");
    const Sent sent = wire.send(bytes);
    if (sent.error != 0)
      return unreachable(to, std::string("cannot send: ") + std::strerror(sent.error));
    bytes.remove_prefix(sent.bytes);
  }
  return {};
}

// Feeds what came (or the end of the stream, when `closed`); true once the answer is complete.
Result<bool> absorb(const Address& from, HttpResponseParser& parser, std::string_view bytes, bool closed,
                    HttpAnswer& answer) {
  using Event = HttpResponseParser::Event;
  while (true) {
    const auto step = closed ? parser.finish() : parser.next(bytes);
    switch (step.event) {
      case Event::kNeedMore:
        return false;
      case Event::kHead:
        answer.status = parser.status();
        answer.server = parser.header("server");
        answer.content_type = parser.header("content-type");
        break;
      case Event::kBody:
        answer.body += step.body.substr(0, limits::kMaxErrorBody - answer.body.size());
        break;
      case Event::kEnd:
        return true;
      case Event::kError: {
        if (closed && parser.head().empty())
          return unreachable(from, "the server closed the connection without an answer");
        const bool foreign = answer.status == 0;
        std::string message = std::string("expected an HTTP server: ") + parser.reason();
        if (foreign)
          message += "; " + describe_foreign_bytes(parser.head());
        return unreachable(from, std::move(message));
      }
    }
  }
}

}  // namespace

std::string describe_foreign_bytes(std::string_view bytes) {
  if (bytes.size() >= 2 && (bytes[0] == 0x15 || bytes[0] == 0x16) && bytes[1] == 0x03) {
    return "it looks like TLS: use https://";
  }
  std::string out = "it began with \"";
  for (const char c : bytes.substr(0, 40)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= ' ' && byte < 0x7f) {
      out += c;
    } else {
      static constexpr char kHex[] = "0123456789abcdef";
      out += {'\\', 'x', kHex[byte >> 4], kHex[byte & 15]};
    }
  }
  return out + "\"";
}

Result<HttpAnswer> http_fetch(const Route& route, std::string_view request, Nanos limit) {
  const Address& to = route.address;
  const TimePoint deadline = monotonic_now() + limit;
  auto connecting = Wire::open(route);
  if (!connecting)
    return unreachable(to, "cannot connect: " + connecting.error().message);
  Wire wire = std::move(*connecting);
  TRY(connect(to, wire, deadline));
  TRY(send_all(to, wire, request, deadline));
  HttpResponseParser parser;
  HttpAnswer answer;
  std::string buffer(16 * 1024, '\0');
  bool drained = true;  // nothing is left in the wire itself: only then is the descriptor's readiness the whole story
  while (true) {
    if (drained && !wait_for(wire.fd(), POLLIN, deadline))
      return unreachable(to, "connected, but no HTTP answer within " + format_duration(limit));
    const Received got = wire.receive(buffer);
    drained = !wire.buffers() || got.kind == Received::Kind::kNothing;
    if (got.kind == Received::Kind::kNothing)
      continue;
    if (got.kind == Received::Kind::kError)
      return unreachable(to, std::string("the answer broke off: ") + std::strerror(got.error));
    const bool closed = got.kind == Received::Kind::kClosed;
    if (TRY(absorb(to, parser, std::string_view(buffer).substr(0, got.bytes), closed, answer)))
      return answer;
  }
}

}  // namespace goodput
