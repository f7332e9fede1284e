// goodput score: stored runs judged again by any set of targets, without measuring again.
#include <cstdio>
#include <memory>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cli/stored_runs.h"
#include "cli/verb.h"
#include "report/score_text.h"

namespace goodput {
namespace {

struct Flags {
  std::vector<std::string> files, targets;
  std::string preset, workload, phase;
  WindowFlags window;
  bool strict = false, json = false, plain = false;
};

// First arrival to last end.
double length_s(const std::vector<RequestRecord>& records) {
  TimePoint first = records.front().scheduled, last = first;
  for (const RequestRecord& r : records) {
    first = std::min(first, r.scheduled);
    last = std::max(last, r.closed.value_or(r.done.value_or(r.scheduled)));
  }
  return to_seconds(last - first);
}

ScoredRun score_run(const ResultRun& run, std::vector<ClassRule> rules, const std::optional<Preset>& preset,
                    bool strict) {
  ScoredRun scored;
  scored.label = run.label;
  scored.phase = run.phase;
  scored.valid = run.valid;
  scored.summary = summarize(run.records, rules, *run.window, strict);
  scored.rules = std::move(rules);
  scored.length_s = length_s(run.records);
  if (preset && preset->mlperf)
    scored.mlperf = mlperf_verdict(run.records, from_ms(preset->ttft_ms),
                                   preset->tpot_ms ? std::optional(from_ms(*preset->tpot_ms)) : std::nullopt);
  return scored;
}

Result<ScoreReport> score_files(const Flags& f) {
  ScoreReport report;
  report.source = fmt::format("{}", fmt::join(f.files, " "));
  report.strict = f.strict;
  if (!f.preset.empty())
    report.preset = TRY(find_preset(f.preset));
  const auto targets = TRY(targets_of(f.targets, f.preset));
  for (const std::string& path : f.files) {
    ResultFile file = TRY(read_result_file(path));
    TRY(place_windows(file, f.window));
    for (const ResultRun& run : file.runs) {
      if (!f.phase.empty() && run.phase != f.phase)
        continue;
      if (run.records.empty())
        return fail(
            ErrorCode::kUsage,
            fmt::format("{} holds no requests to judge: expected records of `goodput bench --save-records` or a "
                        "study",
                        to_string(file.kind)),
            path);
      auto rules = TRY(rules_of(run, f.workload, targets));
      if (!targets && std::ranges::all_of(rules, [](const ClassRule& r) { return r.targets.empty(); }))
        return fail(ErrorCode::kUsage, "no targets: give --goodput ttft:300 tpot:40 or --preset NAME");
      report.runs.push_back(score_run(run, std::move(rules), report.preset, f.strict));
    }
  }
  if (report.runs.empty())
    return fail(ErrorCode::kUsage, fmt::format("no point of phase '{}'", f.phase), "--phase");
  return report;
}

std::function<Exit()> declare(CLI::App& app) {
  auto f = std::make_shared<Flags>();
  std::string names;
  for (const Preset& p : presets())
    names += fmt::format("{}{}", names.empty() ? "" : ", ", p.name);
  app.add_option("result", f->files, "records of bench --save-records, or a study; several are replicates")->required();
  app.add_option("--goodput", f->targets, "targets in ms, e.g. ttft:300 tpot:40; replaces those of every class");
  app.add_option("--preset", f->preset, "a named set of targets: " + names);
  app.add_option("--workload", f->workload, "TOML file with the names and targets of the classes");
  app.add_option("--phase", f->phase, "only these points of a study: probe, measure, confirm, background");
  declare_window_flags(app, f->window);
  app.add_flag("--strict-targets", f->strict, "a target with nothing to divide counts as missed");
  app.add_flag("--plain", f->plain, "tab-separated, all columns");
  app.add_flag("--json", f->json, "one JSON document on stdout");
  return [f] {
    const auto report = score_files(*f);
    if (!report)
      return report_error(report.error());
    const std::string text = f->json ? score_json(*report) + "\n" : render_score(*report, text_style(f->plain));
    std::fputs(text.c_str(), stdout);
    return Exit::kOk;
  };
}

}  // namespace

extern const Verb kScoreVerb;
const Verb kScoreVerb{"score", "judges a stored run again by other targets",
                      "  goodput bench --base-url URL --request-rate 4 --save-records run.records\n"
                      "  goodput score run.records --goodput ttft:300 tpot:40\n"
                      "  goodput score run.records --preset mlperf-llama2-70b-interactive\n"
                      "  goodput score goodput-study/20260101-120000 --phase confirm --goodput ttft:300\n",
                      declare};

}  // namespace goodput
