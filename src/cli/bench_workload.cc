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

// vLLM's prefixes: lengths add, and the first request of each prefix meets a cold cache.
void share_prefix(ClassSpec& c, int64_t prefixes, int64_t prefix) {
  c.prefix_groups = static_cast<int>(prefixes);
  c.prefix_len = Tokens(prefix);
}

Result<void> random_dataset(const BenchFlags& f, BenchPlan& p) {
  const RangeRatio ratio = TRY(parse_range_ratio(f.range_ratio));
  ClassSpec c = one_class(1, 1);
  c.prompt = around(f.input_len.value_or(f.random_input), ratio.input);
  c.output = around(f.output_len.value_or(f.random_output), ratio.output);
  if (f.random_prefix > 0)
    share_prefix(c, 1, f.random_prefix);
  p.spec.classes = {c};
  return {};
}

Result<void> prefix_repetition_dataset(const BenchFlags& f, BenchPlan& p) {
  ClassSpec c = one_class(f.input_len.value_or(f.suffix_len), f.output_len.value_or(f.prefix_output));
  share_prefix(c, f.prefixes, f.prefix_len);
  p.spec.classes = {c};
  return {};
}

// Requests of a file: at its own times (--self-timed), or at the arrivals that the other flags say.
Result<void> file_dataset(const BenchFlags& f, BenchPlan& p, TraceFormat format) {
  if (f.dataset_path.empty())
    return fail(ErrorCode::kUsage, fmt::format("'{}' is a file: give its path", f.dataset), "--dataset-path");
  TraceSpec trace;
  trace.file = f.dataset_path;
  trace.format = format;
  trace.requests_only = !f.self_timed;
  if (format == TraceFormat::kTimedTrace) {
    if (!(f.trace_multiplier > 0))
      return fail(ErrorCode::kUsage, "expected seconds above 0", "--timed-trace-sec-multiplier");
    trace.time_unit = from_seconds(f.trace_multiplier);
    trace.block_tokens = Tokens(f.trace_hash_block);
    trace.labels = {f.trace_timestamp, f.trace_input, f.trace_output, f.trace_hash_ids};
  }
  p.spec.trace = trace;
  if (f.self_timed)
    p.spec.arrivals = ArrivalKind::kTrace;
  // What the file does not say.
  p.spec.classes = {one_class(f.input_len.value_or(f.random_input), f.output_len.value_or(f.random_output))};
  return {};
}

// Real texts end where the model ends them, unless the user says otherwise.
Result<void> text_dataset(const BenchFlags& f, BenchPlan& p, TraceFormat format) {
  p.load.ignore_eos = f.ignore_eos;
  if (f.sharegpt_output)
    return not_here("--sharegpt-output-len", "another length than the file's", "--output-len for rows without one");
  return file_dataset(f, p, format);
}

struct Dataset {
  std::string_view name;
  Result<void> (*plan)(const BenchFlags&, BenchPlan&);  // null: not served
};
template <TraceFormat kFormat>
Result<void> lengths_of(const BenchFlags& f, BenchPlan& p) {
  return file_dataset(f, p, kFormat);
}
template <TraceFormat kFormat>
Result<void> texts_of(const BenchFlags& f, BenchPlan& p) {
  return text_dataset(f, p, kFormat);
}
constexpr Dataset kDatasets[] = {
    {"random", random_dataset},
    {"prefix_repetition", prefix_repetition_dataset},
    {"sharegpt", texts_of<TraceFormat::kShareGpt>},
    {"custom", texts_of<TraceFormat::kVllmCustom>},
    {"burstgpt", lengths_of<TraceFormat::kBurstGpt>},
    {"timed_trace", lengths_of<TraceFormat::kTimedTrace>},
    // Ours: known by their columns, or by name.
    {"trace", lengths_of<TraceFormat::kAuto>},
    {"azure", lengths_of<TraceFormat::kAzure>},
    {"mooncake", lengths_of<TraceFormat::kMooncake>},
    {"bailian", lengths_of<TraceFormat::kBailian>},
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
  // vLLM's progress is the request's index, not the time.
  p.spec.ramp = RampSpec{f.ramp_strategy == "linear" ? RampSpec::Shape::kLinear : RampSpec::Shape::kExponential,
                         RampSpec::By::kIndex, *f.ramp_start, *f.ramp_end};
  return {};
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
  if (!trace && std::isinf(rate) && !p.spec.ramp)
    return plan_closed_loop(f, p, timed);
  if (!trace) {
    const double shape = p.report.burstiness;
    p.spec.arrivals = std::isinf(shape) ? ArrivalKind::kConstant
                      : shape == 1      ? ArrivalKind::kPoisson
                                        : ArrivalKind::kGamma;
    if (p.spec.arrivals == ArrivalKind::kGamma)
      p.spec.burstiness = shape;
    p.spec.rescale = f.rate_normalize;
    if (!p.spec.ramp)
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
