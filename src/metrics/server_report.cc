// See server_report.h. A zero denominator makes a rate absent.
#include "metrics/server_report.h"

namespace goodput {
namespace {

std::optional<double> rate(Tokens tokens, Nanos time) {
  if (time <= Nanos(0) || tokens < Tokens(0))
    return std::nullopt;
  return tokens.count() / to_seconds(time);
}

}  // namespace

ServerRates server_rates(const ServerReport& r) {
  ServerRates out;
  out.prefill_tokens_per_s = rate(r.prompt - r.cached, r.prefill);
  out.decode_tokens_per_s = rate(r.output, r.decode);
  out.end_to_end_tokens_per_s = rate(r.output, r.total);
  if (r.total > Nanos(0)) {
    out.load_share = to_seconds(r.load) / to_seconds(r.total);
    const Nanos rest = r.total - r.load - r.prefill - r.decode;
    if (rest >= Nanos(0))
      out.unexplained = rest;
  }
  if (r.prefill > Nanos(0))
    out.ttft_estimate = r.load + r.prefill;
  return out;
}

}  // namespace goodput
