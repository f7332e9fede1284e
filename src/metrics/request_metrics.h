// The numbers of one request (docs/method.md, "Per request"): pure functions of its record; nullopt where the
// definition says absent.
#pragma once

#include <optional>
#include <vector>

#include "metrics/record.h"

namespace goodput {

// Which stamp token times are taken from: the kernel's where the record has it, else user space.
Nanos event_time(const TokenEvent&);

std::optional<Nanos> ttft(const RequestRecord&);          // first_token − scheduled
std::optional<Nanos> ttft_service(const RequestRecord&);  // first_token − dispatched
std::optional<Nanos> ttfa(const RequestRecord&);          // first_answer − scheduled
std::optional<Nanos> e2e(const RequestRecord&);           // done − scheduled
std::optional<double> tpot_ns(const RequestRecord&);      // (done − first_token) ÷ (n − n₁)
std::optional<Nanos> dispatch_delay(const RequestRecord&);
std::optional<Nanos> max_gap(const RequestRecord&);

// A gap between deliveries and the tokens that it delivered.
struct WeightedGap { double per_token_ns; uint32_t tokens; };
// Per token (weights are known token counts); empty when absent by definition.
std::vector<WeightedGap> itl_gaps(const RequestRecord&);
// Per delivery, unweighted: what vLLM prints as ITL.
std::vector<double> icl_gaps_ns(const RequestRecord&);
std::optional<double> itl_p95_ns(const RequestRecord&);   // token-weighted p95 of the request's own gaps
std::optional<double> icl_p95_ns(const RequestRecord&);

// > 8 tokens in ≤ max(2, n/32) reads: token timing of this record is suspect (a buffered stream).
bool looks_buffered(const RequestRecord&);

}  // namespace goodput
