#include "load/receiver.h"

#include <algorithm>

#include "base/limits.h"
#include "base/text.h"
#include "load/retry_after.h"

namespace goodput {
namespace {

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; }

std::optional<Framing> framing_of(std::string_view content_type) {
  const std::string_view type = trim(content_type.substr(0, content_type.find(';')));
  const auto is = [&](std::string_view name) {
    return std::equal(type.begin(), type.end(), name.begin(), name.end(), [](char a, char b) { return lower(a) == b; });
  };
  if (is("text/event-stream"))
    return Framing::kSse;
  for (const std::string_view lines : {"application/x-ndjson", "application/ndjson", "application/jsonl",
                                       "application/x-jsonl", "application/jsonlines", "application/stream+json"})
    if (is(lines))
      return Framing::kNdjson;
  if (is("application/json") || is("application/problem+json"))
    return Framing::kWhole;
  return std::nullopt;
}

}  // namespace

void Capture::clear() {
  bytes.clear();
  marks.clear();
  raw.clear();
  retry_after.clear();
  framing = Framing::kWhole;
  unterminated = any_bytes = done_sentinel = false;
  status = 0;
  first_body = last = ReadStamp{};
}

void Receiver::reset(Framing fallback) {
  fallback_ = fallback;
  http_.reset();
  sse_.reset();
  ndjson_.reset();
  capture_.clear();
  whole_ = leftover_ = false;
}

void Receiver::expect(size_t events) {
  constexpr size_t kMostBytes = 64 * 1024, kMostMarks = 512;  // a guess must not cost much where it is wrong
  if (capture_.marks.empty())
    return;
  capture_.marks.reserve(std::min(events, kMostMarks));
  capture_.bytes.reserve(std::min(events * capture_.marks.front().length, kMostBytes));
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
        take_head();
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

void Receiver::take_head() {
  capture_.status = http_.status();
  const bool success = capture_.status / 100 == 2;
  capture_.framing = framing_of(http_.header("content-type")).value_or(success ? fallback_ : Framing::kWhole);
  if (!success)
    capture_.retry_after = describe_retry_after(http_.header("retry-after"), http_.header("date"));
}

std::optional<Ending> Receiver::take_body(std::string_view body, const ReadStamp& stamp) {
  if (capture_.first_body.user == TimePoint())
    capture_.first_body = stamp;
  if (capture_.marks.empty()) {
    capture_.raw += body.substr(0, limits::kMaxErrorBody - std::min(capture_.raw.size(), limits::kMaxErrorBody));
  }
  switch (capture_.framing) {
    case Framing::kSse:
      return take_events(sse_, body, stamp);
    case Framing::kNdjson:
      return take_events(ndjson_, body, stamp);
    case Framing::kWhole:
      break;
  }
  if (capture_.bytes.size() + body.size() > limits::kMaxBodyBytes)
    return Ending::kLimit;
  capture_.bytes += body;
  return std::nullopt;
}

template <class Parser>
std::optional<Ending> Receiver::take_events(Parser& parser, std::string_view body, const ReadStamp& stamp) {
  while (true) {
    const auto step = parser.next(body, stamp);
    if (step.event == Parser::Event::kNeedMore)
      return std::nullopt;
    if (step.event == Parser::Event::kTooLong || !keep_event(step.data, step.stamp))
      return Ending::kLimit;
  }
}

// False: beyond the bound.
bool Receiver::keep_event(std::string_view data, const ReadStamp& stamp) {
  if (capture_.bytes.size() + data.size() > limits::kMaxStreamBytes)
    return false;
  capture_.raw.clear();
  if (capture_.framing == Framing::kSse && trim(data) == "[DONE]")
    capture_.done_sentinel = true;
  if (capture_.done_sentinel)
    return true;  // nothing counts behind it
  capture_.marks.push_back({capture_.bytes.size(), data.size(), stamp});
  capture_.bytes += data;
  return true;
}

// An answer that is no stream becomes one mark; the end of a stream may have cut off the last line's end.
void Receiver::end_of_body() {
  switch (capture_.framing) {
    case Framing::kSse:
      if (trim(sse_.unfinished()) == "[DONE]")
        capture_.done_sentinel = true;
      break;
    case Framing::kNdjson:
      if (!ndjson_.unfinished().empty() && keep_event(ndjson_.unfinished(), ndjson_.unfinished_stamp())) {
        capture_.unterminated = true;
        ndjson_.reset();
      }
      break;
    case Framing::kWhole:
      if (!capture_.bytes.empty())
        capture_.marks.push_back({0, capture_.bytes.size(), capture_.last});
      break;
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
