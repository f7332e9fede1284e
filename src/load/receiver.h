// What comes back for one request, kept as bytes and stamps: HTTP, SSE and NDJSON framing only, no JSON. The loop's
// thread feeds each read as it was stamped; what the events mean is read behind (interpret.h), so that parsing never
// delays a stamp.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "net/http_codec.h"
#include "net/ndjson.h"
#include "net/sse.h"

namespace goodput {

// How a body is cut into events.
enum class Framing : uint8_t { kWhole, kSse, kNdjson };

// How the answer to a request ended, as the wire saw it.
enum class Ending : uint8_t {
  kComplete,       // the response is whole, or the stream said [DONE]
  kClosed,         // the peer closed in the middle
  kReset,          // the connection broke
  kTimeout,        // the request's own limit
  kMalformed,      // not HTTP, or not what HTTP allows
  kLimit,          // a bound of ours
  kConnectFailed,  // nobody accepted the connection
  kNotSent,        // we could not: descriptors, ports
  kRunEnded,       // still open when the run ended
};

struct Capture {
  struct Mark {
    size_t offset;
    size_t length;
    ReadStamp stamp;
  };
  std::string bytes;        // payloads of the events, one behind the other
  std::vector<Mark> marks;  // one per event; a body that is no event stream is one mark
  std::string raw;          // the first bytes of a body in which no event was seen
  Framing framing = Framing::kWhole;
  bool unterminated = false;   // the last mark is a line that the end of the stream may have cut
  int status = 0;              // 0: no head came
  std::string retry_after;     // what a refusal said, for people; empty: nothing
  ReadStamp first_body, last;  // first body byte; last read of any kind
  bool any_bytes = false;
  bool done_sentinel = false;  // "[DONE]" came

  void clear();  // keeps the memory
};

class Receiver {
 public:
  // Bytes of one read. nullopt: the answer goes on.
  std::optional<Ending> feed(std::string_view bytes, const ReadStamp& stamp);
  // The peer closed its side.
  Ending closed();
  // For the next request, with its memory. `fallback`: how a 2xx body is framed whose Content-Type does not tell.
  // Room for so many events like the first: buffers then grow once instead of doubling, which counts at 10,000 streams.
  void expect(size_t events);
  void reset(Framing fallback = Framing::kWhole);

  bool keep_alive() const { return whole_ && !leftover_ && http_.keep_alive(); }
  std::string_view foreign_head() const { return http_.head(); }
  const char* reason() const { return http_.reason(); }
  Capture& capture() { return capture_; }

 private:
  void take_head();
  std::optional<Ending> take_body(std::string_view body, const ReadStamp& stamp);
  template <class Parser>
  std::optional<Ending> take_events(Parser&, std::string_view body, const ReadStamp& stamp);
  bool keep_event(std::string_view data, const ReadStamp& stamp);
  void end_of_body();

  HttpResponseParser http_;
  SseParser sse_;
  NdjsonParser ndjson_;
  Framing fallback_ = Framing::kWhole;
  Capture capture_;
  bool whole_ = false, leftover_ = false;
};

}  // namespace goodput
