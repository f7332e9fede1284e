// goodput bench: one endpoint, one load, every number defined in docs/method.md. Flags, plan and run stand in files of
// their own (bench_flags, bench_plan, bench_run); this one joins them and chooses the exit code.
#include <cstdio>
#include <memory>

#include <unistd.h>

#include <fmt/format.h>

#include "base/process.h"
#include "cli/bench_flags.h"
#include "cli/bench_plan.h"
#include "cli/bench_run.h"
#include "cli/interrupt.h"
#include "cli/verb.h"
#include "report/bench_json.h"
#include "report/bench_tables.h"
#include "report/terminal_progress.h"

namespace goodput {
namespace {

void print(const BenchPlan& plan, const BenchReport& report) {
  const BenchOutput& o = plan.output;
  if (o.json) {
    std::fputs((bench_json(report, o.detailed) + "\n").c_str(), stdout);
    return;
  }
  const BenchTotals totals = bench_totals(report);
  const TextStyle style = text_style(STDOUT_FILENO, o.plain);
  std::fputs(o.table->render(report, totals, style, o.chinese).c_str(), stdout);
  // A table for programs stays alone on stdout; its reader still has to learn whether to believe it.
  std::fputs(own_block(report, totals, style).c_str(), o.table->data ? stderr : stdout);
}

Exit exit_code(const BenchReport& report) {
  if (report.load.interrupted)
    return Exit::kInterrupted;
  if (report.summary.overall.scheduled > 0 && bench_totals(report).completed == 0)
    return Exit::kFailed;  // nothing was measured
  if (!report.verdict.valid())
    return Exit::kInvalid;
  if (report.floor && floor_verdict(report.summary, *report.floor) != FloorVerdict::kPass)
    return Exit::kTargetMissed;
  return Exit::kOk;
}

Exit run(const BenchFlags& flags) {
  const auto plan = bench_plan(flags, bench_environment());
  if (!plan)
    return report_error(plan.error());
  if (!plan->cpus.empty()) {
    if (const auto pinned = pin_to_cpus(plan->cpus); !pinned)
      return report_error(pinned.error());
  }
  const auto schedule = bench_schedule(*plan);
  if (!schedule)
    return report_error(schedule.error());
  if (flags.dry_run) {
    const BenchForecast f = forecast(*plan, *schedule);
    std::fputs((flags.json ? f.json : f.text).c_str(), stdout);
    return f.possible ? Exit::kOk : Exit::kFailed;
  }
  TerminalProgress terminal;
  NoProgress quiet;
  Progress& progress = plan->output.quiet ? static_cast<Progress&>(quiet) : terminal;
  const auto report = run_bench(*plan, *schedule, progress, interrupt_flag());
  terminal.finish();
  if (!report)
    return report_error(report.error());
  print(*plan, *report);
  std::fflush(stdout);
  const auto written = save_bench(*plan, *report);
  if (!written)
    return report_error(written.error());
  for (const std::string& path : *written)
    fmt::print(stderr, "goodput: written: {}\n", path);
  return exit_code(*report);
}

std::function<Exit()> declare(CLI::App& app) {
  auto flags = std::make_shared<BenchFlags>();
  declare_bench_flags(app, *flags);
  return [flags, &app] {
    if (const auto allowed = check_refused_flags(app); !allowed)
      return report_error(allowed.error());
    return run(*flags);
  };
}

}  // namespace

extern const Verb kBenchVerb;
const Verb kBenchVerb{
    "bench", "one endpoint under load: latency, throughput, goodput, and whether to believe it",
    "  goodput bench --base-url http://127.0.0.1:8000 --num-prompts 200 --max-concurrency 16\n"
    "  goodput bench --base-url http://127.0.0.1:8000 --request-rate 4 --duration 30s --goodput ttft:200 tpot:40\n"
    "  goodput bench serve --backend vllm --model M --dataset-name random --random-input-len 512 --save-result\n"
    "                                                          a command line of `vllm bench serve`, as it is\n"
    "  goodput bench --request-rate 0.5 --num-prompts 100 --dry-run\n",
    declare, complete_bench_arguments};

}  // namespace goodput
