#include "map/ttft_map.h"

#include <algorithm>
#include <array>

#include "metrics/request_metrics.h"

namespace goodput {
namespace {

constexpr std::array kPromptEdges{0, 32, 64, 128, 256, 512, 1024, 1536, 2048, 4096, 1 << 20};
constexpr std::array kRunningEdges{0, 1, 2, 4, 8, 16, 32, 64, 257};

template <size_t N>
size_t bin_of(const std::array<int, N>& edges, int value) {
  return static_cast<size_t>(std::ranges::upper_bound(edges, value) - edges.begin()) - 1;
}

}  // namespace

std::vector<TtftCell> ttft_cells(std::span<const RequestRecord> records) {
  // Starts and ends of residence in the engine, sorted: running at t = started before t − ended before t.
  std::vector<TimePoint> starts, ends;
  for (const auto& r : records)
    if (r.server && r.server->scheduled && r.server->last_token) {
      starts.push_back(*r.server->scheduled);
      ends.push_back(*r.server->last_token);
    }
  std::ranges::sort(starts);
  std::ranges::sort(ends);
  const auto before = [](const std::vector<TimePoint>& sorted, TimePoint t) {
    return static_cast<int>(std::ranges::lower_bound(sorted, t) - sorted.begin());
  };

  std::vector<std::vector<double>> cells(kPromptEdges.size() * kRunningEdges.size());
  for (const auto& r : records) {
    const auto t = ttft(r);
    if (r.outcome != Outcome::kOk || !t || !r.prompt_tokens || !r.server || !r.server->scheduled)
      continue;
    const TimePoint arrived = r.server->arrived.value_or(r.scheduled);
    const int running = std::clamp(before(starts, arrived) - before(ends, arrived), 0, 256);
    const size_t cell =
        bin_of(kPromptEdges, std::clamp(r.prompt_tokens->count(), 0, (1 << 20) - 1)) * kRunningEdges.size() +
        bin_of(kRunningEdges, running);
    cells[cell].push_back(to_ms(*t));
  }
  std::vector<TtftCell> out;
  for (size_t i = 0; i < cells.size(); ++i) {
    if (cells[i].empty())
      continue;
    std::ranges::sort(cells[i]);
    const size_t p = i / kRunningEdges.size(), q = i % kRunningEdges.size();
    out.push_back({kPromptEdges[p], kPromptEdges[p + 1], kRunningEdges[q], kRunningEdges[q + 1], cells[i].size(),
                   percentile(cells[i], 0.5)});
  }
  return out;
}

}  // namespace goodput
