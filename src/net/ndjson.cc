#include "net/ndjson.h"

#include <cstring>

#include "base/limits.h"

namespace goodput {

void NdjsonParser::reset() {
  line_.clear();
  line_stamp_ = ReadStamp{};
  first_line_ = true;
  delivered_ = false;
}

// Without the carriage returns at its end, and without a byte-order mark where one may stand.
std::string_view NdjsonParser::payload(std::string_view line) const {
  if (first_line_ && line.starts_with("\xEF\xBB\xBF"))
    line.remove_prefix(3);
  while (line.ends_with('\r'))
    line.remove_suffix(1);
  return line;
}

NdjsonParser::Step NdjsonParser::next(std::string_view& bytes, const ReadStamp& stamp) {
  if (delivered_) {
    line_.clear();
    delivered_ = false;
  }
  while (!bytes.empty()) {
    const auto* lf = static_cast<const char*>(std::memchr(bytes.data(), '\n', bytes.size()));
    const size_t length = lf == nullptr ? bytes.size() : static_cast<size_t>(lf - bytes.data());
    if (line_.size() + length > limits::kMaxResponseLine)
      return {Event::kTooLong, {}, stamp};
    const std::string_view piece = bytes.substr(0, length);
    const bool has_payload = piece.find_first_not_of('\r') != piece.npos;
    bytes.remove_prefix(lf == nullptr ? length : length + 1);
    if (lf == nullptr) {
      line_ += piece;
      if (has_payload)
        line_stamp_ = stamp;
      break;
    }
    const bool begun = !line_.empty();
    const ReadStamp line_stamp = begun && !has_payload ? line_stamp_ : stamp;
    if (begun)
      line_ += piece;
    const std::string_view line = payload(begun ? std::string_view(line_) : piece);
    first_line_ = false;
    if (line.empty()) {
      line_.clear();
      continue;
    }
    delivered_ = begun;
    return {Event::kData, line, line_stamp};
  }
  return {Event::kNeedMore, {}, stamp};
}

}  // namespace goodput
