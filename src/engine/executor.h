// Computes batches. Three of them: LlamaExecutor on libllama, SimulatedExecutor on a cost model, FaultyExecutor for
// tests. The engine loop cannot tell which it drives.
#pragma once

#include <optional>

#include "base/result.h"
#include "base/units.h"
#include "scheduler/batch.h"
#include "scheduler/capabilities.h"

namespace goodput {

struct SamplingParams {
  float temperature = 0;  // 0: greedy
  float top_p = 1;
  int top_k = 0;  // 0: off
  uint64_t seed = 0;
  bool ignore_eos = false;  // end-of-generation tokens are never sampled
};

class Executor {
 public:
  virtual ~Executor() = default;
  virtual Capabilities capabilities() const = 0;  // read back from the context, constant
  // Per-request sampling state; before the request's first batch, until close().
  virtual Result<void> open(RequestId, const SamplingParams&) = 0;
  virtual void close(RequestId) = 0;
  // Carries out the ops, computes, samples. Never throws, never aborts: failures are in the result. The reference is
  // valid until the next run().
  virtual const StepResult& run(const Batch&) = 0;
  // KV tokens that the slot holds, as the executor itself knows; nullopt if it does not know. For the accounting check.
  virtual std::optional<Tokens> kv_length(Slot) const = 0;
  // Simulated: durations are modelled and the caller must let that time pass; real: run() took it.
  virtual bool modelled_time() const = 0;
};

}  // namespace goodput
