// Retry-After (RFC 9110, 10.2.3), which is a number of seconds or an HTTP date.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/units.h"

namespace goodput {

// How long to wait: the seconds, or the date less `date`, the moment at which the server says it answered. Absent: no
// such header, neither form, or a date without a Date to compare it with. A date that has passed is 0.
std::optional<Nanos> parse_retry_after(std::string_view value, std::string_view date);

// "2 s" where it is known, else what the header says; empty without one. For messages.
std::string describe_retry_after(std::string_view value, std::string_view date);

}  // namespace goodput
