// One JSON object of an answer, as the event readers see it: each look answers "absent" for what is missing or has
// another type, so that a reader is a list of names. simdjson stays in json_object.cc. An object is valid while its
// parser has not parsed again and the bytes stay. Not thread-safe.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <optional>
#include <string_view>
#include <type_traits>

#include "base/units.h"

namespace goodput {

// A count of tokens that can be believed.
inline std::optional<Tokens> believable(std::optional<int64_t> n) {
  return n && *n >= 0 && *n <= INT32_MAX ? std::optional(Tokens(*n)) : std::nullopt;
}

class JsonObject {
 public:
  // Empty where absent or no string.
  std::string_view text(std::string_view key) const;
  std::optional<int64_t> number(std::string_view key) const;
  std::optional<bool> flag(std::string_view key) const;
  std::optional<Tokens> tokens(std::string_view key) const { return believable(number(key)); }
  // `key` in units of `unit`; absent too where it is 0, negative or longer than any run.
  std::optional<Nanos> duration(std::string_view key, Nanos unit) const;
  std::optional<JsonObject> object(std::string_view key) const;
  // Whether it is there and not null.
  bool has(std::string_view key) const;
  // Elements of an array; 0 where there is none.
  size_t length(std::string_view key) const;
  // Calls `visit(JsonObject)` for each object in an array.
  template <class Visit>
  void each(std::string_view key, Visit&& visit) const {
    visit_each(
        key, [](void* context, JsonObject one) { (*static_cast<std::remove_reference_t<Visit>*>(context))(one); },
        &visit);
  }

 private:
  friend class JsonParser;
  struct Inside;
  void visit_each(std::string_view key, void (*visit)(void*, JsonObject), void* context) const;

  alignas(void*) std::array<std::byte, 2 * sizeof(void*)> handle_;  // simdjson's, two words
};

// Keeps its memory from text to text; depth is bounded by limits::kMaxJsonDepth.
class JsonParser {
 public:
  static const size_t kPadding;  // bytes behind a text that may be read

  JsonParser();
  ~JsonParser();
  // Absent: not JSON, or no object. The text must be followed by kPadding readable bytes.
  std::optional<JsonObject> parse(std::string_view padded);
  // Of a text without such bytes: keeps a copy.
  std::optional<JsonObject> parse_copy(std::string_view text);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace goodput
