#include "load/retry_after.h"

#include <algorithm>
#include <ctime>

#include "base/text.h"

namespace goodput {
namespace {

constexpr int64_t kLongest = 366 * 86'400;  // seconds; more is no answer

// "Sun, 06 Nov 1994 08:49:37 GMT": the form that servers must send.
std::optional<int64_t> http_date(std::string_view text) {
  const std::string copy(text.substr(0, 64));
  std::tm parts{};
  const char* end = ::strptime(copy.c_str(), "%a, %d %b %Y %H:%M:%S GMT", &parts);
  if (end == nullptr || *end != '\0')
    return std::nullopt;
  return static_cast<int64_t>(::timegm(&parts));
}

}  // namespace

std::optional<Nanos> parse_retry_after(std::string_view value, std::string_view date) {
  value = trim(value);
  if (const auto s = parse_int(value); s && *s >= 0 && *s <= kLongest)
    return seconds(*s);
  const auto until = http_date(value), now = http_date(trim(date));
  if (!until || !now || *until - *now > kLongest)
    return std::nullopt;
  return seconds(std::max<int64_t>(*until - *now, 0));
}

std::string describe_retry_after(std::string_view value, std::string_view date) {
  if (const auto wait = parse_retry_after(value, date))
    return std::to_string(wait->count() / 1'000'000'000) + " s";
  return std::string(trim(value).substr(0, 64));
}

}  // namespace goodput
