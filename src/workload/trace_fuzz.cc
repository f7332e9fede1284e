// libFuzzer: any bytes as a trace of any format. The first byte chooses the format and how numbers are counted; rows
// come in order of time, with lengths in their range.
#include <cstdlib>
#include <string_view>

#include "base/limits.h"
#include "base/log.h"
#include "workload/trace_formats.h"

using namespace goodput;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0)
    return 0;
  log::set_level(log::Level::kOff);
  TraceSpec spec{.file = "fuzz", .format = static_cast<TraceFormat>(data[0] % 8)};
  if (data[0] & 0x40)
    spec.time_unit = milliseconds(1);
  if (data[0] & 0x80)
    spec.block_tokens = Tokens(1);
  auto input = TraceInput::of_bytes(std::string_view(reinterpret_cast<const char*>(data) + 1, size - 1));
  if (!input)
    return 0;
  Nanos last;
  const auto in_range = [](const std::optional<Tokens>& n) {
    return !n || (*n >= Tokens(0) && *n <= limits::kMaxModelLen);
  };
  const auto read = read_trace(*input, spec, [&](const TraceRow& row) {
    if (!in_range(row.prompt) || !in_range(row.output) || (row.at && *row.at < last))
      std::abort();
    last = row.at.value_or(last);
  });
  if (!read && read.error().context.empty())
    std::abort();
  return 0;
}
