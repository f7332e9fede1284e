// A schedule: the list of requests with their times, made from (workload, seed) alone before the run. The load generator
// sends it, the simulator plays it; neither changes it.
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
  Nanos at;                          // since the start of the run; closed loop: unused
  int priority = 0;
  Tokens output{1};                  // asked for, with ignore_eos
  std::vector<TokenId> prompt;       // exactly what the server will tokenize `text` to (special tokens included)
  std::string text;                  // empty when made without a tokenizer (simulation only)
};

struct Schedule {
  std::vector<ScheduledRequest> requests;   // by time
  // Prompts that prime shared documents before the window, so that their first use is not a miss.
  std::vector<ScheduledRequest> priming;
  std::string hash;                  // over times, classes, lengths and prompt tokens
  uint64_t seed = 0;
  double implied_hit_rate = 0;       // share of prompt tokens in whole blocks shared with a primed document
};

struct ScheduleOptions {
  uint64_t seed = 1;
  std::optional<Nanos> duration;     // arrivals in [0, duration)
  std::optional<uint64_t> requests;  // or this many; exactly one of the two (closed loop: requests)
  Tokens block_size{16};             // for implied_hit_rate
  Tokens max_model_len{4096};        // prompts and outputs are refused beyond it: kUsage
};

// With a tokenizer, every prompt's text has exactly the drawn number of tokens (verified by tokenizing it). Without one
// (null), prompts are token ids only: same lengths, same sharing, same arrivals for the same seed.
Result<Schedule> make_schedule(const WorkloadSpec&, const ScheduleOptions&, const Tokenizer*);

}  // namespace goodput
