#include "workload/trace_input.h"

#include <cerrno>
#include <cstring>

#include <fmt/format.h>

#include "base/limits.h"

namespace goodput {
namespace {

bool is_blank(int c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

}  // namespace

TraceInput::TraceInput(std::FILE* file, std::string path) : file_(file), path_(std::move(path)), buffer_(65536) {}

Result<TraceInput> TraceInput::open(const std::string& path) {
  std::FILE* file = std::fopen(path.c_str(), "re");
  if (!file)
    return fail(errno == ENOENT ? ErrorCode::kNotFound : ErrorCode::kIo,
                fmt::format("cannot open the trace: {}", std::strerror(errno)), path);
  return TraceInput(file, path);
}

Result<TraceInput> TraceInput::of_bytes(std::string_view bytes) {
  // fmemopen's signature is older than const; "r" does not write.
  std::FILE* file = fmemopen(const_cast<char*>(bytes.data()), bytes.size(), "r");
  if (!file)
    return fail(ErrorCode::kIo, "cannot read from memory", "memory");
  return TraceInput(file, "memory");
}

void TraceInput::rewind() {
  std::fseek(file_.get(), 0, SEEK_SET);
  std::clearerr(file_.get());
  begin_ = end_ = 0;
  at_start_ = true;
  line_ = 0;
}

Result<bool> TraceInput::fill() {
  begin_ = 0;
  end_ = std::fread(buffer_.data(), 1, buffer_.size(), file_.get());
  if (end_ == 0 && std::ferror(file_.get()))
    return fail(ErrorCode::kIo, fmt::format("cannot read the trace: {}", std::strerror(errno)), path_);
  if (at_start_ && std::string_view(buffer_.data(), end_).starts_with("\xEF\xBB\xBF"))
    begin_ = 3;
  at_start_ = at_start_ && end_ == 0;
  return begin_ < end_ || (begin_ == 3 && TRY(fill()));
}

Result<char> TraceInput::first_byte() {
  if (begin_ == end_ && !TRY(fill()))
    return '\0';
  for (size_t i = begin_; i < end_; ++i)
    if (!is_blank(buffer_[i]))
      return buffer_[i];
  return '\0';
}

Result<bool> TraceInput::next_line(std::string& line) {
  const auto strip = [&] {
    if (line.ends_with('\r'))
      line.pop_back();
  };
  line.clear();
  for (;;) {
    if (begin_ == end_ && !TRY(fill())) {
      line_ += !line.empty();
      const bool any = !line.empty();
      strip();
      return any;
    }
    const std::string_view rest(buffer_.data() + begin_, end_ - begin_);
    const size_t newline = rest.find('\n');
    line += rest.substr(0, newline);
    if (line.size() > limits::kMaxTraceLine) {
      ++line_;
      return wrong(fmt::format("line longer than {} bytes", limits::kMaxTraceLine));
    }
    begin_ += newline == rest.npos ? rest.size() : newline + 1;
    if (newline == rest.npos)
      continue;
    ++line_;
    strip();
    return true;
  }
}

Result<int> TraceInput::get() {
  if (begin_ == end_ && !TRY(fill()))
    return -1;
  const char c = buffer_[begin_++];
  line_ += c == '\n';
  return static_cast<unsigned char>(c);
}

Result<int> TraceInput::skip_blank() {
  for (;;) {
    const int c = TRY(get());
    if (!is_blank(c))
      return c;
  }
}

Result<bool> TraceInput::next_element(std::string& element) {
  element.clear();
  if (line_ == 0)
    line_ = 1;
  if (array_ == Array::kOver)
    return false;
  int c = TRY(skip_blank());
  if (array_ == Array::kUnknown) {
    array_ = c == '[' ? Array::kInside : Array::kNone;
    if (c == '[')
      c = TRY(skip_blank());
  }
  if (array_ == Array::kInside) {
    if (c == ',' && !first_element_)
      c = TRY(skip_blank());
    else if (c != ']' && !first_element_)
      return wrong(c < 0 ? "the file ends inside its array" : "expected ',' or ']' after an element of the array");
    if (c == ']') {
      array_ = Array::kOver;
      if (TRY(skip_blank()) >= 0)
        return wrong("text after the end of the array");
      return false;
    }
  }
  if (c < 0 && array_ == Array::kNone)
    return false;
  if (c != '{')
    return wrong(c < 0 ? "the file ends inside its array" : "expected an object in { }");
  first_element_ = false;
  const uint64_t begun = line_;
  bool quoted = false, escaped = false;
  for (int depth = 0;; c = TRY(get())) {
    if (c < 0 || element.size() == limits::kMaxTraceRecord) {
      line_ = begun;
      return wrong(c < 0 ? "the file ends inside this element"
                         : fmt::format("an element longer than {} bytes", limits::kMaxTraceRecord));
    }
    element += static_cast<char>(c);
    if (quoted) {
      quoted = escaped || c != '"';
      escaped = !escaped && c == '\\';
      continue;
    }
    quoted = c == '"';
    depth += (c == '{' || c == '[') - (c == '}' || c == ']');
    if (depth == 0)
      return true;
  }
}

tl::unexpected<Error> TraceInput::wrong(std::string message) const {
  return fail(ErrorCode::kUsage, std::move(message), fmt::format("{}:{}", path_, line_));
}

std::string shown(std::string_view text) {
  return text.size() <= 60 ? std::string(text) : std::string(text.substr(0, 60)) + "…";
}

}  // namespace goodput
