#include "serve/utf8.h"

namespace goodput {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

int promised_length(uint8_t lead) {
  if (lead < 0x80)
    return 1;
  if (lead >= 0xC2 && lead <= 0xDF)
    return 2;
  if (lead >= 0xE0 && lead <= 0xEF)
    return 3;
  if (lead >= 0xF0 && lead <= 0xF4)
    return 4;
  return 0;  // a continuation byte, or a byte that no character starts with
}

// The second byte excludes overlong forms, surrogates and what lies beyond U+10FFFF (Unicode 15, table 3-7).
bool continues(uint8_t lead, int index, uint8_t byte) {
  if (index > 1)
    return byte >= 0x80 && byte <= 0xBF;
  const uint8_t low = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
  const uint8_t high = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
  return byte >= low && byte <= high;
}

}  // namespace

void Utf8Decoder::feed(std::string_view bytes, std::string& out) {
  for (const char c : bytes) {
    const auto byte = static_cast<uint8_t>(c);
    if (size_ > 0 && !continues(static_cast<uint8_t>(held_[0]), size_, byte))
      finish(out);
    if (size_ == 0) {
      need_ = promised_length(byte);
      if (need_ == 0) {
        out += kReplacement;
        continue;
      }
    }
    held_[size_++] = c;
    if (size_ < need_)
      continue;
    out.append(held_, static_cast<size_t>(size_));
    size_ = 0;
  }
}

void Utf8Decoder::finish(std::string& out) {
  if (size_ > 0)
    out += kReplacement;
  size_ = 0;
}

}  // namespace goodput
