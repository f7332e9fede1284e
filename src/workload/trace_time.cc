#include "workload/trace_time.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "base/text.h"

namespace goodput {
namespace {

constexpr int64_t kBillion = 1'000'000'000;
constexpr int64_t kLargest = 6'300'000'000 * kBillion;  // ns; 1970 to 2169

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Consumes exactly `digits` digits and then `then` (0: nothing).
bool take_number(std::string_view& text, size_t digits, char then, int& out) {
  if (text.size() < digits + (then != 0))
    return false;
  out = 0;
  for (size_t i = 0; i < digits; ++i) {
    if (text[i] < '0' || text[i] > '9')
      return false;
    out = out * 10 + (text[i] - '0');
  }
  if (then != 0 && text[digits] != then)
    return false;
  text.remove_prefix(digits + (then != 0));
  return true;
}

// ".9799600" as nanoseconds; nothing is 0.
bool take_fraction(std::string_view& text, int64_t& nanos) {
  nanos = 0;
  if (!text.starts_with('.'))
    return true;
  text.remove_prefix(1);
  size_t digits = 0;
  while (digits < text.size() && text[digits] >= '0' && text[digits] <= '9')
    ++digits;
  if (digits == 0 || digits > 9)
    return false;
  for (size_t i = 0; i < 9; ++i)
    nanos = nanos * 10 + (i < digits ? text[i] - '0' : 0);
  text.remove_prefix(digits);
  return true;
}

// Minutes east of UTC: "", "Z", "+hh:mm", "-hh:mm".
bool take_zone(std::string_view& text, int& minutes) {
  minutes = 0;
  if (text.empty())
    return true;
  const char sign = text.front();
  text.remove_prefix(1);
  if (sign == 'Z')
    return text.empty();
  int hour = 0, minute = 0;
  if ((sign != '+' && sign != '-') || !take_number(text, 2, ':', hour) || !take_number(text, 2, 0, minute))
    return false;
  minutes = (sign == '-' ? -1 : 1) * (hour * 60 + minute);
  return text.empty() && hour < 24 && minute < 60;
}

}  // namespace

std::optional<Nanos> parse_timestamp(std::string_view text) {
  int year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0, zone = 0;
  int64_t fraction = 0;
  if (!take_number(text, 4, '-', year) || !take_number(text, 2, '-', month) || !take_number(text, 2, 0, day))
    return {};
  if (text.empty() || (text.front() != ' ' && text.front() != 'T'))
    return {};
  text.remove_prefix(1);
  if (!take_number(text, 2, ':', hour) || !take_number(text, 2, ':', minute) || !take_number(text, 2, 0, second))
    return {};
  if (!take_fraction(text, fraction) || !take_zone(text, zone))
    return {};
  const std::chrono::year_month_day date{std::chrono::year(year), std::chrono::month(static_cast<unsigned>(month)),
                                         std::chrono::day(static_cast<unsigned>(day))};
  // Int64 nanoseconds reach from 1678 to 2262.
  if (!date.ok() || year < 1970 || year > 2200 || hour > 23 || minute > 59 || second > 60)
    return {};
  const int64_t days = std::chrono::sys_days(date).time_since_epoch().count();
  return seconds(days * 86'400 + hour * 3'600 + (minute - zone) * 60 + second) + Nanos(fraction);
}

std::optional<Decimal> parse_decimal(std::string_view text) {
  Decimal d;
  size_t i = 0;
  for (; i < text.size() && is_digit(text[i]); ++i) {
    if (d.whole > (INT64_MAX - 9) / 10)
      return {};
    d.whole = d.whole * 10 + (text[i] - '0');
  }
  if (i == 0)
    return {};
  if (i < text.size() && text[i] == '.') {
    const size_t point = i++;
    for (; i < text.size() && is_digit(text[i]); ++i)
      if (i - point <= 9)
        d.billionths = d.billionths * 10 + (text[i] - '0');
    if (i == point + 1)
      return {};
    for (size_t digits = i - point - 1; digits < 9; ++digits)
      d.billionths *= 10;
  }
  if (i == text.size())
    return d;
  if (text[i] != 'e' && text[i] != 'E')
    return {};
  const auto value = parse_double(text);
  if (!value || *value < 0 || *value > 9e18)
    return {};
  d.whole = static_cast<int64_t>(*value);
  d.billionths = std::min<int64_t>(kBillion - 1, std::llround((*value - std::floor(*value)) * 1e9));
  return d;
}

std::optional<Nanos> in_nanos(Decimal d, Nanos unit) {
  const __int128 nanos =
      static_cast<__int128>(d.whole) * unit.count() + static_cast<__int128>(d.billionths) * unit.count() / kBillion;
  if (nanos > kLargest)
    return {};
  return Nanos(static_cast<int64_t>(nanos));
}

}  // namespace goodput
