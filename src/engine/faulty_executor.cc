// See faulty_executor.h.
#include "engine/faulty_executor.h"

#include <algorithm>

namespace goodput {

FaultyExecutor::FaultyExecutor(std::unique_ptr<Executor> inner, Plan plan)
    : inner_(std::move(inner)), plan_(std::move(plan)), random_(plan_.seed, "faults") {}

Result<void> FaultyExecutor::open(RequestId id, const SamplingParams& params) {
  if (std::find(plan_.refused.begin(), plan_.refused.end(), id) != plan_.refused.end()) {
    return fail(ErrorCode::kFailed, "the plan of faults refuses this request");
  }
  return inner_->open(id, params);
}

void FaultyExecutor::inject(const Batch& batch, Fault::Kind kind, size_t sequence, Nanos extra) {
  if (kind == Fault::Kind::kSlow) {
    result_.duration += extra;
    result_.decode += extra;
    return;
  }
  sequence %= batch.sequences.size();
  SequenceResult& result = result_.sequences[sequence];
  if (result.status != SequenceResult::Status::kOk)
    return;  // one fault is enough
  result.sampled.reset();
  if (kind == Fault::Kind::kFailed) {
    result.status = SequenceResult::Status::kFailed;
    return;
  }
  result.status = SequenceResult::Status::kKvLost;
  KvOp release;
  release.kind = KvOp::Kind::kRelease;
  release.slot = batch.sequences[sequence].slot;
  emptied_.ops.push_back(release);
}

const StepResult& FaultyExecutor::run(const Batch& batch) {
  result_ = inner_->run(batch);
  if (batch.sequences.empty())
    return result_;
  const uint64_t run = runs_++;
  emptied_.ops.clear();
  for (const Fault& fault : plan_.script) {
    if (fault.run == run)
      inject(batch, fault.kind, fault.sequence, fault.extra);
  }
  if (plan_.slow > 0 && random_.uniform() < plan_.slow)
    inject(batch, Fault::Kind::kSlow, 0, plan_.slow_by);
  for (size_t i = 0; i < batch.sequences.size() && plan_.kv_lost + plan_.failed > 0; ++i) {
    const double draw = random_.uniform();
    if (draw < plan_.kv_lost) {
      inject(batch, Fault::Kind::kKvLost, i, Nanos(0));
    } else if (draw < plan_.kv_lost + plan_.failed) {
      inject(batch, Fault::Kind::kFailed, i, Nanos(0));
    }
  }
  if (!emptied_.ops.empty())
    inner_->run(emptied_);
  return result_;
}

}  // namespace goodput
