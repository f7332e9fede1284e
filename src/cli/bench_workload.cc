// Flags that say what is asked for and when. What vLLM has and this version has not is refused in one line each, where
// the mapping will stand.
#include <cmath>
#include <limits>

#include <fmt/format.h>
#include <boost/json.hpp>

#include "base/limits.h"
#include "base/text.h"
#include "cli/bench_plan.h"

namespace goodput {
namespace {

constexpr uint64_t kDefaultPrompts = 1000;   // vLLM's
constexpr uint64_t kRequestsPerPlace = 500;  // of a timed closed loop: more than it can use
constexpr double kInfinity = std::numeric_limits<double>::infinity();

Result<double> number_or_inf(std::string_view flag, std::string_view text) {
  if (text == "inf" || text == "Infinity" || text == "infinity")
    return kInfinity;
  const auto value = parse_double(text);
  if (!value || !(*value > 0))
    return fail(ErrorCode::kUsage, fmt::format("expected a number above 0, or inf, found '{}'", text),
                std::string(flag));
  return *value;
}

struct RangeRatio {
  double input = 0, output = 0;
};

// 0.2, or {"input": 0.3, "output": 0.5} with one of them allowed to be missing.
Result<RangeRatio> parse_range_ratio(const std::string& text) {
  const auto wrong = [&] {
    return fail(ErrorCode::kUsage,
                fmt::format("expected a number in [0, 1), or {{\"input\": 0.3, \"output\": 0.5}}, found {}", text),
                "--random-range-ratio");
  };
  RangeRatio ratio;
  if (const auto one = parse_double(text)) {
    ratio = {*one, *one};
  } else {
    boost::system::error_code error;
    const auto json = boost::json::parse(text, error);
    if (error || !json.is_object())
      return wrong();
    for (const auto& [key, value] : json.get_object()) {
      boost::system::error_code not_a_number;
      const double number = value.to_number<double>(not_a_number);
      if (not_a_number || (key != "input" && key != "output"))
        return wrong();
      (key == "input" ? ratio.input : ratio.output) = number;
    }
  }
  for (const double r : {ratio.input, ratio.output})
    if (!(r >= 0 && r < 1))
      return wrong();
  return ratio;
}

// vLLM's: uniform over whole numbers in [length × (1 − r), length × (1 + r)].
LengthSpec around(int64_t length, double ratio) {
  LengthSpec spec;
  spec.low = spec.high = Tokens(length);
  if (ratio > 0) {
    spec.kind = LengthSpec::Kind::kUniform;
    const auto centre = static_cast<double>(length);
    spec.low = Tokens(std::max<int64_t>(1, static_cast<int64_t>(std::floor(centre * (1 - ratio)))));
    spec.high = Tokens(static_cast<int64_t>(std::ceil(centre * (1 + ratio))));
  }
  return spec;
}

ClassSpec one_class(int64_t prompt, int64_t output) {
  ClassSpec c;
  c.name = "all";
  c.prompt = around(prompt, 0);
  c.output = around(output, 0);
  return c;
}

// A shared document is the prefix, the question behind it is the request's own. Its length varies by half around the
// mean, which vLLM's suffix does not.
void share_prefix(ClassSpec& c, int64_t prefixes, int64_t prefix, int64_t suffix, BenchPlan& p) {
  c.prompt = around(prefix + suffix, 0);
  c.shared_documents = static_cast<int>(prefixes);
  c.question = Tokens(suffix);
  p.notes.push_back(
      fmt::format("shared prefixes: what stands behind them has {} tokens on average, between half and one and a half "
                  "of it (vLLM: always {})",
                  suffix, suffix));
}

Result<void> random_dataset(const BenchFlags& f, BenchPlan& p) {
  const RangeRatio ratio = TRY(parse_range_ratio(f.range_ratio));
  const int64_t input = f.input_len.value_or(f.random_input), output = f.output_len.value_or(f.random_output);
  ClassSpec c = one_class(input, output);
  c.prompt = around(input, ratio.input);
  c.output = around(output, ratio.output);
  if (f.random_prefix > 0) {
    if (ratio.input > 0)
      return not_here("--random-prefix-len", "a shared prefix before prompts of varying length", "a --workload file");
    share_prefix(c, 1, f.random_prefix, input, p);
  }
  p.spec.classes = {c};
  return {};
}

Result<void> prefix_repetition_dataset(const BenchFlags& f, BenchPlan& p) {
  if (f.prefixes > limits::kMaxSharedDocuments)
    return fail(ErrorCode::kUsage, fmt::format("at most {} prefixes", limits::kMaxSharedDocuments),
                "--prefix-repetition-num-prefixes");
  ClassSpec c = one_class(1, f.output_len.value_or(f.prefix_output));
  share_prefix(c, f.prefixes, f.prefix_len, f.input_len ? *f.input_len : f.suffix_len, p);
  p.spec.classes = {c};
  return {};
}

// The trace reader knows its formats by their headers; the labels of others are wired when it takes them.
Result<void> trace_dataset(const BenchFlags& f, BenchPlan& p) {
  if (f.dataset_path.empty())
    return fail(ErrorCode::kUsage, "a trace is a file: give its path", "--dataset-path");
  if (!f.self_timed)
    return not_here("--dataset-name " + f.dataset, "a trace's lengths at another rate", "--self-timed");
  const BenchFlags d;
  if (f.trace_timestamp != d.trace_timestamp || f.trace_input != d.trace_input || f.trace_output != d.trace_output ||
      f.trace_hash_ids != d.trace_hash_ids || f.trace_hash_block != d.trace_hash_block)
    return not_here("--timed-trace-label-…", "traces with labels of their own", "a trace with the usual labels");
  TraceSpec trace;
  trace.file = f.dataset_path;
  p.spec.trace = trace;
  p.spec.arrivals = ArrivalKind::kTrace;
  p.spec.classes = {one_class(1, 1)};  // lengths are the rows'
  return {};
}

struct Dataset {
  std::string_view name;
  Result<void> (*plan)(const BenchFlags&, BenchPlan&);  // null: not served
};
constexpr Dataset kDatasets[] = {
    {"random", random_dataset},
    {"prefix_repetition", prefix_repetition_dataset},
    {"timed_trace", trace_dataset},
    // One line each where workload/ learns to read them:
    {"sharegpt", nullptr},
    {"burstgpt", nullptr},
    {"custom", nullptr},
    {"sonnet", nullptr},
    {"hf", nullptr},
    {"random-mm", nullptr},
    {"spec_bench", nullptr},
    {"speed_bench", nullptr},
};

}  // namespace

Result<void> plan_workload(const BenchFlags& f, BenchPlan& p) {
  p.load.ignore_eos = true;  // lengths are synthetic, as vLLM's random data set has it
  if (!f.workload.empty()) {
    p.spec = TRY(load_workload(f.workload));
  } else {
    p.spec.name = "bench";
    const auto dataset = std::ranges::find(kDatasets, f.dataset, &Dataset::name);
    if (dataset == std::end(kDatasets) || !dataset->plan) {
      std::vector<std::string_view> served;
      for (const Dataset& d : kDatasets)
        if (d.plan)
          served.push_back(d.name);
      return fail(ErrorCode::kUsage,
                  fmt::format("{} data set '{}'; there are {}, and --workload FILE for a mix of your own",
                              dataset == std::end(kDatasets) ? "unknown" : "no reader for the", f.dataset,
                              fmt::join(served, ", ")),
                  "--dataset-name");
    }
    TRY(dataset->plan(f, p));
  }
  std::vector<std::string> items;  // one from the environment may hold several
  for (const std::string& text : f.targets)
    for (const std::string_view item : split(text, ' '))
      if (!item.empty())
        items.emplace_back(item);
  if (!items.empty()) {
    const TargetSet targets = TRY(parse_targets(items));
    for (ClassSpec& c : p.spec.classes)
      c.targets = targets;
  }
  return {};
}

namespace {

Result<void> plan_ramp(const BenchFlags& f, BenchPlan& p) {
  if (f.ramp_strategy.empty()) {
    if (f.ramp_start || f.ramp_end)
      return fail(ErrorCode::kUsage, "expected --ramp-up-strategy linear or exponential beside it",
                  f.ramp_start ? "--ramp-up-start-rps" : "--ramp-up-end-rps");
    return {};
  }
  if (f.ramp_strategy != "linear" && f.ramp_strategy != "exponential")
    return fail(ErrorCode::kUsage, fmt::format("expected linear or exponential, found '{}'", f.ramp_strategy),
                "--ramp-up-strategy");
  if (f.rate != "inf")
    return fail(ErrorCode::kUsage, "a ramp sets the rate: leave out --request-rate", "--ramp-up-strategy");
  if (!f.ramp_start || !f.ramp_end)
    return fail(ErrorCode::kUsage, "expected --ramp-up-start-rps and --ramp-up-end-rps beside it",
                "--ramp-up-strategy");
  const bool positive = *f.ramp_start >= 0 && (f.ramp_strategy == "linear" || *f.ramp_start > 0);
  if (!positive || !(*f.ramp_end >= *f.ramp_start) || !(*f.ramp_end > 0))
    return fail(ErrorCode::kUsage, "expected a start at or above 0 (exponential: above) and an end not below it",
                "--ramp-up-start-rps");
  p.report.ramp = RampReport{f.ramp_strategy, *f.ramp_start, *f.ramp_end};
  return not_here("--ramp-up-strategy", "a ramp", "--request-rate");  // wire: the workload's ramp
}

Result<void> plan_closed_loop(const BenchFlags& f, BenchPlan& p, bool timed) {
  if (timed && !f.concurrency)
    return fail(ErrorCode::kUsage, "expected --request-rate or --max-concurrency beside it", "--duration");
  p.spec.arrivals = ArrivalKind::kClosed;
  const auto prompts = static_cast<uint64_t>(f.prompts.value_or(kDefaultPrompts));
  const auto places = static_cast<uint64_t>(f.concurrency.value_or(static_cast<int64_t>(prompts)));
  if (places > limits::kMaxConcurrency)
    return fail(ErrorCode::kUsage,
                fmt::format("at most {} requests can be in flight at once: limit them with --max-concurrency",
                            limits::kMaxConcurrency),
                f.concurrency ? "--max-concurrency" : "--num-prompts");
  p.load.concurrency = p.spec.concurrency = static_cast<int>(places);
  p.schedule.requests = timed && !f.prompts ? places * kRequestsPerPlace : prompts;
  return {};
}

}  // namespace

Result<void> plan_arrivals(const BenchFlags& f, BenchPlan& p) {
  const double rate = TRY(number_or_inf("--request-rate", f.rate));
  p.report.burstiness = TRY(number_or_inf("--burstiness", f.burstiness));
  p.load.warm_up = TRY(parse_duration(f.warm_up));
  p.load.window = f.duration.empty() ? Nanos(0) : TRY(parse_duration(f.duration));
  const bool timed = p.load.window > Nanos(0), trace = p.spec.arrivals == ArrivalKind::kTrace;
  if (f.concurrency)
    p.report.concurrency = static_cast<int>(std::min<int64_t>(*f.concurrency, limits::kMaxConnections));
  TRY(plan_ramp(f, p));
  if (f.rate_normalize)
    return not_here("--rate-normalize", "rescaled arrivals", "the default, true Poisson");  // wire: the workload's
  if (!trace && std::isinf(rate))
    return plan_closed_loop(f, p, timed);
  if (!trace) {
    p.spec.arrivals = std::isinf(p.report.burstiness) ? ArrivalKind::kConstant : ArrivalKind::kPoisson;
    if (std::isfinite(p.report.burstiness) && p.report.burstiness != 1)
      return not_here("--burstiness", "gamma gaps", "1 (Poisson) or inf (constant)");  // wire: the workload's
    p.report.rate = p.spec.rate = rate;
  }
  p.load.max_in_flight = p.report.concurrency.value_or(0);
  // Arrivals go on behind the window while its requests end, so that they meet the same load.
  if (timed)
    p.schedule.duration = p.load.warm_up + p.load.window + std::max(p.load.window / 2, seconds(5));
  if (f.prompts || (!timed && !trace))
    p.schedule.requests = static_cast<uint64_t>(f.prompts.value_or(kDefaultPrompts));
  return {};
}

}  // namespace goodput
