// Any JSON as the events of any protocol: the first byte picks the protocol and whether it was streamed, lines are
// events. What comes out must be a record that the other rooms may rely on. libFuzzer.
#include <cstdlib>
#include <string>

#include "load/interpret.h"

namespace {

void require(bool holds) {
  if (!holds)
    std::abort();
}

void check(const goodput::RequestRecord& r) {
  using goodput::Nanos;
  using goodput::Outcome;
  using goodput::Tokens;
  for (const auto& count : {r.prompt_tokens, r.cached_tokens, r.output_tokens, r.hidden_tokens})
    require(!count || *count >= Tokens(0));
  require(r.first_token.has_value() == !r.events.empty());
  require(!r.first_answer || r.first_token);
  require(r.streamed || r.events.empty());
  require((r.outcome == Outcome::kOk) == (r.error == goodput::ErrorKind::kNone));
  if (r.outcome == Outcome::kOk)
    require(r.done.has_value() && r.output_tokens && *r.output_tokens >= Tokens(0));
  for (size_t i = 1; i < r.events.size(); ++i)
    require(r.events[i - 1].user <= r.events[i].user);
  if (r.server && r.server->queued)
    require(*r.server->queued <= *r.server->scheduled && *r.server->scheduled <= *r.server->first_token);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace goodput;
  if (size == 0)
    return 0;
  const Protocol& protocol = protocols()[data[0] % protocols().size()];
  const bool streamed = data[0] < 128;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  Capture capture;
  capture.status = 200;
  capture.any_bytes = true;
  capture.framing = streamed ? protocol.framing : Framing::kWhole;
  TimePoint now{seconds(2)};
  uint32_t read = 0;
  for (size_t from = 0; from < text.size();) {
    const size_t newline = streamed ? std::min(text.find('\n', from), text.size()) : text.size();
    const ReadStamp stamp{now, std::nullopt, read++};
    capture.marks.push_back({capture.bytes.size(), newline - from, stamp});
    capture.bytes += text.substr(from, newline - from);
    capture.last = stamp;
    now += milliseconds(1);
    from = newline + 1;
  }
  RequestRecord record;
  record.scheduled = TimePoint(seconds(1));
  record.closed = now;
  Interpreter interpreter;
  interpreter.begin(protocol, capture, Ending::kComplete, Tokens(1000), record);
  while (!interpreter.advance(3)) {
  }
  // Our own server is believed as to its times; nobody else may name them.
  const bool ours = text.find("_ns\"") != text.npos;
  if (!ours)
    check(record);
  return 0;
}
