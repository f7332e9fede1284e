// A stream as the client saw it: one delivery per read that carried tokens. Events that came in one read are one
// delivery, because no gap between them was ever observed. Private to this room, and a template because every pass over
// a point's million events goes through it. Pure; any thread.
#pragma once

#include <cstdint>
#include <optional>

#include "metrics/record.h"

namespace goodput {

struct Delivery {
  Nanos at;             // since `scheduled`
  uint32_t tokens = 0;  // meaningless unless the stream is `counted`
};

// How the stream may be read.
struct StreamFacts {
  uint32_t deliveries = 0;
  bool kernel = false;  // every delivery has a kernel stamp; otherwise the whole stream is read by user stamps, since a
                        // gap between two kinds of stamps measures the client and not the server
  bool counted = false;  // tokens per event are known
  bool ones = false;     // ... because there are as many events as tokens
};

// Tokens that events carried: output less hidden ones. nullopt: unknown.
inline std::optional<int64_t> visible_tokens(const RequestRecord& r) {
  if (!r.output_tokens || !r.hidden_tokens)
    return std::nullopt;
  return int64_t{r.output_tokens->count()} - r.hidden_tokens->count();
}

template <class Visit>
void for_each_delivery(const RequestRecord& r, const StreamFacts& facts, Visit visit) {
  const TokenEvent* e = r.events.data();
  const TokenEvent* const end = e + r.events.size();
  const auto tokens_of = [&](const TokenEvent& event) -> uint32_t { return facts.ones ? 1 : event.tokens; };
  if (facts.deliveries == r.events.size()) {  // nearly every stream: one event a read
    for (; e != end; ++e)
      visit(Delivery{facts.kernel ? *e->kernel : e->user, tokens_of(*e)});
    return;
  }
  while (e != end) {
    Delivery d{e->user, 0};
    for (const Nanos read = e->user; e != end && e->user == read; ++e) {
      d.tokens += tokens_of(*e);
      if (facts.kernel && e->kernel)
        d.at = *e->kernel;
    }
    visit(d);
  }
}

inline StreamFacts inspect(const RequestRecord& r) {
  StreamFacts facts;
  if (r.events.empty())
    return facts;
  const size_t n = r.events.size();
  const TokenEvent* const events = r.events.data();
  size_t joined = 0, stamped = 0, known = 0;
  for (size_t i = 0; i < n; ++i) {
    joined += i > 0 && events[i].user == events[i - 1].user;
    stamped += events[i].kernel.has_value();
    known += events[i].tokens > 0;
  }
  facts.deliveries = static_cast<uint32_t>(n - joined);
  facts.ones = known < n && visible_tokens(r) == static_cast<int64_t>(n);
  facts.counted = known == n || facts.ones;
  facts.kernel = stamped == n;
  if (facts.kernel || stamped < facts.deliveries)
    return facts;
  facts.kernel = true;  // enough stamps: is there one in every delivery?
  bool has_stamp = true;
  for (size_t i = 0; i < n; ++i) {
    if (i == 0 || events[i].user != events[i - 1].user) {
      facts.kernel &= has_stamp;
      has_stamp = false;
    }
    has_stamp |= events[i].kernel.has_value();
  }
  facts.kernel &= has_stamp;
  return facts;
}

// Visits (gap in ns, tokens that the later delivery brought; meaningless unless `counted`). Returns false, and the
// caller must forget what it was given, when time ran backwards: such a stream has no gaps, and the point is INVALID
// (`clock`).
template <class Visit>
bool for_each_gap(const RequestRecord& r, const StreamFacts& facts, Visit visit) {
  bool first = true, forward = true;
  Nanos before;
  for_each_delivery(r, facts, [&](const Delivery& d) {
    if (!first) {
      forward &= d.at >= before;
      visit((d.at - before).count(), d.tokens);
    }
    first = false;
    before = d.at;
  });
  return forward;
}

// Gaps are worthless where the stream is buffered, and unknown where the answer was not streamed.
inline bool has_gaps(const RequestRecord& r, const StreamFacts& facts) {
  return r.streamed && !r.buffered && facts.deliveries >= 2;
}

// n − n₁, what TPOT divides by: 0 where there is nothing to divide, nullopt where n is unknown. A first event that
// claims more tokens than the whole answer is not believed (n₁ = 1).
inline std::optional<int64_t> tpot_divisor(const RequestRecord& r) {
  const auto n = visible_tokens(r);
  if (!n || *n < 1)
    return std::nullopt;
  const int64_t first = r.events.empty() ? 0 : r.events.front().tokens;
  return *n - (first >= 1 && first <= *n ? first : 1);
}

}  // namespace goodput
