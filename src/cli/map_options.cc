#include "cli/map_options.h"

#include <algorithm>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include "base/clock.h"
#include "base/process.h"
#include "base/text.h"
#include "cli/cpus.h"
#include "cli/models.h"

namespace goodput {

void declare_map_flags(CLI::App& app, MapFlags& f) {
  app.add_option("--model", f.model, "tiny, small or base (made and kept by goodput), or a GGUF file")
      ->capture_default_str();
  app.add_option("--workload", f.workload,
                 "a study file (TOML) with [workload]; default: chat 70 %, rag 10 %, background 20 %");
  app.add_option("--class", f.classes,
                 "a class of the mix, e.g. 'name=\"chat\"; share=0.7; prompt=\"32..96\"; output=\"16..48\"'");
  app.add_option("--goodput", f.goodput, "targets of every interactive class in ms, e.g. ttft:200 tpot:40");
  app.add_option("--max-num-seqs", f.max_num_seqs, "the grid's batch sizes")->delimiter(',')->capture_default_str();
  app.add_option("--max-num-batched-tokens", f.budgets, "the grid's token budgets")
      ->delimiter(',')
      ->capture_default_str();
  app.add_option("--scheduling-policy", f.policies, "the grid's policies: fcfs, priority")
      ->delimiter(',')
      ->capture_default_str();
  app.add_flag("--no-static", f.no_static, "leave static batching out");
  app.add_option("--set", f.set, "a setting of all points, e.g. enable_prefix_caching=false")->delimiter(',');
  app.add_option("--kv-tokens", f.kv_tokens, "KV cells of the built-in engine")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  app.add_option("--launch", f.launch,
                 "map a server started from this command: {port}, {max_num_seqs}, {max_num_batched_tokens}, …");
  app.add_option("--base-url", f.base_url, "map a running server (rates only)");
  app.add_flag("--simulate", f.simulate, "the built-in server computes nothing: modelled durations, real HTTP");
  app.add_option("--budget", f.budget, "wall time of the study, e.g. 5m")->capture_default_str();
  app.add_option("--floor", f.floor, "attainment that every class must keep")
      ->capture_default_str()
      ->check(CLI::Range(0.01, 1.0));
  app.add_option("--seed", f.seed, "of schedules and order")->capture_default_str();
  app.add_option("--engine-cpus", f.engine_cpus, "processors of the server, e.g. 0 or 0,1; default: all but the last");
  app.add_option("--load-cpus", f.load_cpus, "processors of the load generator; default: the last");
  app.add_option("--out", f.out, "folder of the study; default goodput-study/<time>");
  app.add_flag("--resume", f.resume, "go on with the study in --out; nothing else need be given");
  app.add_option("--stop-after", f.stop_after, "probe, screen or measure")
      ->check(CLI::IsMember({"probe", "screen", "measure"}));
  app.add_flag("--dry-run", f.dry_run, "print the plan, its time, descriptors and memory, and do nothing");
  app.add_flag("--plain", f.plain, "tab-separated tables");
  app.add_flag("--json", f.json, "one JSON document on stdout");
}

namespace {

Result<WorkloadSpec> workload_of(const MapFlags& f) {
  WorkloadSpec workload = default_workload();
  if (!f.workload.empty() && !f.classes.empty())
    return fail(ErrorCode::kUsage, "give the classes by --workload or by --class, not by both");
  if (!f.workload.empty())
    workload = TRY(load_workload(f.workload));
  if (!f.classes.empty()) {
    std::string toml = "[workload]\n";
    for (std::string c : f.classes) {
      std::ranges::replace(c, ';', '\n');
      toml += "[[workload.class]]\n" + c + "\n";
    }
    workload = TRY(parse_workload(toml, "--class"));
  }
  if (workload.trace)
    return fail(ErrorCode::kUsage,
                "a map varies the rate itself and cannot follow a trace's times; replay traces with goodput bench");
  if (has_rate_profile(workload) || workload.rescale)
    return fail(
        ErrorCode::kUsage,
        "a map varies the rate itself and cannot follow a ramp, stages or rescaled arrivals; run them with goodput "
        "bench");
  for (const auto& c : workload.classes)
    if (c.turns.high > Tokens(1))
      return fail(ErrorCode::kUsage, "conversations (turns) cannot be mapped yet; give classes of single requests",
                  c.name);
  if (!f.goodput.empty()) {
    const TargetSet targets = TRY(parse_targets(f.goodput));
    for (auto& c : workload.classes)
      if (c.targets.interactive() || c.ttft_times_unloaded || c.gap_times_unloaded) {
        c.targets = targets;
        c.ttft_times_unloaded.reset();
        c.gap_times_unloaded.reset();
        c.e2e_times_unloaded.reset();
      }
  }
  return workload;
}

Result<Grid> grid_of(const MapFlags& f) {
  Grid grid;
  grid.max_num_seqs = f.max_num_seqs;
  grid.max_num_batched_tokens.clear();
  for (const int tokens : f.budgets)
    grid.max_num_batched_tokens.emplace_back(tokens);
  grid.policies.clear();
  for (const auto& policy : f.policies) {
    Settings probe;
    TRY(set_setting(probe, "scheduling_policy", policy));
    grid.policies.push_back(probe.scheduling_policy);
  }
  grid.with_static = !f.no_static;
  for (const auto& item : f.set) {
    const size_t equals = item.find('=');
    if (equals == std::string::npos)
      return fail(ErrorCode::kUsage, fmt::format("expected name=value, found '{}'", item), "--set");
    TRY(set_setting(grid.base, item.substr(0, equals), item.substr(equals + 1)));
  }
  return grid;
}

}  // namespace

Result<MapOptions> map_options(const MapFlags& f) {
  MapOptions o;
  o.workload = TRY(workload_of(f));
  o.grid = TRY(grid_of(f));
  if (!f.launch.empty() && !f.base_url.empty())
    return fail(ErrorCode::kUsage, "--launch and --base-url exclude each other");
  o.target = !f.launch.empty()     ? TargetKind::kLaunched
             : !f.base_url.empty() ? TargetKind::kRemote
                                   : TargetKind::kEmbedded;
  o.launch = f.launch;
  o.base_url = f.base_url;
  o.simulate = f.simulate;
  // A foreign server has a vocabulary of its own: without a file of it, prompts are words of about the asked length.
  if (o.target == TargetKind::kEmbedded || f.model != MapFlags{}.model)
    o.model = TRY(resolve_model(f.model));
  o.kv_tokens = Tokens(f.kv_tokens);
  o.budget = TRY(parse_duration(f.budget));
  o.seed = f.seed;
  o.floor = f.floor;
  o.resume = f.resume;
  o.engine_cpus = TRY(parse_cpus(f.engine_cpus, "--engine-cpus"));
  o.load_cpus = TRY(parse_cpus(f.load_cpus, "--load-cpus"));
  auto cpus = allowed_cpus();
  if (cpus.size() > 1 && o.load_cpus.empty())
    o.load_cpus = {cpus.back()};
  if (cpus.size() > 1 && o.engine_cpus.empty() && o.target != TargetKind::kRemote) {
    std::erase_if(cpus, [&](int cpu) { return std::ranges::find(o.load_cpus, cpu) != o.load_cpus.end(); });
    o.engine_cpus = cpus;
  }
  if (f.stop_after == "probe")
    o.stop_after = StopAfter::kProbe;
  if (f.stop_after == "screen")
    o.stop_after = StopAfter::kScreen;
  if (f.stop_after == "measure")
    o.stop_after = StopAfter::kMeasure;
  o.out = f.out.empty() ? fmt::format("goodput-study/{:%Y%m%d-%H%M%S}", fmt::gmtime(unix_seconds())) : f.out;
  return o;
}

}  // namespace goodput
