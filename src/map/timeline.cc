#include "map/timeline.h"

#include "simulate/simulate.h"

namespace goodput {
namespace {

// Requests 0–3 fill the batch; 0 ends at its 5th token, the others at their 8th. 4 waits for a seat and wants 3.
Schedule example_schedule() {
  constexpr int kOutputs[] = {5, 8, 8, 8, 3};
  Schedule schedule;
  for (uint64_t i = 0; i < std::size(kOutputs); ++i) {
    ScheduledRequest r;
    r.index = i;
    r.output = Tokens(kOutputs[i]);
    for (TokenId t = 0; t < 4; ++t)
      r.prompt.push_back(static_cast<TokenId>(100 * (i + 1)) + t);  // nothing is shared
    schedule.requests.push_back(std::move(r));
  }
  return schedule;
}

Result<Timeline> play(Batching batching, const StepCost& cost) {
  SimulateOptions options;
  options.settings.max_num_seqs = 4;
  options.settings.max_num_batched_tokens = Tokens(64);
  options.settings.max_model_len = Tokens(256);
  options.settings.batching = batching;
  options.settings.static_batch_wait = Nanos(0);
  options.capabilities.kv = {
      .block_size = options.settings.block_size, .total = Blocks(256), .per_slot = Blocks(256), .slots = 8};
  options.capabilities.max_batch_tokens = Tokens(64);
  options.capabilities.max_len = Tokens(256);
  options.cost = cost;
  Timeline timeline{.title = std::string(to_string(batching)), .steps = {}, .ended_ms = {}};
  std::optional<RequestId> first_id;
  options.on_batch = [&](const Batch& batch, TimePoint start, TimePoint end) {
    TimelineStep step{.start_ms = to_ms(start.since_zero()), .end_ms = to_ms(end.since_zero()), .lanes = {}};
    for (const auto& s : batch.sequences) {
      if (!first_id)
        first_id = s.id;
      step.lanes.push_back({s.id.value() - first_id->value(), static_cast<int>(s.tokens.size()), s.decode});
    }
    timeline.steps.push_back(std::move(step));
  };
  const SimulateResult result = TRY(simulate(example_schedule(), options));
  for (const auto& r : result.records)
    if (r.done)
      timeline.ended_ms.emplace_back(r.index, to_ms(r.done->since_zero()));
  return timeline;
}

}  // namespace

Result<std::vector<Timeline>> example_timelines(const StepCost& cost) {
  std::vector<Timeline> both;
  both.push_back(TRY(play(Batching::kStatic, cost)));
  both.push_back(TRY(play(Batching::kContinuous, cost)));
  return both;
}

}  // namespace goodput
