// `goodput bench --json`: vLLM's flat keys (summary values in ms, vLLM's meaning: from the send, failures left out, the
// whole run as the window), and everything of ours in one object under "goodput".
#include <boost/json.hpp>

#include <algorithm>
#include <numeric>

#include "load/job.h"
#include "report/bench_table.h"
#include "store/point.h"

namespace goodput {
namespace {

namespace json = boost::json;

void add_latency(json::object& o, const std::string& name, const std::vector<double>& sorted) {
  const auto put = [&](const std::string& key, const std::optional<double>& v) {
    o[key + "_" + name + "_ms"] = v ? json::value(*v) : json::value(nullptr);
  };
  std::optional<double> mean;
  if (!sorted.empty())
    mean = std::accumulate(sorted.begin(), sorted.end(), 0.0) / static_cast<double>(sorted.size());
  put("mean", mean);
  put("median", percentile(sorted, 0.5));
  put("p99", sorted.size() >= min_samples(0.99) ? percentile(sorted, 0.99) : std::nullopt);
}

json::value or_null(const std::optional<double>& v) { return v ? json::value(*v) : json::value(nullptr); }

json::object own_part(const BenchReport& r) {
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
  o["workload_hash"] = r.workload_hash;
  o["interrupted"] = r.load.interrupted;
  o["connections"] = r.load.connections;
  o["stale_connection_retries"] = r.load.stale_retries;
  o["prompt_tokens_exact"] = r.exact_prompts;
  o["prompt_tokens_asked_mean"] = or_null(r.prompt_asked);
  o["prompt_tokens_seen_mean"] = or_null(r.prompt_seen);
  json::array problems;
  for (const Problem& p : r.load.problems)
    problems.push_back({{"what", p.what}, {"count", p.count}});
  o["problems"] = std::move(problems);
  return o;
}

}  // namespace

std::string bench_json(const BenchReport& r) {
  const BenchTotals t = bench_totals(r);
  const auto rate = [&](double n) { return t.duration_s > 0 ? json::value(n / t.duration_s) : json::value(nullptr); };
  const bool targets =
      std::any_of(r.rules.begin(), r.rules.end(), [](const ClassRule& c) { return !c.targets.empty(); });
  json::object o{{"schema", "goodput.bench/1"},
                 {"backend", r.endpoint == "chat" ? "openai-chat" : "openai"},
                 {"endpoint_type", r.endpoint == "chat" ? "openai-chat" : "openai"},
                 {"model_id", r.load.model},
                 {"num_prompts", t.completed + t.failed},
                 {"request_rate", r.rate ? json::value(*r.rate) : json::value("inf")},
                 {"max_concurrency", r.concurrency ? json::value(*r.concurrency) : json::value(nullptr)},
                 {"duration", t.duration_s},
                 {"completed", t.completed},
                 {"failed", t.failed},
                 {"total_input_tokens", t.input_tokens},
                 {"total_output_tokens", t.output_tokens},
                 {"request_throughput", rate(static_cast<double>(t.completed))},
                 {"request_goodput", targets ? rate(static_cast<double>(t.good)) : json::value(nullptr)},
                 {"output_throughput", rate(static_cast<double>(t.output_tokens))},
                 {"total_token_throughput", rate(static_cast<double>(t.input_tokens + t.output_tokens))},
                 {"max_concurrent_requests", t.peak_concurrent}};
  add_latency(o, "ttft", t.ttft_ms);
  add_latency(o, "tpot", t.tpot_ms);
  add_latency(o, "itl", t.itl_ms);
  add_latency(o, "e2el", t.e2el_ms);
  add_latency(o, "ttft_from_sched", t.ttft_from_schedule_ms);
  o["goodput"] = own_part(r);
  return json::serialize(o);
}

}  // namespace goodput
