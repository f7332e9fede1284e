#include "net/sse.h"

#include <cstring>

#include "base/limits.h"

namespace goodput {
namespace {

// Index of the first CR or LF, or the size.
size_t line_end(std::string_view bytes) {
  const auto* lf = static_cast<const char*>(std::memchr(bytes.data(), '\n', bytes.size()));
  const size_t n = lf == nullptr ? bytes.size() : static_cast<size_t>(lf - bytes.data());
  const auto* cr = static_cast<const char*>(std::memchr(bytes.data(), '\r', n));
  return cr == nullptr ? n : static_cast<size_t>(cr - bytes.data());
}

}  // namespace

void SseParser::reset() {
  line_.clear();
  data_.clear();
  has_data_ = skip_lf_ = delivered_ = false;
  first_line_ = true;
}

std::string_view SseParser::unfinished() const {
  if (delivered_)
    return {};
  if (has_data_)
    return data_;
  // A last line without any line ending: servers have closed right behind "data: [DONE]".
  std::string_view line = line_;
  if (!line.starts_with("data:"))
    return {};
  line.remove_prefix(5);
  if (line.starts_with(' '))
    line.remove_prefix(1);
  return line;
}

SseParser::Step SseParser::next(std::string_view& bytes, const ReadStamp& stamp) {
  if (delivered_) {
    data_.clear();
    has_data_ = delivered_ = false;
  }
  while (!bytes.empty()) {
    if (skip_lf_) {
      skip_lf_ = false;
      if (bytes.front() == '\n') {
        bytes.remove_prefix(1);
        continue;
      }
    }
    const size_t end = line_end(bytes);
    if (line_.size() + data_.size() + end > limits::kMaxResponseLine)
      return {Event::kTooLong, {}, stamp};
    if (end == bytes.size()) {
      line_ += bytes;
      line_stamp_ = stamp;
      bytes = {};
      break;
    }
    skip_lf_ = bytes[end] == '\r';
    const std::string_view piece = bytes.substr(0, end);
    bytes.remove_prefix(end + 1);
    if (end_line(piece, stamp)) {
      delivered_ = true;
      return {Event::kData, data_, data_stamp_};
    }
  }
  return {Event::kNeedMore, {}, stamp};
}

bool SseParser::end_line(std::string_view rest_of_line, const ReadStamp& stamp) {
  const ReadStamp& last_byte = rest_of_line.empty() && !line_.empty() ? line_stamp_ : stamp;
  std::string_view line = rest_of_line;
  if (!line_.empty()) {
    line_ += rest_of_line;
    line = line_;
  }
  if (first_line_) {
    first_line_ = false;
    if (line.starts_with("\xEF\xBB\xBF"))
      line.remove_prefix(3);
  }
  if (line.empty()) {
    line_.clear();
    return has_data_;
  }
  if (line.starts_with("data") && (line.size() == 4 || line[4] == ':')) {
    data_stamp_ = last_byte;
    take_line(line.size() > 5 ? line.substr(5) : std::string_view());
  }
  line_.clear();
  return false;
}

void SseParser::take_line(std::string_view value) {
  if (value.starts_with(' '))
    value.remove_prefix(1);
  if (has_data_)
    data_ += '\n';
  data_ += value;
  has_data_ = true;
}

}  // namespace goodput
