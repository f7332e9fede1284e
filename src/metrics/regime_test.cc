// Does the regime tell a queue that grows from one that wanders? Simulated queues with known load.
#include <queue>

#include <gtest/gtest.h>

#include "base/random.h"
#include "metrics/summary.h"
#include "metrics/test_records.h"

namespace goodput {
namespace {

using testing::at_ms;
using testing::failed;
using testing::steady_stream;
using testing::window_ms;

// `servers` parallel servers, exponential service of mean 1 s each, Poisson arrivals at `load` of their capacity.
std::vector<RequestRecord> queue_run(Random& random, double load, int servers, double until_s) {
  std::vector<RequestRecord> records;
  std::priority_queue<double, std::vector<double>, std::greater<>> free_at;
  for (int i = 0; i < servers; ++i)
    free_at.push(0);
  for (double t = random.exponential(1 / (load * servers)); t < until_s;
       t += random.exponential(1 / (load * servers))) {
    const double start = std::max(t, free_at.top());
    free_at.pop();
    const double end = start + random.exponential(1);
    free_at.push(end);
    RequestRecord r;
    r.outcome = Outcome::kOk;
    r.scheduled = TimePoint(from_seconds(t));
    r.done = r.closed = TimePoint(from_seconds(end));
    records.push_back(std::move(r));
  }
  return records;
}

double saturated_share(double load, int servers, double until_s, int runs) {
  Random random(5, "regime");
  int saturated = 0;
  for (int i = 0; i < runs; ++i)
    saturated += regime_of(queue_run(random, load, servers, until_s),
                           {TimePoint(), TimePoint(from_seconds(until_s))}) == Regime::kSaturated;
  return static_cast<double>(saturated) / runs;
}

TEST(Regime, SteadyQueuesAreRarelyCalledSaturated) {
  EXPECT_LE(saturated_share(0.5, 8, 100, 400), 0.05);
  EXPECT_LE(saturated_share(0.8, 8, 100, 400), 0.05);
  EXPECT_LE(saturated_share(0.9, 8, 100, 400), 0.06);
}

TEST(Regime, OverloadIsFoundOnceThereAreEnoughRequests) {
  EXPECT_GE(saturated_share(1.5, 8, 100, 400), 0.95);
  EXPECT_GE(saturated_share(1.2, 8, 1000, 100), 0.95);
}

TEST(Regime, DeterministicOverloadNeedsFewRequests) {
  // Four requests a second arrive, three are served.
  std::vector<RequestRecord> records;
  for (int i = 0; i < 48; ++i)
    records.push_back(failed(Outcome::kTimeout, 250.0 * i, 1000.0 / 3 * (i + 1) - 250.0 * i));
  EXPECT_EQ(regime_of(records, window_ms(0, 12'000)), Regime::kSaturated);
}

TEST(Regime, UnknownBelowTwentyArrivalsInTheLastHalf) {
  std::vector<RequestRecord> records;
  for (int i = 0; i < 19; ++i)
    records.push_back(failed(Outcome::kUnfinished, 5000 + 250.0 * i, 0));
  EXPECT_EQ(regime_of(records, window_ms(0, 10'000)), Regime::kUnknown);
  records.push_back(failed(Outcome::kUnfinished, 9999, 0));
  EXPECT_EQ(regime_of(records, window_ms(0, 10'000)), Regime::kSaturated);
  EXPECT_EQ(regime_of(records, window_ms(10'000, 10'000)), Regime::kUnknown);
}

TEST(Regime, ClosedLoopsAndRequestsThatNeverLeftAreNotGrowth) {
  std::vector<RequestRecord> closed, lost;
  for (int i = 0; i < 100; ++i) {
    closed.push_back(steady_stream(100.0 * i, 50, 10, 6));
    lost.push_back(failed(Outcome::kNotSent, 100.0 * i, 0));
  }
  EXPECT_EQ(regime_of(closed, window_ms(0, 10'000)), Regime::kSteady);
  EXPECT_EQ(regime_of(lost, window_ms(0, 10'000)), Regime::kUnknown);
}

TEST(Regime, Names) {
  EXPECT_EQ(to_string(Regime::kSteady), "steady");
  EXPECT_EQ(to_string(Regime::kSaturated), "saturated");
  EXPECT_EQ(to_string(Regime::kUnknown), "unknown");
}

TEST(OpeningWave, IsWhatArrivedBeforeTheFirstEndAndTheWarmUp) {
  EXPECT_EQ(opening_wave({}, seconds(1)).requests, 0u);
  std::vector<RequestRecord> records;
  for (int i = 0; i < 10; ++i)
    records.push_back(steady_stream(100.0 * i, 340, 10, 2));  // the first ends at 350
  OpeningWave wave = opening_wave(records, Nanos(0));
  EXPECT_EQ(wave.requests, 4u);
  EXPECT_EQ(wave.end, at_ms(350));
  wave = opening_wave(records, milliseconds(800));
  EXPECT_EQ(wave.requests, 8u);
  const std::vector<RequestRecord> never{failed(Outcome::kUnfinished, 0, 0), failed(Outcome::kUnfinished, 900, 0)};
  EXPECT_EQ(opening_wave(never, Nanos(0)).requests, 2u);
}

}  // namespace
}  // namespace goodput
