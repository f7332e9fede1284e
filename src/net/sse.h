// Server-sent events (WHATWG HTML, "Server-sent events"), of which LLM servers use `data:`. Lines end in LF, CR or
// CRLF, in any split; a leading byte-order mark and comments are skipped; event, id and retry are read over; data lines
// of one event are joined by LF; the value loses exactly one leading space. An event without data, or cut off by the
// end of the stream, is none.
//
// An event carries the stamp of the read that delivered its last payload byte, not of the one that brought the blank
// line behind it: that is when the token was here. Any split gives the same events. Not thread-safe; one per stream.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/units.h"

namespace goodput {

// When bytes came: return of the read in user space, and the kernel's receive stamp on the same timeline.
struct ReadStamp {
  TimePoint user;
  std::optional<TimePoint> kernel;
  uint32_t read = 0;  // ordinal of the read in its stream: events with one number came together
};

class SseParser {
 public:
  enum class Event : uint8_t { kNeedMore, kData, kTooLong };
  struct Step {
    Event event;
    std::string_view data;  // until the next call
    ReadStamp stamp;
  };

  // Consumes from the front of `bytes`, all of which came with `stamp`, up to the next event.
  Step next(std::string_view& bytes, const ReadStamp& stamp);
  // Payload of an event that no blank line has ended (the standard drops it); empty if none.
  std::string_view unfinished() const;
  void reset();

 private:
  bool end_line(std::string_view rest_of_line, const ReadStamp&);  // true: an event is complete
  void take_line(std::string_view line);

  std::string line_;  // of an unfinished line
  std::string data_;
  ReadStamp line_stamp_, data_stamp_;
  bool has_data_ = false, skip_lf_ = false, first_line_ = true, delivered_ = false;
};

}  // namespace goodput
