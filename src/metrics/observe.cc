// Gauges of the engine over the window, from its step log. Pure functions; any thread.
#include <algorithm>

#include "metrics/summary.h"

namespace goodput {
namespace {

constexpr Nanos kShortPause = milliseconds(1);

// Time-weighted samples of one gauge.
class Gauge {
 public:
  void hold(double value, Nanos time) {
    if (time > Nanos(0))
      samples_.push_back({value, static_cast<double>(time.count())});
  }
  MeanP95Max result() const { return mean_p95_max(samples_); }

 private:
  std::vector<Weighted> samples_;
};

}  // namespace

Observed observe(std::span<const StepRecord> log, Blocks total, Window window) {
  Observed out;
  if (log.empty() || window.end <= window.start)
    return out;
  std::vector<StepRecord> steps(log.begin(), log.end());
  std::ranges::stable_sort(steps, {}, &StepRecord::start);

  Gauge running, batched, queue, kv;
  uint64_t preemptions = 0;
  const auto inside = [&](TimePoint from, TimePoint to) {
    return std::max(Nanos(0), std::min(to, window.end) - std::max(from, window.start));
  };
  const auto idle = [&](Nanos time, int waiting) {
    running.hold(0, time);
    queue.hold(waiting, time);
    if (total > Blocks{0})
      kv.hold(0, time);
  };
  idle(inside(window.start, steps.front().start), 0);
  for (size_t i = 0; i < steps.size(); ++i) {
    const StepRecord& s = steps[i];
    const TimePoint next = i + 1 < steps.size() ? steps[i + 1].start : std::max(window.end, s.start);
    const Nanos pause = next - (s.start + s.duration);
    const TimePoint until = pause > std::max(kShortPause, s.duration / 4) ? s.start + s.duration : next;
    const Nanos busy = inside(s.start, until);
    running.hold(s.running, busy);
    batched.hold(s.shape.prefill.count() + s.shape.decodes, busy);
    queue.hold(s.waiting, busy);
    if (total > Blocks{0})
      kv.hold(static_cast<double>(s.used.count()) / total.count(), busy);
    idle(inside(until, next), s.waiting);
    if (window.contains(s.start))
      preemptions += static_cast<uint64_t>(std::max(0, s.preempted));
  }
  out.running = running.result();
  out.batched_tokens = batched.result();
  out.queue_depth = queue.result();
  out.kv_usage = kv.result();
  out.preemptions = preemptions;
  return out;
}

}  // namespace goodput
