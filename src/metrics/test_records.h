// Records written in milliseconds, for the tests of this room.
#pragma once

#include <string>
#include <vector>

#include "metrics/record.h"
#include "metrics/summary.h"

namespace goodput::testing {

inline TimePoint at_ms(double ms) { return TimePoint(from_ms(ms)); }

struct Chunk {
  double at_ms;         // since `scheduled`
  uint16_t tokens = 1;  // 0: unknown
};

// An ok stream, dispatched on time; its length is the sum of the chunks' tokens.
inline RequestRecord stream(const std::vector<Chunk>& chunks, double scheduled_ms = 0) {
  RequestRecord r;
  r.outcome = Outcome::kOk;
  r.finish = FinishReason::kLength;
  r.http_status = 200;
  r.attempts = 1;
  r.scheduled = at_ms(scheduled_ms);
  r.dispatched = r.scheduled;
  r.prompt_tokens = Tokens(10);
  int n = 0;
  for (const Chunk& c : chunks) {
    TokenEvent e;
    e.user = from_ms(c.at_ms);
    e.tokens = c.tokens;
    r.events.push_back(e);
    n += c.tokens;
  }
  r.chunks = static_cast<uint32_t>(chunks.size());
  r.output_tokens = Tokens(n);
  r.asked_output = Tokens(n);
  if (!chunks.empty()) {
    r.first_chunk = r.first_token = r.first_answer = r.scheduled + r.events.front().user;
    r.done = r.closed = r.scheduled + r.events.back().user;
  }
  return r;
}

// `n` tokens, the first after ttft, the rest a gap apart.
inline RequestRecord steady_stream(double scheduled_ms, double ttft_ms, double gap_ms, int n) {
  std::vector<Chunk> chunks;
  for (int i = 0; i < n; ++i)
    chunks.push_back({ttft_ms + gap_ms * i});
  return stream(chunks, scheduled_ms);
}

inline RequestRecord failed(Outcome outcome, double scheduled_ms, double known_after_ms) {
  RequestRecord r;
  r.outcome = outcome;
  r.scheduled = at_ms(scheduled_ms);
  if (outcome != Outcome::kNotSent)
    r.dispatched = r.scheduled;
  if (outcome != Outcome::kNotSent && outcome != Outcome::kUnfinished)
    r.closed = r.scheduled + from_ms(known_after_ms);
  return r;
}

inline ClassRule rule(std::vector<std::string> targets, std::string name = "chat") {
  ClassRule c;
  c.name = std::move(name);
  c.targets = parse_targets(targets).value();
  return c;
}

inline Window window_ms(double from, double to) { return {at_ms(from), at_ms(to)}; }

}  // namespace goodput::testing
