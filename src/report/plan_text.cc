#include "report/plan_text.h"

#include <sys/resource.h>

#include <fmt/format.h>
#include <boost/json.hpp>

#include "base/text.h"

namespace goodput {
namespace {

std::string target_text(const MapOptions& o) {
  switch (o.target) {
    case TargetKind::kEmbedded:
      return fmt::format("the built-in engine{} with {}", o.simulate ? " (simulated)" : "",
                         o.model.filename().string());
    case TargetKind::kLaunched:
      return "launched: " + o.launch;
    case TargetKind::kRemote:
      return o.base_url;
  }
  return "";
}

uint64_t descriptor_limit() {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  return limit.rlim_max;
}

// The largest of what the processes of a map hold: simulated schedules, or the model and its KV.
uint64_t expected_bytes(const MapOptions& o, const MapPlan& plan) {
  constexpr uint64_t kPerSimulatedRequest = 6000;  // prompt tokens, record, token events of the default mix
  const uint64_t screen = uint64_t(plan.finalist_requests) * kPerSimulatedRequest * 2 * 2;
  std::error_code ignored;
  const uint64_t model = o.model.empty() ? 0 : std::filesystem::file_size(o.model, ignored);
  return std::max(screen, model + (256u << 20));
}

std::string seconds_text(Nanos t) { return fmt::format("{:.0f} s", to_seconds(t)); }

}  // namespace

std::string plan_text(const MapOptions& o, const MapPlan& p) {
  const int points = p.measured_settings * static_cast<int>(p.fractions.size());
  std::vector<std::string> shares;
  for (const double f : p.fractions)
    shares.push_back(fmt::format("{:.0f} %", 100 * f));
  std::string text;
  text += fmt::format("target       {}\n", target_text(o));
  text += fmt::format("workload     {} (hash {})\n", o.workload.name, workload_hash(o.workload).substr(0, 12));
  for (const auto& c : o.workload.classes)
    text += fmt::format("  {:<12} share {:.2f}, priority {}, targets {}\n", c.name, c.share, c.priority,
                        c.targets.empty() ? "from the unloaded probe" : to_text(c.targets));
  text += fmt::format("probe        {:>6}  {} closed loops of {}\n", seconds_text(p.probe_time), p.probes.size(),
                      format_duration(p.probes.front().length));
  if (o.target == TargetKind::kEmbedded)
    text += fmt::format("screen       {:>6}  {} settings on virtual time, {} requests a run, {} for the finalists\n",
                        seconds_text(p.screen_time), p.grid.size(), p.screen_requests, p.finalist_requests);
  text +=
      fmt::format("measure      {:>6}  {} settings at {} of capacity: {} windows of {}\n", seconds_text(p.measure_time),
                  p.measured_settings, fmt::join(shares, ", "), points, format_duration(p.measure_window));
  text += fmt::format("confirm      {:>6}  the choice and the largest batch, {} fresh seeds each{}\n",
                      seconds_text(p.confirm_time), p.replicates,
                      p.background_replicates ? "; then without background work" : "");
  text += fmt::format("in all       {:>6}  of a budget of {}\n", seconds_text(p.total()), seconds_text(o.budget));
  text += fmt::format("descriptors  {} of {}\nmemory       about {}\n", p.descriptors, descriptor_limit(),
                      format_bytes(expected_bytes(o, p)));
  return text;
}

std::string plan_json(const MapOptions& o, const MapPlan& p) {
  boost::json::object json{{"schema", "goodput.plan/1"},
                           {"target", target_text(o)},
                           {"workload_hash", workload_hash(o.workload)},
                           {"settings", p.grid.size()},
                           {"probes", p.probes.size()},
                           {"measured_settings", p.measured_settings},
                           {"fractions", boost::json::array(p.fractions.begin(), p.fractions.end())},
                           {"window_s", to_seconds(p.measure_window)},
                           {"replicates", p.replicates},
                           {"seconds",
                            {{"probe", to_seconds(p.probe_time)},
                             {"screen", to_seconds(p.screen_time)},
                             {"measure", to_seconds(p.measure_time)},
                             {"confirm", to_seconds(p.confirm_time)},
                             {"total", to_seconds(p.total())}}},
                           {"descriptors", p.descriptors},
                           {"memory_bytes", expected_bytes(o, p)}};
  return boost::json::serialize(json) + "\n";
}

}  // namespace goodput
