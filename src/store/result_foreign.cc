// The readers of other tools' results: which key holds what, by which definition, in which unit. One table per tool
// where the keys repeat. Sources: docs/method.md, "Other tools' definitions". Pure; any thread.
#include <array>

#include <fmt/format.h>

#include "metrics/definitions.h"
#include "store/result_json_private.h"

namespace goodput::result_json {
namespace {

constexpr std::string_view kLinear = "linear percentile";

struct Latency {
  std::string_view key, metric, definition;
};

// "{mean,median,pNN}_{key}_ms", flat.
void add_flat(ResultRun& run, dom::element o, const Latency& l) {
  add(run, fmt::format("mean_{}", l.metric), l.definition, number_at(o, fmt::format("mean_{}_ms", l.key)));
  add(run, fmt::format("p50_{}", l.metric), with_rule(l.definition, kLinear),
      number_at(o, fmt::format("median_{}_ms", l.key)));
  for (const int p : {90, 95, 99})
    add(run, fmt::format("p{}_{}", p, l.metric), with_rule(l.definition, kLinear),
        number_at(o, fmt::format("p{}_{}_ms", p, l.key)));
}

void add_rates(ResultRun& run, dom::element o, std::string_view total_key) {
  add(run, "request_throughput", tags::kWholeRun, number_at(o, "request_throughput"));
  add(run, "output_throughput", tags::kWholeRun, number_at(o, "output_throughput"));
  add(run, "total_throughput", tags::kWholeRun, number_at(o, total_key));
  add(run, "completed", "requests", number_at(o, "completed"));
}

std::vector<double> seconds_to_ms(std::optional<dom::array> array) {
  std::vector<double> values;
  if (!array)
    return values;
  for (const dom::element e : *array) {
    if (values.size() >= limits::kMaxResultRequests)
      break;
    const auto v = number(e);
    values.push_back(v ? *v * 1e3 : kNone);
  }
  return values;
}

// Σ of each request's gaps, ms.
std::vector<double> sums_of_gaps(std::optional<dom::array> lists) {
  std::vector<double> sums;
  if (!lists)
    return sums;
  for (const dom::element e : *lists) {
    if (sums.size() >= limits::kMaxResultRequests)
      break;
    dom::array gaps;
    double sum = 0;
    if (e.get(gaps))
      sum = kNone;
    else
      for (const dom::element gap : gaps)
        sum += number(gap).value_or(kNone) * 1e3;
    sums.push_back(sum);
  }
  return sums;
}

std::vector<double> plain_numbers(std::optional<dom::array> array) {
  std::vector<double> values = seconds_to_ms(array);
  for (double& v : values)
    v *= 1e-3;
  return values;
}

// Which requests failed: those with a text in `errors`, and those whose first token never came (0 there).
void drop_failed(dom::element o, std::vector<double>& values) {
  for (double& v : values)
    if (v == 0)
      v = kNone;
  const auto errors = array_at(o, "errors");
  if (!errors)
    return;
  size_t i = 0;
  for (const dom::element e : *errors) {
    std::string_view text;
    if (i < values.size() && !e.get(text) && !text.empty())
      values[i] = kNone;
    ++i;
  }
}

std::string load_label(dom::element o) {
  std::string rate = text_at(o, "request_rate");
  if (rate.empty())
    if (const auto v = number_at(o, "request_rate"))
      rate = fmt::format("{:g}", *v);
  const auto cap = number_at(o, "max_concurrency");
  std::string label = rate.empty() ? "" : "rate " + rate;
  if (cap)
    label += fmt::format("{}concurrency {:g}", label.empty() ? "" : ", ", *cap);
  return label;
}

}  // namespace

void add_samples(ResultRun& run, std::string metric, std::string_view definition, std::vector<double> values) {
  for (const double v : values)
    if (!std::isnan(v)) {
      run.samples.push_back({std::move(metric), std::string(definition), std::move(values)});
      return;
    }
}

// `bench serve --save-result`: the summary in ms; --save-detailed adds lists per request in seconds.
ResultRun read_vllm(dom::element o) {
  static constexpr Latency kLatencies[] = {{"ttft", "ttft", tags::kTtftChunk},
                                           {"tpot", "tpot", tags::kTpotChunk},
                                           {"itl", "itl", tags::kGapChunk},
                                           {"e2el", "e2el", tags::kE2eToken}};
  ResultRun run;
  run.label = load_label(o);
  for (const Latency& l : kLatencies)
    add_flat(run, o, l);
  add_rates(run, o, "total_token_throughput");
  add(run, "goodput", tags::kWholeRun, number_at(o, "request_goodput"));
  auto failed = number_at(o, "failed");
  const auto asked = number_at(o, "num_prompts"), completed = number_at(o, "completed");
  if (!failed && asked && completed && *asked >= *completed)
    failed = *asked - *completed;
  add(run, "failed", "requests", failed);

  std::vector<double> ttft = seconds_to_ms(array_at(o, "ttfts"));
  if (ttft.empty())
    return run;
  drop_failed(o, ttft);
  const std::vector<double> gaps = sums_of_gaps(array_at(o, "itls")),
                            tokens = plain_numbers(array_at(o, "output_lens"));
  std::vector<double> latency(ttft.size(), kNone), tpot(ttft.size(), kNone);
  for (size_t i = 0; i < ttft.size() && i < gaps.size(); ++i) {
    latency[i] = ttft[i] + gaps[i];  // its latency ends at the last chunk, and its gaps lie between chunks
    if (i < tokens.size() && tokens[i] > 1)
      tpot[i] = std::isnan(ttft[i]) ? kNone : gaps[i] / (tokens[i] - 1);
  }
  add_samples(run, "ttft", tags::kTtftChunk, std::move(ttft));
  add_samples(run, "tpot", tags::kTpotChunk, std::move(tpot));
  add_samples(run, "e2el", tags::kE2eToken, std::move(latency));
  return run;
}

// One line of bench_serving's --output-file.
ResultRun read_sglang(dom::element o) {
  static constexpr Latency kLatencies[] = {{"ttft", "ttft", tags::kTtftText},
                                           {"tpot", "tpot", tags::kTpotClosed},
                                           {"itl", "itl", tags::kGapText},
                                           {"e2e_latency", "e2el", tags::kE2eClosed}};
  ResultRun run;
  run.label = load_label(o);
  for (const Latency& l : kLatencies)
    add_flat(run, o, l);
  add_rates(run, o, "total_throughput");
  std::vector<double> ttft = seconds_to_ms(array_at(o, "ttfts"));
  drop_failed(o, ttft);
  add_samples(run, "ttft", tags::kTtftText, std::move(ttft));
  return run;
}

// An element of `benchmarks[]`.
ResultRun read_guidellm_benchmark(dom::element o) {
  struct Row {
    std::string_view key, metric, definition;
    double scale;  // to ms
  };
  static constexpr Row kRows[] = {{"time_to_first_token_ms", "ttft", tags::kTtftText, 1},
                                  {"inter_token_latency_ms", "tpot", tags::kTpotText, 1},
                                  {"time_per_output_token_ms", "tpot", tags::kTpotWithTtft, 1},
                                  {"request_latency", "e2el", tags::kE2eClosed, 1000}};
  ResultRun run;
  const auto scaled = [](std::optional<double> v, double by) { return v ? std::optional(*v * by) : std::nullopt; };
  const auto metrics = at(o, "metrics");
  for (const Row& row : kRows) {
    const auto ok = at(at(metrics, row.key), "successful");
    if (number_at(ok, "count") == 0)
      continue;  // its figures of nothing are zeros
    add(run, fmt::format("mean_{}", row.metric), row.definition, scaled(number_at(ok, "mean"), row.scale));
    for (const int p : {50, 90, 95, 99})
      add(run, fmt::format("p{}_{}", p, row.metric), row.definition,
          scaled(number_at(at(ok, "percentiles"), fmt::format("p{}", p)), row.scale));
  }
  const auto rate = [&](std::string_view key) { return number_at(at(at(metrics, key), "successful"), "mean"); };
  add(run, "request_throughput", "guidellm: mean of rates", rate("requests_per_second"));
  add(run, "output_throughput", "guidellm: mean of rates", rate("output_tokens_per_second"));
  auto totals = at(metrics, "request_totals");
  if (!totals)
    totals = at(o, "request_totals");
  add(run, "completed", "requests", number_at(totals, "successful"));
  const auto errored = number_at(totals, "errored"), incomplete = number_at(totals, "incomplete");
  if (errored || incomplete)
    add(run, "failed", "requests", errored.value_or(0) + incomplete.value_or(0));

  const auto config = at(o, "config");
  const auto strategy = config ? at(config, "strategy") : at(at(o, "scheduler"), "strategy");
  run.label = text_at(strategy, "type_");
  for (const std::string_view key : {"rate", "streams", "max_concurrency"})
    if (const auto v = number_at(strategy, key))
      run.label += fmt::format("{}{} {:g}", run.label.empty() ? "" : ", ", key, *v);

  if (const auto requests = array_at(at(o, "requests"), "successful"))
    for (const Row& row : kRows) {
      std::vector<double> values;
      for (const dom::element r : *requests) {
        if (values.size() >= limits::kMaxResultRequests)
          break;
        values.push_back(scaled(number_at(r, row.key), row.scale).value_or(kNone));
      }
      add_samples(run, std::string(row.metric), row.definition, std::move(values));
    }
  return run;
}

namespace {

struct AiperfRow {
  std::string_view key, metric, definition;
};
constexpr AiperfRow kAiperfRows[] = {{"time_to_first_token", "ttft", tags::kTtftText},
                                     {"inter_token_latency", "tpot", tags::kTpotText},
                                     {"inter_chunk_latency", "itl", tags::kGapText},
                                     {"request_latency", "e2el", tags::kE2eToken}};

// Milliseconds per unit of an AIPerf metric; nullopt: a unit that is no time.
std::optional<double> ms_per(std::string_view unit) {
  struct Unit {
    std::string_view name;
    double ms;
  };
  static constexpr Unit kUnits[] = {{"ns", 1e-6}, {"us", 1e-3}, {"ms", 1}, {"s", 1e3}, {"sec", 1e3}, {"seconds", 1e3}};
  for (const Unit& u : kUnits)
    if (u.name == unit)
      return u.ms;
  return std::nullopt;
}

}  // namespace

// profile_export_aiperf.json.
ResultRun read_aiperf(dom::element o) {
  ResultRun run;
  for (const AiperfRow& row : kAiperfRows) {
    const auto metric = at(o, row.key);
    const auto scale = ms_per(text_at(metric, "unit"));
    if (!metric || !scale)
      continue;
    const auto put = [&](std::string name, const std::string& definition, std::string_view key) {
      const auto v = number_at(metric, key);
      add(run, std::move(name), definition, v ? std::optional(*v * *scale) : std::nullopt);
    };
    put(fmt::format("mean_{}", row.metric), std::string(row.definition), "avg");
    for (const int p : {50, 90, 95, 99})
      put(fmt::format("p{}_{}", p, row.metric), with_rule(row.definition, kLinear), fmt::format("p{}", p));
  }
  const auto whole = [&](std::string_view key) { return number_at(at(o, key), "avg"); };
  add(run, "request_throughput", tags::kWholeRun, whole("request_throughput"));
  add(run, "output_throughput", tags::kWholeRun, whole("output_token_throughput"));
  add(run, "goodput", tags::kWholeRun, whole("goodput"));
  add(run, "attainment", "good / requests, errors counted", whole("good_request_fraction"));
  add(run, "completed", "requests", whole("request_count"));
  if (const auto failed = whole("error_request_count"))
    add(run, "failed", "requests", failed);
  else if (whole("request_count"))
    add(run, "failed", "requests", 0.0);  // it leaves the metric out when nothing failed
  return run;
}

void AiperfRecords::add(dom::element line) {
  if (ttft_.size() >= limits::kMaxResultRequests)
    return;
  const auto phase = text_at(at(line, "metadata"), "benchmark_phase");
  if (phase == "warmup")
    return;
  const auto error = at(line, "error");
  if (error && !error->is_null()) {
    ++failed_;
    return;
  }
  ++completed_;
  const auto metrics = at(line, "metrics");
  const auto value = [&](std::string_view key) {
    const auto metric = at(metrics, key);
    const auto scale = ms_per(text_at(metric, "unit"));
    const auto v = number_at(metric, "value");
    return v && scale ? *v * *scale : kNone;
  };
  ttft_.push_back(value("time_to_first_token"));
  tpot_.push_back(value("inter_token_latency"));
  e2el_.push_back(value("request_latency"));
}

ResultRun AiperfRecords::take() {
  ResultRun run;
  result_json::add(run, "completed", "requests", static_cast<double>(completed_));
  result_json::add(run, "failed", "requests", static_cast<double>(failed_));
  add_samples(run, "ttft", tags::kTtftText, std::move(ttft_));
  add_samples(run, "tpot", tags::kTpotText, std::move(tpot_));
  add_samples(run, "e2el", tags::kE2eToken, std::move(e2el_));
  return run;
}

}  // namespace goodput::result_json
