// What a server says of itself at the end of an answer (Ollama's durations, llama-server's timings), turned into rates
// with the right denominators. Shown beside the client's figures, never instead of them. Pure; any thread.
#pragma once

#include <optional>

#include "base/units.h"

namespace goodput {

struct ServerReport {
  Tokens prompt{0}, cached{0}, output{0};  // cached: the part of the prompt that was not computed
  Nanos total{0}, load{0}, prefill{0}, decode{0};
};

struct ServerRates {
  std::optional<double> prefill_tokens_per_s;     // computed prompt tokens ÷ prefill time
  std::optional<double> decode_tokens_per_s;      // output ÷ decode time
  std::optional<double> end_to_end_tokens_per_s;  // output ÷ total time: not a generation speed
  std::optional<double> load_share;               // of the total
  std::optional<Nanos> unexplained;               // total − load − prefill − decode
  std::optional<Nanos> ttft_estimate;             // load + prefill: no queue wait is in it
};
ServerRates server_rates(const ServerReport&);

}  // namespace goodput
