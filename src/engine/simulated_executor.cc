// See simulated_executor.h.
#include "engine/simulated_executor.h"

#include "base/check.h"
#include "base/random.h"

namespace goodput {
namespace {

// The KV ownership changes of a batch, on lengths alone.
void carry_out(const KvOp& op, std::vector<Tokens>& kv) {
  const auto length = [&kv](Slot slot) -> Tokens& {
    CHECK(slot.value() >= 0 && static_cast<size_t>(slot.value()) < kv.size(), "a slot beyond the geometry");
    return kv[static_cast<size_t>(slot.value())];
  };
  switch (op.kind) {
    case KvOp::Kind::kShare:
      CHECK(length(op.slot) == Tokens(0), "shared into a slot that is not empty");
      CHECK(op.keep <= length(op.from), "shared more than the source holds");
      length(op.slot) = op.keep;
      break;
    case KvOp::Kind::kTruncate:
      CHECK(op.keep <= length(op.slot), "truncated to more than the slot holds");
      length(op.slot) = op.keep;
      break;
    case KvOp::Kind::kRelease:
      length(op.slot) = Tokens(0);
      break;
  }
}

}  // namespace

TokenId simulated_token(RequestId id, Tokens position, TokenId low, TokenId high) {
  CHECK(low < high, "an empty range of tokens");
  const uint64_t hash = mix64(id.value(), static_cast<uint64_t>(position.count()));
  // The upper half times the range, shifted down: a range reduction without a division.
  const uint64_t range = static_cast<uint64_t>(int64_t{high} - int64_t{low});
  return static_cast<TokenId>(low + static_cast<int64_t>(((hash >> 32) * range) >> 32));
}

SimulatedExecutor::SimulatedExecutor(const Options& options) : options_(options) {
  CHECK(options_.capabilities.kv.slots > 0, "an executor needs slots");
  CHECK(options_.token_low < options_.token_high, "an empty range of tokens");
  kv_.resize(static_cast<size_t>(options_.capabilities.kv.slots));
}

Capabilities SimulatedExecutor::capabilities() const { return options_.capabilities; }

Result<void> SimulatedExecutor::open(RequestId, const SamplingParams&) { return {}; }

void SimulatedExecutor::close(RequestId) {}

const StepResult& SimulatedExecutor::run(const Batch& batch) {
  for (const KvOp& op : batch.ops)
    carry_out(op, kv_);
  result_.sequences.clear();
  for (const ScheduledSequence& sequence : batch.sequences) {
    const auto slot = static_cast<size_t>(sequence.slot.value());
    CHECK(slot < kv_.size(), "a slot beyond the geometry");
    CHECK(sequence.first == kv_[slot], "a batch that does not continue its slot's KV");
    kv_[slot] += Tokens(sequence.tokens.size());
    SequenceResult& out = result_.sequences.emplace_back();
    // The sampled token stands behind the last one computed, and every token of a sequence is computed once.
    if (sequence.samples)
      out.sampled = simulated_token(sequence.id, kv_[slot], options_.token_low, options_.token_high);
  }
  const StepShape shape = batch.shape();
  const Nanos duration = batch.sequences.empty() ? Nanos(0) : options_.cost.of(shape);
  result_.duration = duration;
  result_.decode = duration;
  result_.sampling = Nanos(0);
  result_.passes = shape.passes;
  return result_;
}

std::optional<Tokens> SimulatedExecutor::kv_length(Slot slot) const {
  CHECK(slot.value() >= 0 && static_cast<size_t>(slot.value()) < kv_.size(), "a slot beyond the geometry");
  return kv_[static_cast<size_t>(slot.value())];
}

}  // namespace goodput
