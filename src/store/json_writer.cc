#include "store/json_writer.h"

#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "base/check.h"

namespace goodput {
namespace {

// Bytes of the UTF-8 character at the front of `text`; 0 when there is none (bad lead, cut short, overlong, surrogate).
size_t utf8_length(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80)
    return 1;
  const size_t n = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || text.size() < n)
    return 0;
  for (size_t i = 1; i < n; ++i)
    if ((byte(i) & 0xC0) != 0x80)
      return 0;
  const unsigned char second = byte(1);
  if (lead == 0xE0 && second < 0xA0)
    return 0;
  if (lead == 0xED && second > 0x9F)
    return 0;
  if (lead == 0xF0 && second < 0x90)
    return 0;
  if (lead == 0xF4 && second > 0x8F)
    return 0;
  return n;
}

}  // namespace

void JsonWriter::separate() {
  if (after_key_) {
    after_key_ = false;
    return;
  }
  if (levels_.empty()) {
    CHECK(out_.empty(), "one value per document");
    return;
  }
  CHECK(!levels_.back().object, "a value inside an object needs a key");
  if (!std::exchange(levels_.back().empty, false))
    out_ += ',';
}

JsonWriter& JsonWriter::begin_object() {
  separate();
  levels_.push_back({true, true});
  out_ += '{';
  return *this;
}

JsonWriter& JsonWriter::end_object() {
  CHECK(!levels_.empty() && levels_.back().object && !after_key_);
  levels_.pop_back();
  out_ += '}';
  return *this;
}

JsonWriter& JsonWriter::begin_array() {
  separate();
  levels_.push_back({false, true});
  out_ += '[';
  return *this;
}

JsonWriter& JsonWriter::end_array() {
  CHECK(!levels_.empty() && !levels_.back().object);
  levels_.pop_back();
  out_ += ']';
  return *this;
}

JsonWriter& JsonWriter::key(std::string_view name) {
  CHECK(!levels_.empty() && levels_.back().object && !after_key_, "a key belongs into an object");
  if (!std::exchange(levels_.back().empty, false))
    out_ += ',';
  append_text(name);
  out_ += ':';
  after_key_ = true;
  return *this;
}

JsonWriter& JsonWriter::raw(std::string_view json) {
  separate();
  out_ += json;
  return *this;
}

JsonWriter& JsonWriter::null() { return raw("null"); }

JsonWriter& JsonWriter::value(std::string_view text) {
  separate();
  append_text(text);
  return *this;
}

JsonWriter& JsonWriter::value(double number) {
  if (!std::isfinite(number))
    return null();
  return raw(fmt::format("{}", number));
}

JsonWriter& JsonWriter::signed_value(int64_t number) { return raw(fmt::format("{}", number)); }
JsonWriter& JsonWriter::unsigned_value(uint64_t number) { return raw(fmt::format("{}", number)); }

void JsonWriter::append_text(std::string_view text) {
  out_ += '"';
  while (!text.empty()) {
    const char c = text.front();
    const size_t n = utf8_length(text);
    if (n == 0) {
      out_ += "\uFFFD";
    } else if (c == '"' || c == '\\') {
      out_ += '\\';
      out_ += c;
    } else if (c == '\n') {
      out_ += "\\n";
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) {
      out_ += fmt::format("\\u{:04x}", c);
    } else {
      out_ += text.substr(0, n);
    }
    text.remove_prefix(n == 0 ? 1 : n);
  }
  out_ += '"';
}

std::string JsonWriter::take() {
  CHECK(levels_.empty() && !after_key_, "an unclosed bracket");
  return std::move(out_);
}

}  // namespace goodput
