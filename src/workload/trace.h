// Request traces as published. Read line by line; columns by their header names.
#pragma once

#include <functional>
#include <string>

#include "base/result.h"
#include "base/units.h"

namespace goodput {

struct TraceRow {
  Nanos at;                     // since the earliest row; full precision of the file
  Tokens prompt{0}, output{0};  // 0: the trace's own mark of a failed request
};

// Azure LLM inference 2023: TIMESTAMP,ContextTokens,GeneratedTokens with 100 ns stamps ("2023-11-16 18:17:03.9799600").
// Also the 2024 files: fraction absent or of any length up to 9 digits, zone "Z" or "±hh:mm". Other columns are
// ignored.
//
// Calls `row` in order of time, in constant memory. Rows out of order by at most limits::kTraceReorderRows places are
// put in order (one warning says how many); one that comes later still is an error. Errors (kUsage) carry file:line and
// name the column; rows before it have been delivered. kNotFound, kIo: the file cannot be read.
Result<void> read_azure_trace(const std::string& path, const std::function<void(const TraceRow&)>& row);

}  // namespace goodput
