// What /metrics says: vLLM's names with vLLM's meanings (prefix "vllm:"), so that existing dashboards work, and a few
// of our own (prefix "goodput:"). All of it belongs to the HTTP loop's thread, except StepCounter, which the engine's
// thread writes.
#pragma once

#include <array>
#include <atomic>
#include <string>
#include <string_view>

#include "metrics/record.h"
#include "scheduler/scheduler.h"
#include "serve/prometheus.h"

namespace goodput {

// Every metric of the page, in its order.
std::span<const MetricRow> metric_rows();

// Counts iterations for /metrics on their way to the step log. `next` may be null; it outlives this.
class StepCounter final : public StepSink {
 public:
  explicit StepCounter(StepSink* next = nullptr);
  void write(const StepRecord&) override;
  Histogram tokens_per_iteration() const;

 private:
  static constexpr size_t kBuckets = 14;
  StepSink* next_;
  std::array<std::atomic<uint64_t>, kBuckets + 1> counts_{};
  std::atomic<uint64_t> sum_{0};
};

// What the page shows beside the counters below.
struct ServerGauges {
  SchedulerState scheduler;
  int tokenizing = 0;  // accepted, not yet with the engine; part of num_requests_waiting
  int connections = 0;
  bool draining = false;
};

class ServerMetrics {
 public:
  ServerMetrics();
  // The first token of a request; `since_arrival` = its time − arrival.
  void first_token(Tokens prompt, Nanos since_arrival);
  void next_token(Nanos since_last);
  // The request is over. Intervals that never began are not observed, as in vLLM.
  void ended(FinishReason, const ServerTimes&, TimePoint at, Tokens prompt, Tokens generated,
             std::optional<Tokens> max_tokens);
  void answered(int status) { ++(status < 400 ? answers_ok_ : status < 500 ? answers_refused_ : answers_failed_); }
  void tokenized(Nanos spent) { tokenization_ += spent; }

  std::string page(std::string_view model_name, const ServerGauges&, const StepCounter*) const;

 private:
  uint64_t prompt_tokens_ = 0, generation_tokens_ = 0;
  uint64_t answers_ok_ = 0, answers_refused_ = 0, answers_failed_ = 0;
  Nanos tokenization_;
  std::array<uint64_t, 4> success_{};  // stop, length, abort, error
  Histogram ttft_, itl_, tpot_, e2e_, queue_, prefill_, decode_, inference_;
  Histogram request_prompt_, request_generation_, request_max_tokens_;
};

}  // namespace goodput
