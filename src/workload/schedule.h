// A schedule: the list of requests with their times, made from (workload, seed) alone before the run. The load
// generator sends it, the simulator plays it; neither changes it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "workload/spec.h"
#include "workload/tokenizer.h"

namespace goodput {

struct ScheduledRequest {
  uint64_t index = 0;
  uint16_t cls = 0;
  Nanos at;  // since the start of the run; closed loop: unused
  int priority = 0;
  Tokens output{1};             // asked for, with ignore_eos
  std::vector<TokenId> prompt;  // exactly what the server will tokenize `text` to (special tokens included)
  std::string text;             // empty when made without a tokenizer (simulation only)
  Tokens shared{0};             // of the prompt: what a primed document lets a cache of whole blocks answer
};

struct Schedule {
  std::vector<ScheduledRequest> requests;  // by time
  // One request per shared document (the document, a short question, one token of output), to be answered before the
  // window so that a document's first use in it is not a miss.
  std::vector<ScheduledRequest> priming;
  std::string hash;  // over times, classes, priorities, lengths and prompt tokens
  uint64_t seed = 0;
  uint64_t distinct_prompts = 0;  // of the requests
  // Share of prompt tokens in whole blocks shared with a primed document; a prompt's last token is never cached.
  double implied_hit_rate = 0;
};

struct ScheduleOptions {
  uint64_t seed = 1;
  // Exactly one of the two; closed loop: requests. A trace may go without (its whole window) or take either as a cut.
  std::optional<Nanos> duration;     // arrivals in [0, duration)
  std::optional<uint64_t> requests;  // or this many
  Tokens block_size{16};             // for implied_hit_rate
  Tokens max_model_len{4096};        // a class or row whose prompt and output could exceed it together is refused
};

// Deterministic: the same workload and seed give the same schedule on every machine. Request i's class, lengths and
// words depend on (seed, i) alone and Poisson gaps are unit gaps over the rate, so that the same seed at another rate
// is the same requests with stretched times (common random numbers), and different seeds share nothing.
//
// With a tokenizer, every prompt's text has exactly the drawn number of tokens (verified by tokenizing it as
// /v1/completions does, special tokens added). Without one (null), prompts are token ids only: same lengths, same
// sharing, same arrivals for the same seed.
//
// kUsage: wrong options, a spec that validate() refuses, lengths beyond max_model_len, more than
// limits::kMaxScheduledRequests or kMaxScheduledTokens, an empty trace window. kFailed: the tokenizer has no usable
// words.
Result<Schedule> make_schedule(const WorkloadSpec&, const ScheduleOptions&, const Tokenizer*);

}  // namespace goodput
