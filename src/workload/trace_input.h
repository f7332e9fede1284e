// The bytes of a trace: by lines, or by the elements of a JSON array that may stand on one line of a gigabyte. Holds
// one read buffer. Internal to the room.
#pragma once

#include <cstdio>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace goodput {

class TraceInput {
 public:
  static Result<TraceInput> open(const std::string& path);
  static Result<TraceInput> of_bytes(std::string_view bytes);  // must outlive it; for tests and fuzzing

  // The first byte that is neither of a byte order mark nor blank, unread; 0: none near.
  Result<char> first_byte();
  // The next line without its end (LF or CRLF) and without the file's byte order mark; false at the end of the file.
  Result<bool> next_line(std::string& line);
  // The next {…} of a JSON array, or of objects one after the other; false at the end. Only brackets and quotes are
  // looked at. line() is where it begins.
  Result<bool> next_element(std::string& element);
  void rewind();

  // An error at the line last read.
  tl::unexpected<Error> wrong(std::string message) const;
  uint64_t line() const { return line_; }

 private:
  TraceInput(std::FILE* file, std::string path);

  Result<bool> fill();
  Result<int> get();  // a byte, or -1 at the end
  Result<int> skip_blank();

  struct Close {
    void operator()(std::FILE* f) const { std::fclose(f); }
  };
  std::unique_ptr<std::FILE, Close> file_;
  std::string path_;
  std::vector<char> buffer_;
  size_t begin_ = 0, end_ = 0;
  bool at_start_ = true;
  uint64_t line_ = 0;  // begun
  enum class Array { kUnknown, kInside, kNone, kOver } array_ = Array::kUnknown;
  bool first_element_ = true;
};

// Short enough for a message.
std::string shown(std::string_view text);

}  // namespace goodput
