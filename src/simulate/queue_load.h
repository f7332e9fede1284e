// Shared by the tests: Poisson arrivals of one-token prompts, whose steps can be made to cost what a closed form
// assumes.
#pragma once

#include <cmath>
#include <functional>
#include <vector>

#include "base/limits.h"
#include "base/random.h"
#include "simulate/simulate.h"

namespace goodput {

using DrawLength = std::function<int64_t(Random&)>;

inline Schedule queue_load(uint64_t seed, size_t n, double rate, const DrawLength& draw) {
  Random random(seed, "queue load");
  Schedule schedule;
  schedule.seed = seed;
  double at = 0;
  for (size_t i = 0; i < n; ++i) {
    at += random.exponential(1 / rate);
    ScheduledRequest& r = schedule.requests.emplace_back();
    r.index = i;
    r.at = from_seconds(at);
    r.prompt = {static_cast<TokenId>(i % 1000)};
    r.output = Tokens(draw(random));
  }
  return schedule;
}

// At least 1, mean m.
inline int64_t geometric(Random& random, double m) {
  return 1 + static_cast<int64_t>(std::floor(std::log1p(-random.uniform()) / std::log1p(-1 / m)));
}

// Steps cost alpha + beta × sequences, whatever they compute; KV, queue and budget never bind.
inline SimulateOptions queue_options(int max_num_seqs, double alpha_ns, double beta_ns) {
  SimulateOptions o;
  o.settings.max_num_seqs = max_num_seqs;
  o.settings.max_num_batched_tokens = Tokens(std::max(max_num_seqs, 16));
  o.settings.max_model_len = Tokens(1 << 14);
  o.settings.enable_prefix_caching = false;
  o.settings.max_num_queued_reqs = limits::kMaxQueuedRequests;
  o.capabilities.kv = {
      .block_size = Tokens(16), .total = Blocks(1 << 14), .per_slot = Blocks(1 << 14), .slots = max_num_seqs};
  o.capabilities.max_batch_tokens = Tokens(65'536);
  o.capabilities.max_len = Tokens(1 << 20);
  o.cost.base_ns = alpha_ns;
  o.cost.prefill_ns = o.cost.decode_ns = beta_ns;
  return o;
}

}  // namespace goodput
