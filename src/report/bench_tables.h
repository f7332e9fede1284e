// One benchmark on a terminal: the layouts that people know from other tools, each figure with that tool's own meaning,
// and below it what is counted here. What cannot be known is "–".
#pragma once

#include <span>
#include <string>

#include "report/bench_report.h"
#include "report/table.h"

namespace goodput {

// How one tool prints a run. The text ends with a line break.
struct BenchTable {
  std::string_view name;
  bool data;  // read by programs (CSV): nothing of ours may follow on the same stream
  std::string (*render)(const BenchReport&, const BenchTotals&, const TextStyle&, bool chinese);
};
std::span<const BenchTable> bench_tables();  // the first is the default
const BenchTable* find_bench_table(std::string_view name);

std::string vllm_table(const BenchReport&, const BenchTotals&, const TextStyle&, bool chinese);
std::string lmdeploy_table(const BenchReport&, const BenchTotals&, const TextStyle&, bool chinese);
std::string evalscope_table(const BenchReport&, const BenchTotals&, const TextStyle&, bool chinese);
std::string dbgpt_table(const BenchReport&, const BenchTotals&, const TextStyle&, bool chinese);

// What no other tool prints: latencies from the scheduled time, attainment with its interval, the verdict and its
// reasons, outcomes, and what the client knows of itself.
std::string own_block(const BenchReport&, const BenchTotals&, const TextStyle&);

// "{:<40} {:<10}" as vLLM prints it; plain: separated by a tab.
std::string label_line(std::string_view label, std::string_view value, const TextStyle&);
// Fixed digits; "–" when absent.
std::string fixed(const std::optional<double>& value, int digits = 2);

}  // namespace goodput
