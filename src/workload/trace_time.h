// Times and numbers of traces, exactly: a double would lose the last digits of a time stamp in seconds since 1970.
// Internal to the room.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/units.h"

namespace goodput {

// "2023-11-16 18:17:03.9799600", "2024-05-10T00:00:00+00:00": nanoseconds since the Unix epoch.
std::optional<Nanos> parse_timestamp(std::string_view text);

// A number that is not negative: digits, and digits after a point of which the first nine count; with an exponent as
// precise as a double.
struct Decimal {
  int64_t whole = 0;
  int64_t billionths = 0;
};
std::optional<Decimal> parse_decimal(std::string_view text);

// So many units as nanoseconds; nullopt: more than the two centuries that time stamps may lie apart.
std::optional<Nanos> in_nanos(Decimal, Nanos unit);

}  // namespace goodput
