// The numbers of one request (docs/method.md, "Per request"): pure functions of its record; nullopt where the
// definition says absent. A negative time is absent too: it can only come from a broken clock, which the verdict names,
// and must not enter a figure.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "metrics/record.h"

namespace goodput {

// Which stamp token times are taken from: the kernel's where the event has it, else user space. Gaps use one kind for a
// whole stream: the kernel's only where every delivery has it.
Nanos event_time(const TokenEvent&);

std::optional<Nanos> ttft(const RequestRecord&);          // first_token − scheduled; absent without streaming
std::optional<Nanos> ttft_service(const RequestRecord&);  // first_token − dispatched
std::optional<Nanos> ttfa(const RequestRecord&);          // first_answer − scheduled
// done − scheduled. Of a failure: until the failure was known. Absent: unfinished, not sent.
std::optional<Nanos> e2e(const RequestRecord&);
// (done − first_token) ÷ (n − n₁), n without hidden tokens.
std::optional<double> tpot_ns(const RequestRecord&);
std::optional<Nanos> dispatch_delay(const RequestRecord&);  // dispatched − scheduled
// A request that was given up (cancelled, timeout) before any token: what it had waited, a lower bound of its TTFT.
std::optional<Nanos> censored_ttft(const RequestRecord&);

// TPOT's n₁ was reported (running usage or token ids, or one token per event); else it was taken to be 1.
bool first_count_known(const RequestRecord&);
// The first event claims more tokens than the whole answer.
bool first_count_mismatch(const RequestRecord&);

// A gap between deliveries, per token, and the tokens that it delivered.
struct WeightedGap {
  double per_token_ns;
  uint32_t tokens;
};
// Per token (weights are known token counts); empty when absent by definition.
std::vector<WeightedGap> itl_gaps(const RequestRecord&);
// Per delivery, unweighted: what vLLM prints as ITL.
std::vector<double> icl_gaps_ns(const RequestRecord&);
std::optional<double> itl_mean_ns(const RequestRecord&);  // Σ gaps ÷ Σ tokens
std::optional<double> itl_p95_ns(const RequestRecord&);   // token-weighted p95 of the request's own gaps
std::optional<double> icl_p95_ns(const RequestRecord&);
std::optional<Nanos> max_gap(const RequestRecord&);
std::optional<Nanos> jitter(const RequestRecord&);             // p99 − p50 of its gaps, nearest rank
std::optional<int> stalls(const RequestRecord&, Nanos limit);  // gaps above `limit`

// > 8 tokens in ≤ max(2, n/32) reads: token timing of this record is suspect (a buffered stream).
bool looks_buffered(const RequestRecord&);
// An unloaded probe shows buffering: more than half of its ok streams of > 8 tokens look buffered.
bool confirms_buffering(std::span<const RequestRecord> probe);
// Once confirmed: marks the records that look buffered, which suppresses their token timing.
void mark_buffered(std::span<RequestRecord>);

// Server side: arrival → queued → first scheduled → first token → last token.
struct ServerIntervals {
  std::optional<Nanos> tokenization, queue, prefill, decode, inference;
};
ServerIntervals server_intervals(const RequestRecord&);

}  // namespace goodput
