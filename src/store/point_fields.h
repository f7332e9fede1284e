// The repeated keys of a point's JSON, once: writing and reading walk the same rows. Used by point.cc and
// point_read.cc.
#pragma once

#include <string_view>

#include "metrics/summary.h"

namespace goodput::point_fields {

template <class Owner, class Member>
struct Row {
  std::string_view name;
  Member Owner::* member;
};

inline constexpr Row<LatencyTable, Percentiles> kLatency[] = {
    {"ttft_ms", &LatencyTable::ttft}, {"ttft_service_ms", &LatencyTable::ttft_service},
    {"tpot_ms", &LatencyTable::tpot}, {"itl_ms", &LatencyTable::itl},
    {"icl_ms", &LatencyTable::icl},   {"e2e_ms", &LatencyTable::e2e},
};
inline constexpr Row<Throughput, double> kThroughput[] = {
    {"requests_per_s", &Throughput::requests_per_s},
    {"input_tokens_per_s", &Throughput::input_tokens_per_s},
    {"output_tokens_per_s", &Throughput::output_tokens_per_s},
    {"total_tokens_per_s", &Throughput::total_tokens_per_s},
};
inline constexpr Row<Observed, MeanP95Max> kGauges[] = {
    {"running", &Observed::running},
    {"batched_tokens", &Observed::batched_tokens},
    {"queue_depth", &Observed::queue_depth},
    {"kv_usage", &Observed::kv_usage},
};
inline constexpr Row<Observed, std::optional<uint64_t>> kObservedCounts[] = {
    {"preemptions", &Observed::preemptions},
    {"prefix_query_tokens", &Observed::prefix_query_tokens},
    {"prefix_hit_tokens", &Observed::prefix_hit_tokens},
    {"rejected", &Observed::rejected},
    {"peak_rss_bytes", &Observed::peak_rss_bytes},
};

}  // namespace goodput::point_fields
