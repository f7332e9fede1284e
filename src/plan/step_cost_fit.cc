// Fits StepCost to a step log.
//
// Why relative errors, weighted by duration: a mixed step lasts fifty times a decode step, and goodput depends on both
// (TTFT on the long ones, TPOT on the short ones). Plain least squares would see only the long, bare relative errors
// only the short, which are most. Why robust: the operating system disturbs a few steps by whole scheduling quanta,
// always upwards. Why every subset: with at most eleven coefficients the non-negative optimum is the best of at most
// 2048 unconstrained fits, found without an iteration that could stall.
#include "plan/step_cost_fit.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

namespace goodput {
namespace {

constexpr size_t kCoefficients = 11;
constexpr std::array<const char*, kCoefficients> kNames{"base",  "prefill", "decode", "kv",   "tile", "scan",
                                                        "crowd", "dense",   "far",    "pass", "swap"};
constexpr size_t kRequired = 4;  // the others stay 0 where the log has none
constexpr int kRounds = 20;      // of reweighting; it settles in five or six
constexpr double kSlack = 0.1;   // a relative error that is never taken for a disturbance: the form itself is off by it
constexpr double kCollinear = 1e-9;  // share of a column that the others must leave unexplained

using Row = std::array<double, kCoefficients>;

Row regressors(const StepShape& s) {
  return {1,
          static_cast<double>(s.prefill.count()),
          static_cast<double>(s.decodes),
          static_cast<double>(s.kv_read.count()),
          static_cast<double>(s.kv_tiled.count()),
          static_cast<double>(s.kv_scanned.count()),
          static_cast<double>(s.kv_scanned.count()) * s.decodes,
          static_cast<double>(s.kv_dense.count()),
          static_cast<double>(std::max<int64_t>(0, s.kv_dense.count() - kFarPairs)),
          static_cast<double>(s.passes - 1),
          static_cast<double>(s.swapped.count())};
}

struct Sample {
  Row x;
  double seen;        // ns
  double weight = 1;  // robustness: 0 = taken for disturbed
  double scale = 1;   // expected duration, ns: errors are relative to it
};

double predict(const Row& x, const Row& coefficients) {
  double sum = 0;
  for (size_t i = 0; i < kCoefficients; ++i)
    sum += x[i] * coefficients[i];
  return sum;
}

// The normal equations of the weighted problem, over all columns; subsets select from them.
struct Normal {
  std::array<Row, kCoefficients> a{};
  Row b{};
  double yy = 0;
};

Normal normal_equations(std::span<const Sample> samples) {
  Normal n;
  for (const Sample& s : samples) {
    const double w = s.weight / s.scale;
    for (size_t i = 0; i < kCoefficients; ++i) {
      for (size_t j = 0; j <= i; ++j)
        n.a[i][j] += w * s.x[i] * s.x[j];
      n.b[i] += w * s.x[i] * s.seen;
    }
    n.yy += w * s.seen * s.seen;
  }
  for (size_t i = 0; i < kCoefficients; ++i) {
    for (size_t j = i + 1; j < kCoefficients; ++j)
      n.a[i][j] = n.a[j][i];
  }
  return n;
}

// Cholesky of the columns in `subset`, scaled to a unit diagonal. Returns the first column that the earlier ones
// explain, or kCoefficients; fills `solution` when there is none.
size_t solve(const Normal& n, unsigned subset, Row& solution) {
  std::array<size_t, kCoefficients> column{};
  size_t k = 0;
  for (size_t i = 0; i < kCoefficients; ++i) {
    if (subset >> i & 1)
      column[k++] = i;
  }
  std::array<Row, kCoefficients> l{};
  Row y{}, scale{};
  for (size_t i = 0; i < k; ++i) {
    scale[i] = std::sqrt(n.a[column[i]][column[i]]);
    if (!(scale[i] > 0))
      return column[i];
    for (size_t j = 0; j <= i; ++j) {
      double sum = n.a[column[i]][column[j]] / (scale[i] * scale[j]);
      for (size_t m = 0; m < j; ++m)
        sum -= l[i][m] * l[j][m];
      if (i != j) {
        l[i][j] = sum / l[j][j];
      } else {
        if (sum < kCollinear)
          return column[i];
        l[i][i] = std::sqrt(sum);
      }
    }
    double sum = n.b[column[i]] / scale[i];
    for (size_t m = 0; m < i; ++m)
      sum -= l[i][m] * y[m];
    y[i] = sum / l[i][i];
  }
  solution = {};
  for (size_t i = k; i-- > 0;) {
    double sum = y[i];
    for (size_t m = i + 1; m < k; ++m)
      sum -= l[m][i] * solution[column[m]] * scale[m];
    solution[column[i]] = sum / l[i][i] / scale[i];
  }
  return kCoefficients;
}

double residual(const Normal& n, const Row& c) {
  double sum = n.yy;
  for (size_t i = 0; i < kCoefficients; ++i) {
    sum -= 2 * c[i] * n.b[i];
    for (size_t j = 0; j < kCoefficients; ++j)
      sum += c[i] * c[j] * n.a[i][j];
  }
  return sum;
}

// The best non-negative solution over the columns in `allowed`.
Row non_negative(const Normal& n, unsigned allowed) {
  Row best{};
  double least = n.yy;
  for (unsigned subset = 1; subset < 1u << kCoefficients; ++subset) {
    if ((subset & ~allowed) != 0)
      continue;
    Row candidate{};
    if (solve(n, subset, candidate) != kCoefficients)
      continue;
    if (std::any_of(candidate.begin(), candidate.end(), [](double c) { return c < 0; }))
      continue;
    const double left = residual(n, candidate);
    if (left < least) {
      least = left;
      best = candidate;
    }
  }
  return best;
}

double quantile(std::vector<double> values, double p) {
  if (values.empty())
    return 0;
  const auto k = static_cast<ptrdiff_t>(p * static_cast<double>(values.size() - 1));
  std::nth_element(values.begin(), values.begin() + k, values.end());
  return values[static_cast<size_t>(k)];
}

std::vector<double> relative_errors(std::span<const Sample> samples, const Row& c) {
  std::vector<double> errors;
  errors.reserve(samples.size());
  for (const Sample& s : samples)
    errors.push_back(std::abs(predict(s.x, c) - s.seen) / s.seen);
  return errors;
}

// Errors become relative to what is expected (what was seen would favour steps that happened to be short), and a step
// far outside the others' scatter loses its say: Huber's weights first, which always converge, then Tukey's, which
// ignore a disturbed step altogether.
void reweight(std::span<Sample> samples, const Row& c, bool drop) {
  std::vector<double> distance;
  distance.reserve(samples.size());
  for (Sample& s : samples) {
    s.scale = std::max(predict(s.x, c), 1.0);
    distance.push_back(std::abs(s.seen - s.scale) / s.scale);
  }
  const double sigma = std::max(1.4826 * quantile(distance, 0.5), kSlack);
  for (size_t i = 0; i < samples.size(); ++i) {
    const double u = distance[i] / sigma;
    if (drop) {
      const double t = u / 4.685;
      samples[i].weight = t < 1 ? (1 - t * t) * (1 - t * t) : 0;
    } else {
      samples[i].weight = u < 1.345 ? 1 : 1.345 / u;
    }
  }
}

Row robust_fit(std::vector<Sample>& samples, unsigned allowed) {
  Row c = non_negative(normal_equations(samples), allowed);
  for (int round = 0; round < kRounds; ++round) {
    reweight(samples, c, round >= kRounds / 2);
    c = non_negative(normal_equations(samples), allowed);
  }
  return c;
}

// Which coefficients the log can tell apart. The required ones must be; the others are left out where they never
// occur or always occur together with something else.
Result<unsigned> identifiable(std::span<const Sample> samples) {
  const Normal n = normal_equations(samples);
  unsigned columns = 0;
  Row unused;
  for (size_t i = 0; i < kCoefficients; ++i) {
    const unsigned with = columns | 1u << i;
    if (solve(n, with, unused) == kCoefficients) {
      columns = with;
    } else if (i < kRequired) {
      return fail(ErrorCode::kFailed, std::string("the step log has too few distinct shapes to tell what ") +
                                          kNames[i] + " costs (" + std::to_string(samples.size()) +
                                          " steps); record prefill and decode steps of several sizes and KV lengths");
    }
  }
  return columns;
}

}  // namespace

Result<StepCostFit> fit_step_cost(std::span<const StepRecord> log) {
  std::vector<Sample> samples;
  samples.reserve(log.size());
  for (const StepRecord& step : log) {
    if (step.duration <= Nanos(0) || (step.shape.prefill == Tokens(0) && step.shape.decodes == 0))
      continue;
    Sample s{regressors(step.shape), static_cast<double>(step.duration.count())};
    s.scale = s.seen;
    samples.push_back(s);
  }
  const unsigned columns = TRY(identifiable(samples));
  const Row c = robust_fit(samples, columns);

  StepCostFit fit;
  fit.cost = {c[0], c[1], c[2], c[3], c[4], c[5], c[6], c[7], c[8], c[9], c[10]};
  fit.steps = samples.size();
  const std::vector<double> errors = relative_errors(samples, c);
  fit.median_relative_error = quantile(errors, 0.5);
  fit.p90_relative_error = quantile(errors, 0.9);
  double predicted = 0, seen = 0;
  for (const Sample& s : samples) {
    predicted += predict(s.x, c);
    seen += s.seen;
  }
  fit.bias = predicted / seen - 1;
  return fit;
}

}  // namespace goodput
