// The table of formats, and what all of them share: finding the format, keeping near neighbours in order, counting. The
// only state is one line or element, one read buffer and the few rows held back. One thread per call.
#include "workload/trace.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/limits.h"
#include "base/log.h"
#include "workload/trace_formats.h"

namespace goodput {
namespace {

// Puts rows that stand a little out of order in order: holds the earliest few back until no closer neighbour can come.
class Reorder {
 public:
  explicit Reorder(const std::function<void(const TraceRow&)>& row) : row_(row) {}

  // `row.at` from any moment. False: later than what was already given on.
  bool add(TraceRow&& row) {
    if (!row.at) {
      row_(row);
      return true;
    }
    if (last_given_ && *row.at < *last_given_)
      return false;
    if (newest_ && *row.at < *newest_)
      ++moved_;
    newest_ = std::max(newest_.value_or(*row.at), *row.at);
    held_.push_back({std::move(row), order_++});
    std::ranges::push_heap(held_, std::greater<>());
    if (held_.size() > limits::kTraceReorderRows)
      give();
    return true;
  }
  void finish() {
    while (!held_.empty())
      give();
  }
  uint64_t moved() const { return moved_; }

 private:
  struct Held {
    TraceRow row;
    uint64_t order;  // rows of one time keep the file's order
    bool operator>(const Held& o) const { return std::pair(*row.at, order) > std::pair(*o.row.at, o.order); }
  };

  void give() {
    std::ranges::pop_heap(held_, std::greater<>());
    TraceRow row = std::move(held_.back().row);
    held_.pop_back();
    last_given_ = *row.at;
    if (!zero_)
      zero_ = *row.at;
    *row.at -= *zero_;
    row_(row);
  }

  const std::function<void(const TraceRow&)>& row_;
  std::vector<Held> held_;
  std::optional<Nanos> newest_, last_given_, zero_;
  uint64_t order_ = 0, moved_ = 0;
};

Result<TraceFormat> find_format(TraceInput& input) {
  const char first = TRY(input.first_byte());
  if (first == '[')
    return TraceFormat::kShareGpt;
  std::string line;
  while (line.empty() && TRY(input.next_line(line))) {
  }
  const auto format = first == '{' ? find_json_format(input, line) : find_csv_format(input, line);
  input.rewind();
  return format;
}

Result<void> read_as(TraceFormat format, TraceInput& input, const TraceSpec& spec, const RowSink& sink,
                     TraceFacts& facts) {
  switch (format) {
    case TraceFormat::kAuto:
      break;
    case TraceFormat::kAzure:
    case TraceFormat::kBurstGpt:
      return read_csv_trace(format, input, sink);
    case TraceFormat::kMooncake:
    case TraceFormat::kBailian:
    case TraceFormat::kTimedTrace:
    case TraceFormat::kVllmCustom:
      return read_jsonl_trace(format, input, spec, sink);
    case TraceFormat::kShareGpt:
      return read_sharegpt(input, sink, facts);
  }
  return input.wrong("no format");
}

}  // namespace

Result<TraceFacts> read_trace(TraceInput& input, const TraceSpec& spec,
                              const std::function<void(const TraceRow&)>& row) {
  if (TRY(input.first_byte()) == '\0')
    return fail(ErrorCode::kUsage, "the trace is empty", spec.file + ":1");
  TraceFacts facts;
  facts.format = spec.format == TraceFormat::kAuto ? TRY(find_format(input)) : spec.format;
  Reorder reorder(row);
  const RowSink sink = [&](TraceRow&& read) -> Result<void> {
    ++facts.rows;
    if (reorder.add(std::move(read)))
      return {};
    return input.wrong(
        fmt::format("more than {} rows out of order: sort the trace by time", limits::kTraceReorderRows));
  };
  TRY(read_as(facts.format, input, spec, sink, facts));
  reorder.finish();
  facts.moved = reorder.moved();
  if (facts.moved > 0)
    log::warn(fmt::format("{}: {} rows stood out of order in time and were put in order", spec.file, facts.moved));
  return facts;
}

Result<TraceFacts> read_trace(const TraceSpec& spec, const std::function<void(const TraceRow&)>& row) {
  TraceInput input = TRY(TraceInput::open(spec.file));
  return read_trace(input, spec, row);
}

}  // namespace goodput
