// Meanings: vLLM's docs/design/metrics.md and v1/metrics/{stats,loggers}.py, as noted in docs/method.md.
#include "serve/server_metrics.h"

#include <algorithm>
#include <iterator>

namespace goodput {
namespace {

enum Row : size_t {
  kRunning,
  kWaiting,
  kKvUsage,
  kPreemptions,
  kPrefixQueries,
  kPrefixHits,
  kPromptTokens,
  kGenerationTokens,
  kSuccess,
  kIterationTokens,
  kTtft,
  kItl,
  kTpot,
  kE2e,
  kQueueTime,
  kPrefillTime,
  kDecodeTime,
  kInferenceTime,
  kRequestPromptTokens,
  kRequestGenerationTokens,
  kRequestMaxTokens,
  kTokenizing,
  kConnections,
  kRetained,
  kTokenizationSeconds,
  kAnswers,
  kDraining,
  kRows,
};

constexpr MetricRow kTable[] = {
    {"vllm:num_requests_running", "gauge", "Requests admitted to the running batch"},
    {"vllm:num_requests_waiting", "gauge", "Requests waiting to be admitted, preempted and tokenizing ones included"},
    {"vllm:kv_cache_usage_perc", "gauge", "Share of KV blocks owned by running requests, 0 to 1"},
    {"vllm:num_preemptions_total", "counter", "Preemptions of running requests"},
    {"vllm:prefix_cache_queries_total", "counter",
     "Prompt tokens looked up in the prefix cache, first admissions only"},
    {"vllm:prefix_cache_hits_total", "counter", "Of them, tokens found"},
    {"vllm:prompt_tokens_total", "counter",
     "Prompt tokens of requests that reached their first token, cached included"},
    {"vllm:generation_tokens_total", "counter", "Tokens generated"},
    {"vllm:request_success_total", "counter", "Requests that ended, by reason"},
    {"vllm:iteration_tokens_total", "histogram", "Tokens computed in one iteration, prefill and decode"},
    {"vllm:time_to_first_token_seconds", "histogram", "Arrival to the end of the iteration with the first token"},
    {"vllm:inter_token_latency_seconds", "histogram", "Between successive iterations with output of a request"},
    {"vllm:request_time_per_output_token_seconds", "histogram", "Per request: decode time / (tokens - 1)"},
    {"vllm:e2e_request_latency_seconds", "histogram", "Arrival to end"},
    {"vllm:request_queue_time_seconds", "histogram", "Queued to first scheduled"},
    {"vllm:request_prefill_time_seconds", "histogram", "First scheduled to first token, preemption included"},
    {"vllm:request_decode_time_seconds", "histogram", "First token to last token, preemption included"},
    {"vllm:request_inference_time_seconds", "histogram", "First scheduled to last token"},
    {"vllm:request_prompt_tokens", "histogram", "Prompt tokens per request"},
    {"vllm:request_generation_tokens", "histogram", "Generated tokens per request"},
    {"vllm:request_params_max_tokens", "histogram", "The max_tokens that requests asked for"},
    {"goodput:num_requests_tokenizing", "gauge", "Requests being tokenized"},
    {"goodput:http_connections", "gauge", "Open HTTP connections"},
    {"goodput:kv_cache_retained_perc", "gauge", "Share of KV blocks kept only for reuse, 0 to 1"},
    {"goodput:tokenization_seconds_total", "counter", "Time spent on templates and tokenizing"},
    {"goodput:http_answers_total", "counter", "Answers to generation requests, by outcome"},
    {"goodput:draining", "gauge", "1 while the server is shutting down"},
};
static_assert(std::size(kTable) == kRows);

constexpr double kTtftBounds[] = {.001, .005, .01, .02, .04, .06, .08, .1, .25, .5,  .75,
                                  1,    2.5,  5,   7.5, 10,  20,  40,  80, 160, 640, 2560};
// vLLM's begin at 10 ms, which says nothing about small models.
constexpr double kItlBounds[] = {.0005, .001, .0025, .005, .01, .025, .05, .075, .1, .15, .2, .3,
                                 .4,    .5,   .75,   1,    2.5, 5,    7.5, 10,   20, 40,  80};
constexpr double kLatencyBounds[] = {.3, .5, .8, 1,  1.5, 2,   2.5, 5,   10,   15,  20,
                                     30, 40, 50, 60, 120, 240, 480, 960, 1920, 7680};
constexpr double kTokenBounds[] = {1,    2,    5,    10,    20,    50,    100,    200,    500,
                                   1000, 2000, 5000, 10000, 20000, 50000, 100000, 200000, 500000};
constexpr double kIterationBounds[] = {1, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768};

constexpr FinishReason kReasons[] = {FinishReason::kStop, FinishReason::kLength, FinishReason::kAbort,
                                     FinishReason::kError};
// vLLM's words for them; the scheduler's own to_string may grow others.
constexpr std::string_view kReasonLabels[] = {"stop", "length", "abort", "error"};

}  // namespace

std::span<const MetricRow> metric_rows() { return kTable; }

StepCounter::StepCounter(StepSink* next) : next_(next) { static_assert(std::size(kIterationBounds) == kBuckets); }

void StepCounter::write(const StepRecord& step) {
  const int64_t tokens = int64_t{step.shape.prefill.count()} + step.shape.decodes;
  if (tokens > 0) {
    const auto* at =
        std::lower_bound(std::begin(kIterationBounds), std::end(kIterationBounds), static_cast<double>(tokens));
    counts_[static_cast<size_t>(at - std::begin(kIterationBounds))].fetch_add(1, std::memory_order_relaxed);
    sum_.fetch_add(static_cast<uint64_t>(tokens), std::memory_order_relaxed);
  }
  if (next_)
    next_->write(step);
}

Histogram StepCounter::tokens_per_iteration() const {
  Histogram histogram{kIterationBounds};
  for (size_t i = 0; i < counts_.size(); ++i)
    histogram.add(i, counts_[i].load(std::memory_order_relaxed));
  histogram.add_sum(static_cast<double>(sum_.load(std::memory_order_relaxed)));
  return histogram;
}

ServerMetrics::ServerMetrics()
    : ttft_(kTtftBounds),
      itl_(kItlBounds),
      tpot_(kItlBounds),
      e2e_(kLatencyBounds),
      queue_(kLatencyBounds),
      prefill_(kLatencyBounds),
      decode_(kLatencyBounds),
      inference_(kLatencyBounds),
      request_prompt_(kTokenBounds),
      request_generation_(kTokenBounds),
      request_max_tokens_(kTokenBounds) {}

void ServerMetrics::first_token(Tokens prompt, Nanos since_arrival) {
  prompt_tokens_ += static_cast<uint64_t>(prompt.count());
  ++generation_tokens_;
  ttft_.observe(to_seconds(since_arrival));
}

void ServerMetrics::next_token(Nanos since_last) {
  ++generation_tokens_;
  itl_.observe(to_seconds(since_last));
}

void ServerMetrics::ended(FinishReason reason, const ServerTimes& times, TimePoint at, Tokens prompt, Tokens generated,
                          std::optional<Tokens> max_tokens) {
  for (size_t i = 0; i < std::size(kReasons); ++i)
    if (reason == kReasons[i])
      ++success_[i];
  if (times.arrived)
    e2e_.observe(to_seconds(at - *times.arrived));
  if (times.queued && times.scheduled)
    queue_.observe(to_seconds(*times.scheduled - *times.queued));
  request_prompt_.observe(prompt.count());
  request_generation_.observe(generated.count());
  if (max_tokens)
    request_max_tokens_.observe(max_tokens->count());
  if (!times.first_token || !times.scheduled)
    return;
  const Nanos decoding = *times.last_token - *times.first_token;
  prefill_.observe(to_seconds(*times.first_token - *times.scheduled));
  decode_.observe(to_seconds(decoding));
  inference_.observe(to_seconds(*times.last_token - *times.scheduled));
  if (generated > Tokens(1))
    tpot_.observe(to_seconds(decoding) / (generated.count() - 1));
}

std::string ServerMetrics::page(std::string_view model_name, const ServerGauges& gauges,
                                const StepCounter* steps) const {
  Exposition out({{"model_name", model_name}});
  const auto sample = [&](Row row, double value) { out.sample(kTable[row], value); };
  const auto histogram = [&](Row row, const Histogram& h) { out.histogram(kTable[row], h); };
  const SchedulerState& s = gauges.scheduler;
  const double blocks = std::max(s.total.count(), 1);
  sample(kRunning, s.running);
  sample(kWaiting, s.waiting + gauges.tokenizing);
  sample(kKvUsage, s.used.count() / blocks);
  sample(kPreemptions, static_cast<double>(s.preemptions));
  sample(kPrefixQueries, static_cast<double>(s.prefix_query_tokens));
  sample(kPrefixHits, static_cast<double>(s.prefix_hit_tokens));
  sample(kPromptTokens, static_cast<double>(prompt_tokens_));
  sample(kGenerationTokens, static_cast<double>(generation_tokens_));
  for (size_t i = 0; i < success_.size(); ++i)
    out.sample(kTable[kSuccess], static_cast<double>(success_[i]), {{"finished_reason", kReasonLabels[i]}});
  if (steps)
    histogram(kIterationTokens, steps->tokens_per_iteration());
  histogram(kTtft, ttft_);
  histogram(kItl, itl_);
  histogram(kTpot, tpot_);
  histogram(kE2e, e2e_);
  histogram(kQueueTime, queue_);
  histogram(kPrefillTime, prefill_);
  histogram(kDecodeTime, decode_);
  histogram(kInferenceTime, inference_);
  histogram(kRequestPromptTokens, request_prompt_);
  histogram(kRequestGenerationTokens, request_generation_);
  histogram(kRequestMaxTokens, request_max_tokens_);
  sample(kTokenizing, gauges.tokenizing);
  sample(kConnections, gauges.connections);
  sample(kRetained, s.retained.count() / blocks);
  sample(kTokenizationSeconds, to_seconds(tokenization_));
  out.sample(kTable[kAnswers], static_cast<double>(answers_ok_), {{"outcome", "ok"}});
  out.sample(kTable[kAnswers], static_cast<double>(answers_refused_), {{"outcome", "refused"}});
  out.sample(kTable[kAnswers], static_cast<double>(answers_failed_), {{"outcome", "failed"}});
  sample(kDraining, gauges.draining ? 1 : 0);
  return out.take();
}

}  // namespace goodput
