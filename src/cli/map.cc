// goodput map: options from flags, then the plan (what --dry-run prints), then the study, then the report.
#include <algorithm>
#include <memory>

#include <unistd.h>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/process.h"
#include "base/text.h"
#include "cli/config.h"
#include "cli/interrupt.h"
#include "cli/models.h"
#include "cli/verb.h"
#include "map/map.h"
#include "report/html.h"
#include "report/plan_text.h"
#include "report/study_json.h"
#include "report/terminal.h"
#include "report/terminal_progress.h"

namespace goodput {
namespace {

struct Flags {
  std::string model = "tiny", workload, launch, base_url, out, budget = "5m", stop_after, engine_cpus, load_cpus;
  std::vector<std::string> classes, goodput, set;
  std::vector<int> max_num_seqs{2, 4, 8, 16, 32}, budgets{64, 256, 1024};
  std::vector<std::string> policies{"fcfs", "priority"};
  int kv_tokens = 16384;
  uint64_t seed = 1;
  double floor = 0.90;
  bool no_static = false, resume = false, dry_run = false, json = false, simulate = false, plain = false;
  std::vector<std::string> arguments;  // as given, for --resume
};

void declare_flags(CLI::App& app, Flags& f) {
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

Result<std::vector<int>> parse_cpus(const std::string& text, const char* flag) {
  std::vector<int> cpus;
  if (text.empty())
    return cpus;
  const auto allowed = allowed_cpus();
  for (const auto part : split(text, ',')) {
    const auto cpu = parse_int(trim(part));
    if (!cpu || std::ranges::find(allowed, *cpu) == allowed.end())
      return fail(
          ErrorCode::kUsage,
          fmt::format("'{}' is not a processor this process may use; it may use {}", part, fmt::join(allowed, ",")),
          flag);
    cpus.push_back(static_cast<int>(*cpu));
  }
  return cpus;
}

Result<WorkloadSpec> workload_of(const Flags& f) {
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

Result<Grid> grid_of(const Flags& f) {
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

Result<MapOptions> options_of(const Flags& f) {
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
  if (o.target == TargetKind::kEmbedded || f.model != Flags{}.model)
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

Result<void> render(const MapOptions& options, MapResult& result, const Flags& f) {
  const auto page = options.out / "report.html";
  result.report = page.string();
  const std::string document = to_json(result);
  TRY(write_file_atomically(page, report_html(result)));
  TRY(store_document(options.out, document));
  if (f.json)
    fmt::print("{}\n", document);
  else
    fmt::print("{}", study_text(result, text_style(STDOUT_FILENO, f.plain)));
  return {};
}

Exit run(Flags& f) {
  const auto options = options_of(f);
  if (!options)
    return report_error(options.error());
  const auto plan = make_plan(*options);
  if (!plan)
    return report_error(plan.error());
  if (f.dry_run) {
    fmt::print("{}", f.json ? plan_json(*options, *plan) : plan_text(*options, *plan));
    return Exit::kOk;
  }
  TerminalProgress progress;
  auto result = run_map(*options, f.arguments, progress, interrupt_flag());
  progress.finish();
  if (!result) {
    const Exit code = report_error(result.error());
    if (result.error().code == ErrorCode::kInterrupted)
      fmt::print(stderr, "goodput: what was measured is safe; go on with: goodput map --resume --out {}\n",
                 options->out.string());
    return code;
  }
  if (const auto rendered = render(*options, *result, f); !rendered)
    return report_error(rendered.error());
  const bool complete = options->stop_after == StopAfter::kNone;
  return complete && !result->chosen ? Exit::kTargetMissed : Exit::kOk;
}

// --resume takes the study's own arguments; what stands beside it on the command line is for this run only.
Result<void> restore(Flags& f) {
  if (f.out.empty())
    return fail(ErrorCode::kUsage, "--resume needs the study's folder: --out DIR");
  Flags stored;
  stored.arguments = TRY(stored_arguments(f.out));
  CLI::App app;
  declare_flags(app, stored);
  try {
    std::vector<std::string> reversed(stored.arguments.rbegin(), stored.arguments.rend());
    app.parse(reversed);
  } catch (const CLI::ParseError& e) {
    return fail(ErrorCode::kUsage, std::string("the study's stored arguments do not parse: ") + e.what(), f.out);
  }
  stored.out = f.out;
  stored.resume = true;
  stored.json = f.json;
  stored.plain = f.plain;
  stored.dry_run = f.dry_run;
  stored.stop_after = f.stop_after;
  f = std::move(stored);
  return {};
}

std::function<Exit()> declare(CLI::App& app) {
  auto flags = std::make_shared<Flags>();
  declare_flags(app, *flags);
  return [flags, &app] {
    if (flags->resume) {
      if (const auto restored = restore(*flags); !restored)
        return report_error(restored.error());
    } else {
      flags->arguments = given_arguments(app, {"help", "out", "resume", "json", "plain", "dry-run", "stop-after"});
    }
    return run(*flags);
  };
}

}  // namespace

extern const Verb kMapVerb;
const Verb kMapVerb{
    "map", "maps the goodput frontier over batch settings and picks from it",
    "  goodput map                                             the built-in engine, five minutes\n"
    "  goodput map --budget 20m --goodput ttft:300 tpot:50     longer, your targets\n"
    "  goodput map --launch 'llama-server -m m.gguf --port {port} -np {max_num_seqs}' --max-num-seqs 4,8,16\n"
    "  goodput map --base-url http://127.0.0.1:8000            a running server: rates only\n"
    "  goodput map --dry-run                                   what would be done, and how long it takes\n"
    "  goodput map --resume --out goodput-study/20260101-120000\n",
    declare};

}  // namespace goodput
