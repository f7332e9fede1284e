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
  uint32_t tokens = 0;  // 0: unknown
};

// One pass that decides how the stream may be read.
struct StreamFacts {
  uint32_t deliveries = 0;
  bool kernel = true;  // every delivery has a kernel stamp; otherwise the whole stream is read by user stamps, since a
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

inline StreamFacts inspect(const RequestRecord& r) {
  StreamFacts facts;
  bool each_known = !r.events.empty();
  bool stamped = true;  // of the delivery at hand
  for (size_t i = 0; i < r.events.size(); ++i) {
    const TokenEvent& e = r.events[i];
    if (i == 0 || e.user != r.events[i - 1].user) {
      facts.kernel &= stamped;
      stamped = false;
      ++facts.deliveries;
    }
    stamped |= e.kernel.has_value();
    each_known &= e.tokens > 0;
  }
  facts.kernel &= stamped && facts.deliveries > 0;
  facts.ones = !each_known && !r.events.empty() && visible_tokens(r) == static_cast<int64_t>(r.events.size());
  facts.counted = each_known || facts.ones;
  return facts;
}

template <class Visit>
void for_each_delivery(const RequestRecord& r, const StreamFacts& facts, Visit visit) {
  const size_t n = r.events.size();
  for (size_t i = 0; i < n;) {
    Delivery d{r.events[i].user, 0};
    const Nanos read = d.at;
    for (; i < n && r.events[i].user == read; ++i) {
      if (facts.counted)
        d.tokens += facts.ones ? 1u : r.events[i].tokens;
      if (facts.kernel && r.events[i].kernel)
        d.at = *r.events[i].kernel;
    }
    visit(d);
  }
}

// Visits (gap in ns, tokens that the later delivery brought; 0: unknown). Returns false, and the caller must forget
// what it was given, when time ran backwards: such a stream has no gaps, and the point is INVALID (`clock`).
template <class Visit>
bool for_each_gap(const RequestRecord& r, const StreamFacts& facts, Visit visit) {
  std::optional<Nanos> before;
  bool forward = true;
  for_each_delivery(r, facts, [&](const Delivery& d) {
    if (before) {
      forward &= d.at >= *before;
      visit((d.at - *before).count(), d.tokens);
    }
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
