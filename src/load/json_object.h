// One JSON object of an answer, as the event readers see it: each look answers "absent" for what is missing or has
// another type, so that a reader is a list of names. Private to the room: simdjson stays out of its other headers.
// Valid while the parser that made it and the bytes it parsed are.
#pragma once

#include <simdjson.h>

#include <optional>
#include <string_view>

#include "base/units.h"

namespace goodput {

// A count of tokens that can be believed.
inline std::optional<Tokens> believable(std::optional<int64_t> n) {
  return n && *n >= 0 && *n <= INT32_MAX ? std::optional(Tokens(*n)) : std::nullopt;
}

class JsonObject {
 public:
  explicit JsonObject(simdjson::dom::object object) : object_(object) {}

  // Empty where absent or no string.
  std::string_view text(std::string_view key) const {
    std::string_view value;
    return object_[key].get(value) == simdjson::SUCCESS ? value : std::string_view();
  }
  std::optional<int64_t> number(std::string_view key) const { return get<int64_t>(key); }
  std::optional<bool> flag(std::string_view key) const { return get<bool>(key); }
  std::optional<Tokens> tokens(std::string_view key) const { return believable(number(key)); }
  // `key` in units of `unit`; absent too where it is 0, negative or longer than any run.
  std::optional<Nanos> duration(std::string_view key, Nanos unit) const {
    const auto n = get<double>(key);
    if (!n || !(*n > 0) || !(*n * to_seconds(unit) < 1e7))
      return std::nullopt;
    return from_seconds(*n * to_seconds(unit));
  }
  std::optional<JsonObject> object(std::string_view key) const {
    simdjson::dom::object value;
    return object_[key].get(value) == simdjson::SUCCESS ? std::optional(JsonObject(value)) : std::nullopt;
  }
  // Whether it is there and not null.
  bool has(std::string_view key) const {
    simdjson::dom::element value;
    return object_[key].get(value) == simdjson::SUCCESS && !value.is_null();
  }
  // Elements of an array; 0 where there is none.
  size_t length(std::string_view key) const {
    simdjson::dom::array value;
    return object_[key].get(value) == simdjson::SUCCESS ? value.size() : 0;
  }
  // Calls `visit(JsonObject)` for each object in an array.
  template <class Visit>
  void each(std::string_view key, Visit&& visit) const {
    simdjson::dom::array value;
    if (object_[key].get(value) != simdjson::SUCCESS)
      return;
    for (const simdjson::dom::element element : value) {
      simdjson::dom::object one;
      if (element.get(one) == simdjson::SUCCESS)
        visit(JsonObject(one));
    }
  }

 private:
  template <class T>
  std::optional<T> get(std::string_view key) const {
    T value{};
    return object_[key].get(value) == simdjson::SUCCESS ? std::optional(value) : std::nullopt;
  }

  simdjson::dom::object object_;
};

}  // namespace goodput
