// Writes one JSON document front to back. Own, because Boost.JSON prints every double as `1.25E1`, and people read
// these files: here a double has the fewest digits that read back to the same value, and what is not finite is null.
// Text that is not UTF-8 (a server's words) is written with U+FFFD in place of the bad bytes, so that the document
// always parses. One thread. Misuse (a value without a key inside an object, an unclosed bracket) is our own bug:
// CHECK.
#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace goodput {

class JsonWriter {
 public:
  JsonWriter& begin_object();
  JsonWriter& end_object();
  JsonWriter& begin_array();
  JsonWriter& end_array();
  JsonWriter& key(std::string_view name);

  JsonWriter& null();
  JsonWriter& value(std::string_view text);
  JsonWriter& value(const char* text) { return value(std::string_view(text)); }
  JsonWriter& value(double number);  // null when not finite
  template <std::same_as<bool> B>
  JsonWriter& value(B truth) {
    return raw(truth ? "true" : "false");
  }
  template <std::integral I>
    requires(!std::same_as<I, bool>)
  JsonWriter& value(I number) {
    if constexpr (std::signed_integral<I>)
      return signed_value(number);
    return unsigned_value(number);
  }
  template <class T>
  JsonWriter& value(const std::optional<T>& maybe) {
    return maybe ? value(*maybe) : null();
  }
  // A value that is JSON already.
  JsonWriter& raw(std::string_view json);

  template <class T>
  JsonWriter& field(std::string_view name, const T& content) {
    key(name);
    return value(content);
  }

  // The document; every bracket must be closed.
  std::string take();

 private:
  JsonWriter& signed_value(int64_t number);
  JsonWriter& unsigned_value(uint64_t number);
  void separate();  // the comma before a value, if one is due
  void append_text(std::string_view text);

  struct Level {
    bool object, empty;
  };
  std::string out_;
  std::vector<Level> levels_;
  bool after_key_ = false;
};

}  // namespace goodput
