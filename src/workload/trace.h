// Request traces as published. Read line by line; columns by their header names.
#pragma once

#include <functional>
#include <string>

#include "base/result.h"
#include "base/units.h"

namespace goodput {

struct TraceRow {
  Nanos at;                 // since the first row; full precision of the file
  Tokens prompt{0}, output{0};
};

// Azure LLM inference 2023: TIMESTAMP,ContextTokens,GeneratedTokens with 100 ns stamps ("2023-11-16 18:17:03.9799600").
// Calls `row` in file order; errors carry file:line. Rows out of order in time are an error of the file.
Result<void> read_azure_trace(const std::string& path, const std::function<void(const TraceRow&)>& row);

}  // namespace goodput
