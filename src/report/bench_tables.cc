#include "report/bench_tables.h"

#include <algorithm>

#include <fmt/format.h>

namespace goodput {
namespace {

constexpr std::array<BenchTable, 4> kTables = {{{"vllm", false, vllm_table},
                                                {"lmdeploy", false, lmdeploy_table},
                                                {"evalscope", false, evalscope_table},
                                                {"dbgpt", true, dbgpt_table}}};

}  // namespace

std::span<const BenchTable> bench_tables() { return kTables; }

const BenchTable* find_bench_table(std::string_view name) {
  const auto found = std::ranges::find(kTables, name, &BenchTable::name);
  return found == kTables.end() ? nullptr : &*found;
}

std::string label_line(std::string_view label, std::string_view value, const TextStyle& style) {
  return style.plain ? fmt::format("{}\t{}\n", label, value) : fmt::format("{:<40} {:<10}\n", label, value);
}

std::string fixed(const std::optional<double>& value, int digits) {
  return value ? fmt::format("{:.{}f}", *value, digits) : "–";
}

}  // namespace goodput
