// An executor whose time is a cost model and whose tokens are a hash of request and position, so that every byte of a
// stream can be checked by anyone who knows the request. It mirrors the KV length of each slot, so that a scheduler
// whose accounting drifts is caught here as it would be by a real cache. One thread.
#pragma once

#include <vector>

#include "engine/executor.h"
#include "scheduler/cost.h"

namespace goodput {

// The token that request `id` generates at absolute position `position` (prompt length + i), in [low, high).
TokenId simulated_token(RequestId id, Tokens position, TokenId low, TokenId high);

class SimulatedExecutor final : public Executor {
 public:
  struct Options {
    Capabilities capabilities;
    StepCost cost;
    TokenId token_low = 3, token_high = 4096;  // generated tokens are in [low, high)
  };
  explicit SimulatedExecutor(const Options&);

  Capabilities capabilities() const override;
  Result<void> open(RequestId, const SamplingParams&) override;
  void close(RequestId) override;
  const StepResult& run(const Batch&) override;
  std::optional<Tokens> kv_length(Slot) const override;
  bool modelled_time() const override { return true; }

 private:
  Options options_;
  std::vector<Tokens> kv_;  // per slot
  StepResult result_;
};

}  // namespace goodput
