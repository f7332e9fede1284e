#include "load/json_object.h"

#include <simdjson.h>

#include <bit>

#include "base/limits.h"

namespace goodput {

namespace dom = simdjson::dom;

struct JsonObject::Inside {
  static_assert(sizeof(dom::object) == sizeof(JsonObject) && std::is_trivially_copyable_v<dom::object>);
  static dom::object of(const JsonObject& o) { return std::bit_cast<dom::object>(o.handle_); }
  static JsonObject wrap(dom::object o) {
    JsonObject out;
    out.handle_ = std::bit_cast<decltype(out.handle_)>(o);
    return out;
  }
  template <class T>
  static std::optional<T> get(const JsonObject& o, std::string_view key) {
    T value{};
    return of(o)[key].get(value) == simdjson::SUCCESS ? std::optional(value) : std::nullopt;
  }
};

std::string_view JsonObject::text(std::string_view key) const {
  return Inside::get<std::string_view>(*this, key).value_or(std::string_view());
}
std::optional<int64_t> JsonObject::number(std::string_view key) const { return Inside::get<int64_t>(*this, key); }
std::optional<bool> JsonObject::flag(std::string_view key) const { return Inside::get<bool>(*this, key); }

std::optional<Nanos> JsonObject::duration(std::string_view key, Nanos unit) const {
  const auto n = Inside::get<double>(*this, key);
  if (!n || !(*n > 0) || !(*n * to_seconds(unit) < 1e7))
    return std::nullopt;
  return from_seconds(*n * to_seconds(unit));
}

std::optional<JsonObject> JsonObject::object(std::string_view key) const {
  const auto inner = Inside::get<dom::object>(*this, key);
  return inner ? std::optional(Inside::wrap(*inner)) : std::nullopt;
}

bool JsonObject::has(std::string_view key) const {
  dom::element value;
  return Inside::of(*this)[key].get(value) == simdjson::SUCCESS && !value.is_null();
}

size_t JsonObject::length(std::string_view key) const {
  const auto array = Inside::get<dom::array>(*this, key);
  return array ? array->size() : 0;
}

void JsonObject::visit_each(std::string_view key, void (*visit)(void*, JsonObject), void* context) const {
  const auto array = Inside::get<dom::array>(*this, key);
  if (!array)
    return;
  for (const dom::element element : *array) {
    dom::object one;
    if (element.get(one) == simdjson::SUCCESS)
      visit(context, Inside::wrap(one));
  }
}

struct JsonParser::State {
  dom::parser parser;
  simdjson::padded_string copy;
};

const size_t JsonParser::kPadding = simdjson::SIMDJSON_PADDING;

JsonParser::JsonParser() : state_(std::make_unique<State>()) {
  const auto allocated = state_->parser.allocate(64 * 1024, limits::kMaxJsonDepth);
  static_cast<void>(allocated);  // without the memory, parse() fails and says so
}
JsonParser::~JsonParser() = default;

std::optional<JsonObject> JsonParser::parse(std::string_view padded) {
  dom::object o;
  if (state_->parser.parse(padded.data(), padded.size(), false).get(o) != simdjson::SUCCESS)
    return std::nullopt;
  return JsonObject::Inside::wrap(o);
}

std::optional<JsonObject> JsonParser::parse_copy(std::string_view text) {
  state_->copy = simdjson::padded_string(text);
  return parse(std::string_view(state_->copy));
}

}  // namespace goodput
