// The fit recovers what made the log: exactly without noise, closely with noise and disturbed steps; and it refuses
// logs that cannot tell the coefficients apart.
#include "plan/step_cost_fit.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/random.h"

namespace goodput {
namespace {

StepRecord step(const StepShape& shape, double duration_ns) {
  StepRecord r;
  r.shape = shape;
  r.duration = Nanos(static_cast<int64_t>(std::llround(duration_ns)));
  return r;
}

// A mixed load: three in four steps decode only, the others carry a prefill chunk beside it.
StepShape draw_shape(Random& random) {
  StepShape s;
  s.decodes = static_cast<int>(random.uniform_int(0, 32));
  int64_t kv = 0;
  for (int i = 0; i < s.decodes; ++i)
    kv += random.uniform_int(16, 2048);
  if (s.decodes == 0 || random.uniform() < 0.25) {
    const int64_t chunk = random.uniform_int(1, 256);
    s.prefill = Tokens(chunk);
    kv += chunk * random.uniform_int(chunk, 2048);
  }
  s.kv_read = KvPairs(kv);
  return s;
}

double exact(const StepCost& c, const StepShape& s) {
  return c.base_ns + c.prefill_ns * s.prefill.count() + c.decode_ns * s.decodes + c.kv_ns * s.kv_read.count() +
         c.pass_ns * (s.passes - 1) + c.swap_ns * s.swapped.count();
}

StepCost draw_cost(Random& random) {
  StepCost c;
  c.base_ns = 1e5 * (1 + 19 * random.uniform());
  c.prefill_ns = 2e3 * (1 + 19 * random.uniform());
  c.decode_ns = 5e3 * (1 + 19 * random.uniform());
  c.kv_ns = 2 * (1 + 19 * random.uniform());
  return c;
}

// Largest relative difference of the predicted durations over fresh shapes: what matters, whatever the coefficients.
double largest_difference(const StepCost& a, const StepCost& b, Random& random) {
  double largest = 0;
  for (int i = 0; i < 500; ++i) {
    const StepShape s = draw_shape(random);
    largest = std::max(largest, std::abs(exact(a, s) / exact(b, s) - 1));
  }
  return largest;
}

TEST(StepCostFit, RecoversExactlyWithoutNoise) {
  EXPECT_TRUE(rc::check("noise-free logs", [](uint64_t seed) {
    Random random(seed, "fit");
    const StepCost truth = draw_cost(random);
    std::vector<StepRecord> log;
    for (int i = 0; i < 400; ++i) {
      const StepShape s = draw_shape(random);
      log.push_back(step(s, exact(truth, s)));
    }
    const auto fit = fit_step_cost(log);
    RC_ASSERT(fit.has_value());
    RC_ASSERT(std::abs(fit->cost.base_ns / truth.base_ns - 1) < 1e-3);
    RC_ASSERT(std::abs(fit->cost.prefill_ns / truth.prefill_ns - 1) < 1e-3);
    RC_ASSERT(std::abs(fit->cost.decode_ns / truth.decode_ns - 1) < 1e-3);
    RC_ASSERT(std::abs(fit->cost.kv_ns / truth.kv_ns - 1) < 1e-3);
    RC_ASSERT(fit->cost.pass_ns == 0);
    RC_ASSERT(fit->cost.swap_ns == 0);
    RC_ASSERT(fit->median_relative_error < 1e-4);
  }));
}

TEST(StepCostFit, RecoversThroughNoiseAndDisturbedSteps) {
  EXPECT_TRUE(rc::check("5 % noise, 5 % of the steps 2 to 20 times as long", [](uint64_t seed) {
    Random random(seed, "fit");
    const StepCost truth = draw_cost(random);
    std::vector<StepRecord> log;
    for (int i = 0; i < 3000; ++i) {
      const StepShape s = draw_shape(random);
      double ns = exact(truth, s) * (1 + 0.05 * random.normal());
      if (random.uniform() < 0.05)
        ns *= 2 + 18 * random.uniform();
      log.push_back(step(s, std::max(ns, 1.0)));
    }
    const auto fit = fit_step_cost(log);
    RC_ASSERT(fit.has_value());
    RC_ASSERT(largest_difference(fit->cost, truth, random) < 0.03);
    RC_ASSERT(fit->median_relative_error < 0.05);
    RC_ASSERT(fit->steps == log.size());
  }));
}

TEST(StepCostFit, NeverNegative) {
  EXPECT_TRUE(rc::check("durations without any relation to the shape", [](uint64_t seed) {
    Random random(seed, "fit");
    std::vector<StepRecord> log;
    for (int i = 0; i < 200; ++i)
      log.push_back(step(draw_shape(random), 1e3 + 1e6 * random.uniform()));
    const auto fit = fit_step_cost(log);
    RC_ASSERT(fit.has_value());
    for (const double c : {fit->cost.base_ns, fit->cost.prefill_ns, fit->cost.decode_ns, fit->cost.kv_ns}) {
      RC_ASSERT(c >= 0);
      RC_ASSERT(std::isfinite(c));
    }
  }));
}

TEST(StepCostFit, PassesAndSwapsAreFittedWhereTheyOccur) {
  Random random(3, "fit");
  StepCost truth = draw_cost(random);
  truth.pass_ns = 3e5;
  truth.swap_ns = 700;
  std::vector<StepRecord> log;
  for (int i = 0; i < 1000; ++i) {
    StepShape s = draw_shape(random);
    s.passes = static_cast<int>(random.uniform_int(1, 3));
    if (random.uniform() < 0.1)
      s.swapped = Tokens(random.uniform_int(1, 500));
    log.push_back(step(s, exact(truth, s)));
  }
  const auto fit = fit_step_cost(log);
  ASSERT_TRUE(fit.has_value());
  EXPECT_NEAR(fit->cost.pass_ns, truth.pass_ns, 1e-3 * truth.pass_ns);
  EXPECT_NEAR(fit->cost.swap_ns, truth.swap_ns, 1e-3 * truth.swap_ns);
}

TEST(StepCostFit, NamesWhatTheLogCannotTell) {
  const auto error_of = [](const std::vector<StepRecord>& log) {
    const auto fit = fit_step_cost(log);
    return fit ? std::string("fitted") : fit.error().message;
  };
  EXPECT_NE(error_of({}).find("base"), std::string::npos);

  std::vector<StepRecord> decode_only, one_size;
  for (int i = 1; i <= 50; ++i) {
    StepShape s;
    s.decodes = i % 7 + 1;
    s.kv_read = KvPairs(100 * i);
    decode_only.push_back(step(s, 1000.0 * i));
    s.decodes = 4;
    s.prefill = Tokens(i);
    one_size.push_back(step(s, 1000.0 * i));
  }
  EXPECT_NE(error_of(decode_only).find("prefill"), std::string::npos);
  EXPECT_NE(error_of(one_size).find("decode"), std::string::npos);
  // Steps that computed nothing or lasted no time say nothing.
  EXPECT_NE(error_of(std::vector<StepRecord>(10)).find("base"), std::string::npos);
}

}  // namespace
}  // namespace goodput
