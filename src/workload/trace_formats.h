// What the readers of the single formats give to trace.cc's table. Internal to the room.
#pragma once

#include <functional>
#include <string_view>

#include "base/result.h"
#include "workload/trace.h"
#include "workload/trace_input.h"

namespace goodput {

// Takes a row that was just read; its `at` counts from any one moment. An error says that it stands too late.
using RowSink = std::function<Result<void>(TraceRow&&)>;

// read_trace() of an opened input.
Result<TraceFacts> read_trace(TraceInput&, const TraceSpec&, const std::function<void(const TraceRow&)>& row);

// Each reads from the start of the input to its end. `facts`: what it skips is counted there.
Result<void> read_csv_trace(TraceFormat, TraceInput&, const RowSink&);
Result<void> read_jsonl_trace(TraceFormat, TraceInput&, const TraceSpec&, const RowSink&);
Result<void> read_sharegpt(TraceInput&, const RowSink&, TraceFacts&);

// The format whose columns or keys the first line has. Errors: none, or two that only their units tell apart.
Result<TraceFormat> find_csv_format(const TraceInput&, std::string_view header);
Result<TraceFormat> find_json_format(const TraceInput&, std::string_view line);

}  // namespace goodput
