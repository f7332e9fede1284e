// HTTP/1.1 responses, byte by byte. The client's receive path stamps bytes before it looks at them, so the parser is
// fed whatever a read returned and hands back what it can: any split of a response gives the same events, and an event
// costs no allocation (one buffer for the head is reused). It copies no body bytes. Not thread-safe; one per
// connection.
//
// Lenient where real servers differ harmlessly (bare LF, any reason phrase), strict where leniency would misframe
// (conflicting lengths, unknown transfer codings).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace goodput {

class HttpResponseParser {
 public:
  enum class Event : uint8_t {
    kNeedMore,  // every byte was consumed
    kHead,      // status and headers are known (1xx are skipped, except 101)
    kBody,      // `body` is a piece of the payload, a view into the bytes given
    kEnd,       // the response is over; bytes behind it stay in the view
    kError,     // see failure(); stays so until reset()
  };
  enum class Failure : uint8_t { kNone, kMalformed, kTooLarge, kTruncated };
  struct Step {
    Event event;
    std::string_view body;
  };

  // Consumes from the front of `bytes` up to the next event.
  Step next(std::string_view& bytes);
  // The peer closed its side: kEnd where that is how this response ends, else kError with kTruncated.
  Step finish();
  // Ready for the next response of the connection.
  void reset();

  // Since kHead:
  int status() const { return status_; }
  // Value of the first such header, trimmed; empty if absent. Names compare without case.
  std::string_view header(std::string_view name) const;
  bool keep_alive() const { return keep_alive_; }  // the connection may carry another response

  Failure failure() const { return failure_; }
  const char* reason() const { return reason_; }  // what was wrong, for people
  // The bytes of the head so far (what came instead of HTTP, when that was the failure).
  std::string_view head() const { return head_; }

 private:
  enum class State : uint8_t {
    kHead,
    kLength,
    kUntilClose,
    kChunkSize,
    kChunkExtension,
    kChunkData,
    kChunkEnd,
    kTrailer,
    kDone,
    kFailed,
  };
  Step take_head(std::string_view& bytes);
  Step take_chunk_size(std::string_view& bytes);
  Step take_chunk_end(std::string_view& bytes);
  Step take_trailer(std::string_view& bytes);
  Step take_body(std::string_view& bytes);
  Step parse_head();
  bool parse_status_line(std::string_view line);
  const char* parse_framing();  // null: fine
  Step fail(Failure, const char* reason);

  State state_ = State::kHead;
  Failure failure_ = Failure::kNone;
  const char* reason_ = "";
  std::string head_;
  size_t line_start_ = 0;
  size_t headers_start_ = 0;
  int status_ = 0;
  bool http_1_0_ = false, keep_alive_ = false, any_digit_ = false, size_ended_ = false;
  uint64_t remaining_ = 0;    // of the body (kLength) or of the chunk
  size_t framing_bytes_ = 0;  // of a chunk's size line or of the trailers, against the limit
};

}  // namespace goodput
