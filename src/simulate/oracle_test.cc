// The simulator against closed forms of queueing theory, with fixed seeds. A mean is held within max(3 standard errors
// over independent replications, 2 to 3 %) of the theory.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "base/check.h"
#include "simulate/queue_load.h"

namespace goodput {
namespace {

constexpr int kReplications = 10;

struct Sample {
  double mean = 0, standard_error = 0;
};

Sample sample_of(const std::vector<double>& values) {
  const auto n = static_cast<double>(values.size());
  Sample s;
  for (const double v : values)
    s.mean += v / n;
  double squares = 0;
  for (const double v : values)
    squares += (v - s.mean) * (v - s.mean);
  s.standard_error = std::sqrt(squares / (n - 1) / n);
  return s;
}

void expect_theory(const Sample& seen, double theory, double tolerance, const char* what) {
  EXPECT_NEAR(seen.mean, theory, std::max(3 * seen.standard_error, tolerance * theory))
      << what << ": 3 standard errors are " << 3 * seen.standard_error;
}

SimulateResult run(const Schedule& schedule, const SimulateOptions& options) {
  auto result = simulate(schedule, options);
  CHECK(result.has_value(), "a run that must succeed");
  return std::move(*result);
}

// Mean over the records behind the first tenth, which met an empty server.
template <class F>
double mean_of(const SimulateResult& result, F&& value) {
  const size_t from = result.records.size() / 10;
  double sum = 0;
  for (size_t i = from; i < result.records.size(); ++i)
    sum += value(result.records[i]);
  return sum / static_cast<double>(result.records.size() - from);
}

double sojourn_s(const RequestRecord& r) { return to_seconds(*r.done - r.scheduled); }
double wait_s(const RequestRecord& r) { return to_seconds(*r.server->scheduled - r.scheduled); }

// M/D/1: Wq = ρS ÷ 2(1 − ρ).
TEST(Oracle, OneSeatAndEqualRequestsIsMD1) {
  constexpr double kStep = 1e-3;
  constexpr int kTokens = 5;
  for (const double rho : {0.3, 0.6, 0.8}) {
    const double service = kStep * kTokens;
    std::vector<double> waits, ttfts;
    for (uint64_t seed = 1; seed <= kReplications; ++seed) {
      const SimulateResult r = run(queue_load(seed, 10'000, rho / service, [](Random&) { return kTokens; }),
                                   queue_options(1, kStep * 1e9, 0));
      waits.push_back(mean_of(r, wait_s));
      ttfts.push_back(mean_of(r, [](const RequestRecord& x) { return to_seconds(*x.first_token - x.scheduled); }));
    }
    const double wq = rho * service / (2 * (1 - rho));
    expect_theory(sample_of(waits), wq, 0.03, "Wq");
    expect_theory(sample_of(ttfts), wq + kStep, 0.03, "TTFT");
  }
}

// M/G/1, Pollaczek–Khinchine: Wq = λE[S²] ÷ 2(1 − ρ).
TEST(Oracle, OneSeatAndTwoKindsOfRequestsIsMG1) {
  constexpr double kStep = 1e-3, kRho = 0.5;
  const auto draw = [](Random& random) { return random.uniform() < 0.9 ? int64_t{2} : int64_t{22}; };
  const double s1 = kStep * (0.9 * 2 + 0.1 * 22), s2 = kStep * kStep * (0.9 * 4 + 0.1 * 484);
  const double rate = kRho / s1;
  std::vector<double> waits;
  for (uint64_t seed = 1; seed <= kReplications; ++seed) {
    waits.push_back(mean_of(run(queue_load(seed, 20'000, rate, draw), queue_options(1, kStep * 1e9, 0)), wait_s));
  }
  expect_theory(sample_of(waits), rate * s2 / (2 * (1 - kRho)), 0.03, "Wq");
}

// Step = τ × batch: processor sharing. E[T] = E[S] ÷ (1 − ρ), whatever the distribution of lengths.
TEST(Oracle, StepsProportionalToTheBatchAreProcessorSharing) {
  constexpr double kTau = 1e-4, kMean = 40, kRho = 0.5;
  const double rate = kRho / (kTau * kMean);
  const std::vector<std::pair<const char*, DrawLength>> lengths{
      {"fixed", [](Random&) { return int64_t{40}; }},
      {"geometric", [](Random& r) { return geometric(r, kMean); }},
      {"bimodal", [](Random& r) { return r.uniform() < 0.9 ? int64_t{20} : int64_t{220}; }}};
  for (const auto& [name, draw] : lengths) {
    std::vector<double> sojourns;
    for (uint64_t seed = 1; seed <= kReplications; ++seed) {
      sojourns.push_back(
          mean_of(run(queue_load(seed, 4'000, rate, draw), queue_options(48, 0, kTau * 1e9)), sojourn_s));
    }
    expect_theory(sample_of(sojourns), kTau * kMean / (1 - kRho), 0.03, name);
  }
}

// Step = α + β × batch without a cap: E[T] = m(α + β) ÷ (1 − λmβ) (reference/planning.md of the design, section 7, 4).
TEST(Oracle, StepsWithAFixedPartAreStateDependentProcessorSharing) {
  constexpr double kAlpha = 2e-3, kBeta = 1e-4, kMean = 50;
  for (const double p : {0.2, 0.6}) {
    const double rate = p / (kMean * kBeta);
    std::vector<double> sojourns;
    for (uint64_t seed = 1; seed <= kReplications; ++seed) {
      const SimulateResult r = run(queue_load(seed, 4'000, rate, [](Random& x) { return geometric(x, kMean); }),
                                   queue_options(128, kAlpha * 1e9, kBeta * 1e9));
      sojourns.push_back(mean_of(r, sojourn_s));
    }
    // An arrival waits for the step in flight: half a step on average, which the fluid form leaves out.
    const double batch = (1 + kAlpha / kBeta) * p / (1 - p);
    const double join = 0.5 * (kAlpha + kBeta * batch);
    expect_theory(sample_of(sojourns), kMean * (kAlpha + kBeta) / (1 - p) + join, 0.03, "E[T]");
  }
}

// E[N] and E[T] of the birth–death chain μₙ = k ÷ (m(α + βk)), k = min(n, B), by summing its stationary distribution.
struct BirthDeath {
  double number = 0, sojourn = 0;
};
BirthDeath birth_death(double alpha, double beta, int cap, double m, double rho) {
  const double lambda = rho * cap / (m * (alpha + beta * cap));
  double weight = 1, total = 1, first = 0;
  for (int n = 1; n < 100'000; ++n) {
    const int k = std::min(n, cap);
    weight *= lambda * m * (alpha + beta * k) / k;
    total += weight;
    first += n * weight;
    if (n > cap && weight < 1e-16 * total)
      break;
  }
  return {first / total, first / total / lambda};
}

TEST(Oracle, TheBirthDeathFormGivesThePublishedVectors) {
  struct Vector {
    double alpha, beta, cap, m, rho, number, sojourn;
  };
  for (const Vector& v : {Vector{10e-3, 0.2e-3, 32, 200, 0.5, 12.363664, 2.534551},
                          Vector{10e-3, 0.2e-3, 32, 200, 0.8, 23.500882, 3.011051},
                          Vector{10e-3, 0.2e-3, 32, 200, 0.9, 30.800258, 3.507807},
                          Vector{20e-3, 0.5e-3, 8, 300, 0.7, 5.961411, 7.664672}}) {
    const BirthDeath b = birth_death(v.alpha, v.beta, static_cast<int>(v.cap), v.m, v.rho);
    EXPECT_NEAR(b.number, v.number, 1e-5);
    EXPECT_NEAR(b.sojourn, v.sojourn, 1e-5);
  }
}

TEST(Oracle, ACapOnTheBatchIsABirthDeathChain) {
  struct Case {
    double alpha, beta;
    int cap;
    double m, rho;
    size_t requests;
  };
  for (const Case& c : {Case{10e-3, 0.2e-3, 32, 200, 0.5, 2'000}, Case{10e-3, 0.2e-3, 32, 200, 0.8, 3'000},
                        Case{20e-3, 0.5e-3, 8, 300, 0.7, 2'000}}) {
    const double lambda = c.rho * c.cap / (c.m * (c.alpha + c.beta * c.cap));
    std::vector<double> sojourns;
    for (uint64_t seed = 1; seed <= kReplications; ++seed) {
      const SimulateResult r = run(queue_load(seed, c.requests, lambda, [&](Random& x) { return geometric(x, c.m); }),
                                   queue_options(c.cap, c.alpha * 1e9, c.beta * 1e9));
      sojourns.push_back(mean_of(r, sojourn_s));
    }
    expect_theory(sample_of(sojourns), birth_death(c.alpha, c.beta, c.cap, c.m, c.rho).sojourn, 0.03, "E[T]");
  }
}

// Non-preemptive priorities (Cobham): W₁ = W₀ ÷ (1 − ρ₁), W₂ = W₀ ÷ (1 − ρ₁)(1 − ρ₁ − ρ₂), W₀ = λE[S²] ÷ 2.
TEST(Oracle, PrioritiesOnOneSeatAreCobhams) {
  constexpr double kStep = 1e-3, kRate = 120;
  constexpr int kTokens = 5;
  SimulateOptions options = queue_options(1, kStep * 1e9, 0);
  options.settings.scheduling_policy = SchedulingPolicy::kPriority;
  std::vector<double> high, low;
  for (uint64_t seed = 1; seed <= kReplications; ++seed) {
    Schedule schedule = queue_load(seed, 10'000, kRate, [](Random&) { return kTokens; });
    Random random(seed, "priorities");
    for (ScheduledRequest& r : schedule.requests)
      r.priority = random.uniform() < 0.5 ? 0 : 1;
    const SimulateResult result = run(schedule, options);
    double sum[2] = {}, n[2] = {};
    for (size_t i = 0; i < result.records.size(); ++i) {
      const int p = schedule.requests[i].priority;
      sum[p] += wait_s(result.records[i]);
      ++n[p];
    }
    high.push_back(sum[0] / n[0]);
    low.push_back(sum[1] / n[1]);
  }
  const double service = kStep * kTokens, half = kRate / 2 * service, w0 = kRate * service * service / 2;
  expect_theory(sample_of(high), w0 / (1 - half), 0.03, "first class");
  expect_theory(sample_of(low), w0 / ((1 - half) * (1 - 2 * half)), 0.03, "second class");
}

}  // namespace
}  // namespace goodput
