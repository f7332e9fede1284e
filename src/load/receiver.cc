#include "load/receiver.h"

#include <algorithm>

#include "base/limits.h"
#include "base/text.h"

namespace goodput {
namespace {

bool says_event_stream(std::string_view content_type) {
  static constexpr std::string_view kType = "text/event-stream";
  if (content_type.size() < kType.size())
    return false;
  return std::equal(kType.begin(), kType.end(), content_type.begin(),
                    [](char a, char b) { return a == (b | 0x20) || a == b; });
}

}  // namespace

void Capture::clear() {
  bytes.clear();
  marks.clear();
  raw.clear();
  event_stream = any_bytes = done_sentinel = false;
  status = 0;
  first_body = last = ReadStamp{};
}

void Receiver::reset() {
  http_.reset();
  sse_.reset();
  capture_.clear();
  whole_ = leftover_ = false;
}

std::optional<Ending> Receiver::feed(std::string_view bytes, const ReadStamp& stamp) {
  using Event = HttpResponseParser::Event;
  capture_.any_bytes = true;
  capture_.last = stamp;
  while (true) {
    const auto step = http_.next(bytes);
    switch (step.event) {
      case Event::kNeedMore:
        return std::nullopt;
      case Event::kHead:
        capture_.status = http_.status();
        capture_.event_stream = says_event_stream(http_.header("content-type"));
        break;
      case Event::kBody:
        if (const auto ended = take_body(step.body, stamp))
          return ended;
        break;
      case Event::kEnd:
        whole_ = true;
        leftover_ = !bytes.empty();
        end_of_body();
        return Ending::kComplete;
      case Event::kError:
        return http_.failure() == HttpResponseParser::Failure::kTooLarge ? Ending::kLimit : Ending::kMalformed;
    }
  }
}

std::optional<Ending> Receiver::take_body(std::string_view body, const ReadStamp& stamp) {
  if (capture_.first_body.user == TimePoint())
    capture_.first_body = stamp;
  if (capture_.marks.empty()) {
    capture_.raw += body.substr(0, limits::kMaxErrorBody - std::min(capture_.raw.size(), limits::kMaxErrorBody));
  }
  if (capture_.event_stream)
    return take_events(body, stamp);
  if (capture_.bytes.size() + body.size() > limits::kMaxBodyBytes)
    return Ending::kLimit;
  capture_.bytes += body;
  return std::nullopt;
}

std::optional<Ending> Receiver::take_events(std::string_view body, const ReadStamp& stamp) {
  while (true) {
    const auto step = sse_.next(body, stamp);
    if (step.event == SseParser::Event::kNeedMore)
      return std::nullopt;
    if (step.event == SseParser::Event::kTooLong)
      return Ending::kLimit;
    if (capture_.bytes.size() + step.data.size() > limits::kMaxStreamBytes)
      return Ending::kLimit;
    capture_.raw.clear();
    if (trim(step.data) == "[DONE]") {
      capture_.done_sentinel = true;
      continue;
    }
    if (capture_.done_sentinel)
      continue;  // nothing counts behind it
    capture_.marks.push_back({capture_.bytes.size(), step.data.size(), step.stamp});
    capture_.bytes += step.data;
  }
}

// An answer that is no event stream becomes one mark; the end of a stream may have cut off the last blank line.
void Receiver::end_of_body() {
  if (capture_.event_stream) {
    if (trim(sse_.unfinished()) == "[DONE]")
      capture_.done_sentinel = true;
  } else if (!capture_.bytes.empty()) {
    capture_.marks.push_back({0, capture_.bytes.size(), capture_.last});
  }
}

Ending Receiver::closed() {
  if (capture_.done_sentinel)
    return Ending::kComplete;
  const bool answered = capture_.status != 0;
  const bool whole = http_.finish().event == HttpResponseParser::Event::kEnd;
  end_of_body();
  if (whole || capture_.done_sentinel)
    return Ending::kComplete;
  if (!capture_.any_bytes)
    return Ending::kReset;
  return answered || http_.failure() == HttpResponseParser::Failure::kTruncated ? Ending::kClosed : Ending::kMalformed;
}

}  // namespace goodput
