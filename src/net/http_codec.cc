#include "net/http_codec.h"

#include <algorithm>
#include <optional>

#include "base/limits.h"

namespace goodput {
namespace {

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; }

bool same_name(std::string_view a, std::string_view b) {
  return a.size() == b.size() &&
         std::equal(a.begin(), a.end(), b.begin(), [](char x, char y) { return lower(x) == lower(y); });
}

std::string_view strip(std::string_view s) {
  while (!s.empty() && (s.front() == ' ' || s.front() == '\t'))
    s.remove_prefix(1);
  while (!s.empty() && (s.back() == ' ' || s.back() == '\t' || s.back() == '\r'))
    s.remove_suffix(1);
  return s;
}

// Calls `visit(name, value)` for each header line of `lines`; false on a line that is none.
template <class Visit>
bool for_each_header(std::string_view lines, Visit&& visit) {
  while (!lines.empty()) {
    const size_t newline = std::min(lines.find('\n'), lines.size());
    std::string_view line = lines.substr(0, newline);
    lines.remove_prefix(std::min(newline + 1, lines.size()));
    if (line.ends_with('\r'))
      line.remove_suffix(1);
    if (line.empty())
      continue;
    const size_t colon = line.find(':');
    // A folded line (leading blank) or a blank before the colon has been used to smuggle; RFC 9112 lets us refuse.
    if (colon == std::string_view::npos || colon == 0 || line.front() == ' ' || line.front() == '\t')
      return false;
    if (line[colon - 1] == ' ' || line[colon - 1] == '\t')
      return false;
    visit(line.substr(0, colon), strip(line.substr(colon + 1)));
  }
  return true;
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9')
    return c - '0';
  c = lower(c);
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

std::optional<uint64_t> parse_length(std::string_view text) {
  if (text.empty() || text.size() > 18)
    return std::nullopt;
  uint64_t value = 0;
  for (const char c : text) {
    if (c < '0' || c > '9')
      return std::nullopt;
    value = value * 10 + static_cast<uint64_t>(c - '0');
  }
  return value;
}

// Whether a comma-separated list names `token`.
bool lists(std::string_view list, std::string_view token) {
  while (!list.empty()) {
    const size_t comma = std::min(list.find(','), list.size());
    if (same_name(strip(list.substr(0, comma)), token))
      return true;
    list.remove_prefix(std::min(comma + 1, list.size()));
  }
  return false;
}

}  // namespace

HttpResponseParser::Step HttpResponseParser::fail(Failure failure, const char* reason) {
  state_ = State::kFailed;
  failure_ = failure;
  reason_ = reason;
  return {Event::kError, {}};
}

void HttpResponseParser::reset() {
  head_.clear();
  state_ = State::kHead;
  failure_ = Failure::kNone;
  reason_ = "";
  line_start_ = headers_start_ = framing_bytes_ = 0;
  status_ = 0;
  remaining_ = 0;
  http_1_0_ = keep_alive_ = any_digit_ = size_ended_ = false;
}

std::string_view HttpResponseParser::header(std::string_view name) const {
  std::optional<std::string_view> found;
  for_each_header(std::string_view(head_).substr(headers_start_), [&](std::string_view n, std::string_view value) {
    if (!found && same_name(n, name))
      found = value;
  });
  return found.value_or(std::string_view());
}

HttpResponseParser::Step HttpResponseParser::next(std::string_view& bytes) {
  while (true) {
    Step step{Event::kNeedMore, {}};
    switch (state_) {
      case State::kFailed:
        return {Event::kError, {}};
      case State::kDone:
        return {Event::kEnd, {}};
      case State::kLength:
        if (remaining_ == 0) {
          state_ = State::kDone;
          return {Event::kEnd, {}};
        }
        return take_body(bytes);
      default:
        break;
    }
    if (bytes.empty())
      return step;
    const State before = state_;
    switch (state_) {
      case State::kHead:
        step = take_head(bytes);
        break;
      case State::kChunkSize:
      case State::kChunkExtension:
        step = take_chunk_size(bytes);
        break;
      case State::kChunkEnd:
        step = take_chunk_end(bytes);
        break;
      case State::kTrailer:
        step = take_trailer(bytes);
        break;
      default:
        step = take_body(bytes);
        break;
    }
    if (step.event != Event::kNeedMore || (bytes.empty() && state_ == before))
      return step;
  }
}

HttpResponseParser::Step HttpResponseParser::finish() {
  switch (state_) {
    case State::kDone:
      return {Event::kEnd, {}};
    case State::kFailed:
      return {Event::kError, {}};
    case State::kUntilClose:
      state_ = State::kDone;
      return {Event::kEnd, {}};
    case State::kLength:
      if (remaining_ == 0) {
        state_ = State::kDone;
        return {Event::kEnd, {}};
      }
      break;
    default:
      break;
  }
  return fail(Failure::kTruncated, "the connection closed in the middle of a response");
}

HttpResponseParser::Step HttpResponseParser::take_body(std::string_view& bytes) {
  if (bytes.empty())
    return {Event::kNeedMore, {}};
  if (state_ == State::kUntilClose) {
    const std::string_view all = bytes;
    bytes = {};
    return {Event::kBody, all};
  }
  const std::string_view piece = bytes.substr(0, remaining_);
  bytes.remove_prefix(piece.size());
  remaining_ -= piece.size();
  if (remaining_ == 0 && state_ == State::kChunkData)
    state_ = State::kChunkEnd;
  return {Event::kBody, piece};
}

HttpResponseParser::Step HttpResponseParser::take_head(std::string_view& bytes) {
  while (!bytes.empty()) {
    const size_t newline = bytes.find('\n');
    const std::string_view piece = bytes.substr(0, newline == std::string_view::npos ? newline : newline + 1);
    bytes.remove_prefix(piece.size());
    // Bounded before it is kept; and what cannot become HTTP is refused at once, before a line of it is awaited.
    const size_t room = limits::kMaxHeaderBytes - head_.size();
    head_ += piece.substr(0, room);
    static constexpr std::string_view kMagic = "HTTP/";
    const size_t seen = std::min(head_.size(), kMagic.size());
    if (head_.compare(0, seen, kMagic.substr(0, seen)) != 0)
      return fail(Failure::kMalformed, "the answer is not HTTP");
    if (piece.size() > room)
      return fail(Failure::kTooLarge, "the response head is beyond the limit");
    if (newline == std::string_view::npos)
      return {Event::kNeedMore, {}};
    std::string_view line = std::string_view(head_).substr(line_start_);
    line.remove_suffix(1);
    if (line.ends_with('\r'))
      line.remove_suffix(1);
    line_start_ = head_.size();
    if (line.empty())
      return parse_head();
  }
  return {Event::kNeedMore, {}};
}

// "HTTP/1.x NNN[ reason]"
bool HttpResponseParser::parse_status_line(std::string_view line) {
  if (line.size() < 12 || !line.starts_with("HTTP/1.") || line[8] != ' ')
    return false;
  if (line[7] != '0' && line[7] != '1')
    return false;
  status_ = 0;
  for (size_t i = 9; i < 12; ++i) {
    if (line[i] < '0' || line[i] > '9')
      return false;
    status_ = status_ * 10 + (line[i] - '0');
  }
  http_1_0_ = line[7] == '0';
  return status_ >= 100 && (line.size() == 12 || line[12] == ' ');
}

HttpResponseParser::Step HttpResponseParser::parse_head() {
  const size_t newline = head_.find('\n');
  std::string_view first = std::string_view(head_).substr(0, newline);
  if (first.ends_with('\r'))
    first.remove_suffix(1);
  if (!parse_status_line(first))
    return fail(Failure::kMalformed, "the status line is not HTTP/1.1's");
  headers_start_ = newline + 1;
  if (const char* wrong = parse_framing())
    return fail(Failure::kMalformed, wrong);
  if (status_ < 200 && status_ != 101) {  // 100 Continue, 102, 103: the answer is still to come
    reset();
    return {Event::kNeedMore, {}};
  }
  return {Event::kHead, {}};
}

const char* HttpResponseParser::parse_framing() {
  std::optional<uint64_t> length;
  bool bad_length = false, chunked = false, other_coding = false, close = http_1_0_;
  const bool lines = for_each_header(std::string_view(head_).substr(headers_start_),
                                     [&](std::string_view name, std::string_view value) {
                                       if (same_name(name, "content-length")) {
                                         const auto parsed = parse_length(value);
                                         if (!parsed || (length && *length != *parsed))
                                           bad_length = true;
                                         length = parsed;
                                       } else if (same_name(name, "transfer-encoding")) {
                                         if (same_name(value, "chunked") && !chunked) {
                                           chunked = true;
                                         } else if (!same_name(value, "identity")) {
                                           other_coding = true;
                                         }
                                       } else if (same_name(name, "connection")) {
                                         if (lists(value, "close"))
                                           close = true;
                                         if (lists(value, "keep-alive") && http_1_0_)
                                           close = false;
                                       }
                                     });
  if (!lines)
    return "a header line has no name";
  if (bad_length)
    return "Content-Length is not one number";
  if (other_coding)
    return "the transfer coding is not chunked";
  keep_alive_ = !close;
  framing_bytes_ = 0;
  if (status_ == 204 || status_ == 304 || status_ < 200) {
    state_ = State::kLength;
    remaining_ = 0;
  } else if (chunked) {
    state_ = State::kChunkSize;
    remaining_ = 0;
  } else if (length) {
    state_ = State::kLength;
    remaining_ = *length;
  } else {
    state_ = State::kUntilClose;
    keep_alive_ = false;
  }
  return nullptr;
}

HttpResponseParser::Step HttpResponseParser::take_chunk_size(std::string_view& bytes) {
  while (!bytes.empty()) {
    const char c = bytes.front();
    bytes.remove_prefix(1);
    if (++framing_bytes_ > limits::kMaxHeaderBytes)
      return fail(Failure::kTooLarge, "a chunk extension is beyond the limit");
    if (c == '\n') {
      if (!any_digit_)
        return fail(Failure::kMalformed, "a chunk has no size");
      state_ = remaining_ == 0 ? State::kTrailer : State::kChunkData;
      any_digit_ = size_ended_ = false;
      framing_bytes_ = 0;
      return {Event::kNeedMore, {}};
    }
    if (state_ == State::kChunkExtension)
      continue;
    const int digit = hex_digit(c);
    if (digit >= 0 && !size_ended_) {
      if (remaining_ >> 56)
        return fail(Failure::kMalformed, "a chunk size does not fit");
      remaining_ = remaining_ * 16 + static_cast<uint64_t>(digit);
      any_digit_ = true;
    } else if (c == ';' && any_digit_) {
      state_ = State::kChunkExtension;
    } else if ((c == ' ' || c == '\t' || c == '\r') && any_digit_) {
      size_ended_ = true;
    } else {
      return fail(Failure::kMalformed, "a chunk size is not hexadecimal");
    }
  }
  return {Event::kNeedMore, {}};
}

HttpResponseParser::Step HttpResponseParser::take_chunk_end(std::string_view& bytes) {
  while (!bytes.empty()) {
    const char c = bytes.front();
    bytes.remove_prefix(1);
    if (c == '\r' && !size_ended_) {
      size_ended_ = true;
    } else if (c == '\n') {
      size_ended_ = false;
      state_ = State::kChunkSize;
      return {Event::kNeedMore, {}};
    } else {
      return fail(Failure::kMalformed, "a chunk is longer than its size");
    }
  }
  return {Event::kNeedMore, {}};
}

// Trailer lines are skipped up to the empty one; `any_digit_` means that the current line has bytes.
HttpResponseParser::Step HttpResponseParser::take_trailer(std::string_view& bytes) {
  while (!bytes.empty()) {
    const char c = bytes.front();
    bytes.remove_prefix(1);
    if (++framing_bytes_ > limits::kMaxHeaderBytes)
      return fail(Failure::kTooLarge, "the trailers are beyond the limit");
    if (c == '\n') {
      if (!any_digit_) {
        state_ = State::kDone;
        return {Event::kEnd, {}};
      }
      any_digit_ = false;
    } else if (c != '\r') {
      any_digit_ = true;
    }
  }
  return {Event::kNeedMore, {}};
}

}  // namespace goodput
