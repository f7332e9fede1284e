// What the scheduler itself costs per iteration: one next() + apply() at 256 running sequences, without a model. Once
// with everybody decoding, which is the figure that has a bar, and once with sequences that end and are admitted all
// the time. Filling in the sampled tokens and submitting requests is the executor's and the server's work: not timed.
#include <algorithm>
#include <cstdio>
#include <vector>

#include "base/check.h"
#include "base/clock.h"
#include "base/random.h"
#include "scheduler/scheduler.h"

namespace {

using namespace goodput;

constexpr int kSequences = 256;
constexpr double kBarUs = 10;

struct Load {
  const char* name;
  int64_t prompt, shortest, longest;  // tokens of a prompt; of an output
  int warmup, steps;
};

struct Figures {
  double median_us, p99_us, running, ended_per_step;
};

Figures measure(const Load& load) {
  Settings settings;
  settings.max_num_seqs = kSequences;
  settings.max_num_batched_tokens = Tokens(2048);
  Capabilities capabilities;
  capabilities.max_batch_tokens = Tokens(2048);
  capabilities.max_len = settings.max_model_len;
  capabilities.kv = {.total = Blocks(64 * 1024), .per_slot = Blocks(64 * 1024), .slots = kSequences};
  auto made = Scheduler::create(settings, capabilities);
  CHECK(made.has_value(), "settings that this file chose");
  Scheduler& scheduler = **made;

  Random random(1, "scheduler-step");
  uint64_t id = 0;
  const auto refill = [&] {
    for (int i = scheduler.state().running + scheduler.state().waiting; i < kSequences + 16; ++i) {
      Request request{.id = RequestId(++id), .max_new = Tokens(random.uniform_int(load.shortest, load.longest))};
      for (int64_t t = 0; t < load.prompt; ++t)
        request.prompt.push_back(static_cast<TokenId>(random.next() % 4096));
      CHECK(scheduler.submit(std::move(request)).has_value(), "requests that this file chose");
    }
  };

  std::vector<double> us;
  us.reserve(static_cast<size_t>(load.steps));
  StepResult result;
  TimePoint now;
  double running = 0, ended = 0;
  for (int step = 0; step < load.warmup + load.steps; ++step) {
    refill();
    const TimePoint begin = monotonic_now();
    const Batch& batch = scheduler.next(now);
    const TimePoint chosen = monotonic_now();
    result.sequences.clear();
    for (const ScheduledSequence& s : batch.sequences) {
      SequenceResult one;
      if (s.samples)
        one.sampled = static_cast<TokenId>(random.next() % 4096);
      result.sequences.push_back(one);
    }
    now += milliseconds(1);
    const TimePoint computed = monotonic_now();
    const auto events = scheduler.apply(result, now);
    const TimePoint end = monotonic_now();
    if (step < load.warmup)
      continue;
    us.push_back(static_cast<double>(((chosen - begin) + (end - computed)).count()) * 1e-3);
    running += scheduler.state().running;
    ended += static_cast<double>(
        std::count_if(events.begin(), events.end(), [](const Event& e) { return e.kind == Event::Kind::kEnded; }));
  }
  std::sort(us.begin(), us.end());
  return {us[us.size() / 2], us[us.size() * 99 / 100], running / load.steps, ended / load.steps};
}

}  // namespace

int main() {
  const Load decoding{"all decode", 32, 4000, 4000, 100, 3500};
  const Load churning{"end and join", 64, 16, 128, 500, 5000};
  std::printf("One next() + apply() at up to %d running sequences, prefix caching on, microseconds:\n", kSequences);
  std::printf("%-14s %8s %8s %12s %12s\n", "load", "median", "p99", "running", "ended/step");
  double value = 0;
  for (const Load& load : {churning, decoding}) {
    const Figures f = measure(load);
    std::printf("%-14s %8.2f %8.2f %12.1f %12.2f\n", load.name, f.median_us, f.p99_us, f.running, f.ended_per_step);
    value = f.median_us;
  }
  std::printf(
      "{\"name\":\"scheduler-step\",\"value\":%.3f,\"unit\":\"us\",\"bar\":%.0f,\"ok\":%s,\"better\":\"lower\"}\n",
      value, kBarUs, value <= kBarUs ? "true" : "false");
  return 0;
}
