// The faulty twin of an executor, for tests: wraps another one and injects lost KV, failed sequences, slow steps and
// refused requests, by script or by seed. The engine must end every request once whatever this does. One thread.
#pragma once

#include <memory>
#include <vector>

#include "base/random.h"
#include "engine/executor.h"

namespace goodput {

struct Fault {
  enum class Kind : uint8_t {
    kKvLost,  // the sequence's slot is emptied after the step
    kFailed,  // the sequence's result is unusable; its KV is as if it had been computed
    kSlow,    // the step lasts `extra` longer (modelled time only)
  };
  uint64_t run = 0;  // the how-manieth run() that computes something, from 0
  Kind kind = Kind::kFailed;
  size_t sequence = 0;  // index in the batch; modulo its size
  Nanos extra{0};
};

class FaultyExecutor final : public Executor {
 public:
  struct Plan {
    std::vector<Fault> script;
    uint64_t seed = 1;   // beside the script, faults at random:
    double kv_lost = 0;  // probability per sequence and step
    double failed = 0;   // probability per sequence and step
    double slow = 0;     // probability per step
    Nanos slow_by{0};
    std::vector<RequestId> refused;  // open() fails for these
  };
  FaultyExecutor(std::unique_ptr<Executor> inner, Plan plan);

  Capabilities capabilities() const override { return inner_->capabilities(); }
  Result<void> open(RequestId, const SamplingParams&) override;
  void close(RequestId id) override { inner_->close(id); }
  const StepResult& run(const Batch&) override;
  std::optional<Tokens> kv_length(Slot slot) const override { return inner_->kv_length(slot); }
  bool modelled_time() const override { return inner_->modelled_time(); }

 private:
  void inject(const Batch&, Fault::Kind, size_t sequence, Nanos extra);

  std::unique_ptr<Executor> inner_;
  Plan plan_;
  Random random_;
  uint64_t runs_ = 0;
  Batch emptied_;  // the releases that make lost KV true in the inner executor
  StepResult result_;
};

}  // namespace goodput
