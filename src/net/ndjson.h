// Newline-delimited JSON, as Ollama streams it: one value a line, ended by LF or CRLF. A leading byte-order mark and
// empty lines are skipped. Nothing in a line is looked at.
//
// A line carries the stamp of the read that delivered its last payload byte, not of the one that brought the line's
// end (the rule of sse.h). Any split gives the same lines and the same stamps. A line that came in one read is handed
// out where it lies: no copy, no allocation. Not thread-safe; one per stream.
#pragma once

#include <string>
#include <string_view>

#include "net/sse.h"

namespace goodput {

class NdjsonParser {
 public:
  using Event = SseParser::Event;
  using Step = SseParser::Step;

  // Consumes from the front of `bytes`, all of which came with `stamp`, up to the next line. The line is valid until
  // the next call and as long as `bytes` are.
  Step next(std::string_view& bytes, const ReadStamp& stamp);
  // The last line of a stream that ended without a line's end, and its stamp; empty if there is none.
  std::string_view unfinished() const { return delivered_ ? std::string_view() : payload(line_); }
  const ReadStamp& unfinished_stamp() const { return line_stamp_; }
  void reset();

 private:
  std::string_view payload(std::string_view line) const;

  std::string line_;  // begun in an earlier read
  ReadStamp line_stamp_;
  bool first_line_ = true, delivered_ = false;  // delivered_: line_ was handed out by the last call
};

}  // namespace goodput
