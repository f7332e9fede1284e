// Small text helpers that several rooms need: closeness for "did you mean", and quantities as people read them.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/units.h"

namespace goodput {

// The candidate nearest to `word` by edit distance, if near enough to be a likely typing mistake.
std::optional<std::string> nearest(std::string_view word, std::span<const std::string_view> candidates);

std::vector<std::string_view> split(std::string_view text, char separator);
std::string_view trim(std::string_view text);

// "12.3 ms" below 10 s, "12.3 s" above; three significant digits, whole numbers from 1000 up.
std::string format_duration(Nanos d);
// "1.5 MiB".
std::string format_bytes(uint64_t bytes);

// Whole-string conversions: no leading or trailing rubbish, no locale. The message names what was found.
Result<int64_t> parse_int(std::string_view text);
Result<double> parse_double(std::string_view text);  // finite only
// "30s", "2m", "500ms", "1h", or a bare number of seconds; not negative, up to 1e9 s.
Result<Nanos> parse_duration(std::string_view text);

}  // namespace goodput
