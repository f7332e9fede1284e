// vLLM's keys in vLLM's order (vllm/benchmarks/serve.py), then ours. Metadata overrides what stands before it and is
// overridden by what comes after, as there.
#include "report/bench_json.h"

#include <cmath>

#include <fmt/format.h>
#include <boost/json.hpp>

#include "metrics/request_metrics.h"
#include "report/python_json.h"
#include "store/point.h"

namespace goodput {
namespace {

namespace json = boost::json;

json::value or_null(const std::optional<double>& v) { return v ? json::value(*v) : json::value(nullptr); }
json::value or_null(const std::string& text) { return text.empty() ? json::value(nullptr) : json::value(text); }

// JSON has no infinity; vLLM writes the word.
json::value rate_value(const std::optional<double>& rate) {
  return rate && std::isfinite(*rate) ? json::value(*rate) : json::value("inf");
}

void add_setup(json::object& o, const BenchReport& r) {
  o["date"] = r.date;
  o["endpoint_type"] = r.backend;
  o["backend"] = r.backend;
  o["label"] = or_null(r.label);
  o["model_id"] = r.model_name();
  o["tokenizer_id"] = r.tokenizer.empty() ? r.model_name() : r.tokenizer;
  o["num_prompts"] = r.num_prompts;
  for (const auto& [key, value] : r.metadata)
    o[key] = value;
  o["request_rate"] = rate_value(r.rate);
  o["burstiness"] = rate_value(r.burstiness);
  o["max_concurrency"] = r.concurrency ? json::value(*r.concurrency) : json::value(nullptr);
  if (r.ramp) {
    o["ramp_up_strategy"] = r.ramp->strategy;
    o["ramp_up_start_rps"] = r.ramp->start_rps;
    o["ramp_up_end_rps"] = r.ramp->end_rps;
  }
}

void add_totals(json::object& o, const BenchReport& r, const BenchTotals& t) {
  const auto rate = [&](auto n) { return or_null(t.per_second(static_cast<double>(n))); };
  o["duration"] = t.duration_s;
  o["completed"] = t.completed;
  o["failed"] = t.failed;
  o["total_input_tokens"] = t.input_tokens;
  o["total_output_tokens"] = t.output_tokens;
  o["request_throughput"] = rate(t.completed);
  o["request_goodput"] = r.has_targets() ? rate(t.good) : json::value(nullptr);
  o["output_throughput"] = rate(t.output_tokens);
  o["total_token_throughput"] = rate(t.input_tokens + t.output_tokens);
}

void add_latencies(json::object& o, const BenchReport& r, const BenchTotals& t) {
  for (const BenchMetricRow& row : bench_metric_rows()) {
    if (std::ranges::find(r.metrics, row.metric) == r.metrics.end())
      continue;
    const auto& values = t.of(row.metric);
    const auto put = [&](std::string_view statistic, const std::optional<double>& v) {
      o[fmt::format("{}_{}_ms", statistic, row.key)] = or_null(v);
    };
    put("mean", mean_of(values));
    put("median", linear_percentile(values, 50));
    put("std", deviation_of(values));
    for (const double p : r.percents)
      put("p" + percent_word(p), linear_percentile(values, p));
  }
}

std::string error_text(const RequestRecord& r) {
  if (r.outcome == Outcome::kOk)
    return "";
  std::string text(to_string(r.outcome));
  if (r.error != ErrorKind::kNone)
    text += fmt::format(": {}", to_string(r.error));
  if (r.http_status != 0 && r.http_status != 200)
    text += fmt::format(" {}", r.http_status);
  return text;
}

// Seconds, one entry for each request of the schedule. What vLLM fills with 0 or "" and cannot be known is null.
void add_details(json::object& o, const BenchReport& r) {
  json::array input_lens, output_lens, ttfts, itls, starts, queue_times, latencies, texts, errors;
  const auto in_s = [](const std::optional<Nanos>& v) {
    return v ? json::value(to_seconds(*v)) : json::value(nullptr);
  };
  for (const RequestRecord& q : r.load.records) {
    const bool ok = q.outcome == Outcome::kOk;
    const int asked = q.index < r.asked_prompt.size() ? r.asked_prompt[q.index] : 0;
    input_lens.push_back(q.prompt_tokens ? q.prompt_tokens->count() : asked);
    output_lens.push_back(ok && q.output_tokens ? q.output_tokens->count() : 0);
    ttfts.push_back(ok ? in_s(ttft_service(q)) : nullptr);
    json::array gaps;
    if (ok) {
      for (const double gap : icl_gaps_ns(q))
        gaps.push_back(gap * 1e-9);
    }
    itls.push_back(std::move(gaps));
    starts.push_back(q.dispatched ? json::value(to_seconds(*q.dispatched - TimePoint())) : json::value(nullptr));
    queue_times.push_back(in_s(dispatch_delay(q)));
    const auto latency = ok ? bench_e2el_ms(q) : std::nullopt;
    latencies.push_back(latency ? json::value(*latency * 1e-3) : json::value(nullptr));
    texts.push_back(nullptr);
    errors.push_back(json::value(error_text(q)));
  }
  o["input_lens"] = std::move(input_lens);
  o["output_lens"] = std::move(output_lens);
  o["ttfts"] = std::move(ttfts);
  o["itls"] = std::move(itls);
  o["start_times"] = std::move(starts);
  o["queue_times"] = std::move(queue_times);
  o["latencies"] = std::move(latencies);
  o["generated_texts"] = std::move(texts);
  o["errors"] = std::move(errors);
}

json::object own_part(const BenchReport& r, const BenchTotals& t) {
  Point point;
  point.phase = "bench";
  point.executor = "remote";
  point.rate = r.rate.value_or(0);
  point.seed = r.seed;
  point.schedule_hash = r.schedule_hash;
  point.summary = r.summary;
  point.verdict = r.verdict;
  point.audit = r.load.audit;
  json::object o = json::parse(to_json(point)).get_object();
  o.erase("settings");  // of a server that is not ours: unknown
  if (!r.rate)
    o["rate"] = nullptr;
  o["base_url"] = r.base_url;
  o["endpoint"] = r.endpoint;
  o["workload_hash"] = r.workload_hash;
  o["interrupted"] = r.load.interrupted;
  o["connections"] = r.load.connections;
  o["stale_connection_retries"] = r.load.stale_retries;
  o["most_in_flight"] = t.most_in_flight;
  o["distinct_prompts"] = r.distinct_prompts;
  o["prompt_tokens_exact"] = r.exact_prompts;
  o["prompt_tokens_asked_mean"] = or_null(r.prompt_asked);
  o["prompt_tokens_seen_mean"] = or_null(r.prompt_seen);
  o["floor"] = or_null(r.floor);
  o["floor_verdict"] = r.floor ? json::value(to_string(floor_verdict(r.summary, *r.floor))) : json::value(nullptr);
  json::array problems;
  for (const Problem& p : r.load.problems)
    problems.push_back({{"what", p.what}, {"count", p.count}});
  o["problems"] = std::move(problems);
  return o;
}

}  // namespace

std::string bench_json(const BenchReport& r, bool detailed) {
  const BenchTotals t = bench_totals(r);
  json::object o{{"schema", "goodput.bench/1"}};
  add_setup(o, r);
  add_totals(o, r, t);
  if (detailed)
    add_details(o, r);
  o["max_output_tokens_per_s"] = or_null(t.peak_tokens_per_s);
  o["max_concurrent_requests"] = t.peak_concurrent ? json::value(*t.peak_concurrent) : json::value(nullptr);
  o["rtfx"] = nullptr;  // of audio only
  add_latencies(o, r, t);
  o["goodput"] = own_part(r, t);
  return python_json(json::serialize(o));
}

std::string bench_file_name(const BenchReport& r) {
  const std::string model = r.model_name();
  const std::string rate = r.ramp   ? fmt::format("ramp-up-{}-{}qps-{}", r.ramp->strategy,
                                                  percent_word(r.ramp->start_rps), percent_word(r.ramp->end_rps))
                           : r.rate ? python_float(*r.rate)
                                    : std::string("inf");
  return fmt::format("{}-{}qps{}-{}-{}.json", r.label.empty() ? r.backend : r.label, rate,
                     r.concurrency ? fmt::format("-concurrency{}", *r.concurrency) : "",
                     model.substr(model.rfind('/') + 1), r.date);
}

}  // namespace goodput
