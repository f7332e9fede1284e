// goodput compare: did it get better or worse? Ours against ours or against other tools' results, with intervals, and
// rules that set the exit code.
#include <algorithm>
#include <cstdio>
#include <memory>

#include <fmt/format.h>

#include "base/limits.h"
#include "base/text.h"
#include "cli/stored_runs.h"
#include "cli/verb.h"
#include "report/compare_text.h"

namespace goodput {
namespace {

struct Flags {
  std::vector<std::string> files, a, b, gates, targets;
  std::string preset, workload;
  WindowFlags window;
  bool strict = false, json = false, plain = false;
};

// "f1,f2" and "f1 f2" alike; a file whose name has a comma stands for itself.
Result<std::vector<std::string>> names_of(const std::vector<std::string>& given, std::string_view side) {
  std::vector<std::string> names;
  for (const std::string& item : given) {
    std::error_code none;
    if (std::filesystem::exists(item, none)) {
      names.push_back(item);
      continue;
    }
    for (const std::string_view name : split(item, ','))
      names.emplace_back(trim(name));
  }
  if (names.empty() || names.size() > limits::kMaxComparedFiles)
    return fail(ErrorCode::kUsage,
                fmt::format("expected 1 to {} files, found {}", limits::kMaxComparedFiles, names.size()),
                std::string(side));
  return names;
}

void judge_again(ResultRun& run, const std::vector<ClassRule>& rules) {
  std::string targets;
  for (const ClassRule& rule : rules)
    if (!rule.targets.empty())
      targets += fmt::format("{}{}[{}]", targets.empty() ? "" : " ", rule.name, to_text(rule.targets));
  restate(run, summarize(run.records, rules, *run.window), targets);
}

Result<std::vector<ResultFile>> read_side(const Flags& f, const std::vector<std::string>& names) {
  const auto targets = TRY(targets_of(f.targets, f.preset));
  std::vector<ResultFile> files;
  for (const std::string& name : names) {
    ResultFile file = TRY(read_result_file(name));
    TRY(place_windows(file, f.window));
    for (ResultRun& run : file.runs)
      if (!run.records.empty() && (file.kind == ResultKind::kRecords || targets))
        judge_again(run, TRY(rules_of(run, f.workload, targets)));
    files.push_back(std::move(file));
  }
  return files;
}

Result<CompareReport> compare(const Flags& f) {
  CompareReport report;
  const bool two = f.files.size() == 2 && f.a.empty() && f.b.empty();
  if (!two && (!f.files.empty() || f.a.empty() || f.b.empty()))
    return fail(ErrorCode::kUsage, "expected two files, or --a FILES --b FILES");
  report.files_a = TRY(names_of(two ? std::vector{f.files[0]} : f.a, "--a"));
  report.files_b = TRY(names_of(two ? std::vector{f.files[1]} : f.b, "--b"));
  report.strict = f.strict;
  std::vector<Gate> gates;
  for (const std::string& text : f.gates)
    gates.push_back(TRY(parse_gate(text)));
  const auto a = TRY(read_side(f, report.files_a)), b = TRY(read_side(f, report.files_b));
  for (const ResultFile& file : a)
    report.kinds_a.emplace_back(to_string(file.kind));
  for (const ResultFile& file : b)
    report.kinds_b.emplace_back(to_string(file.kind));
  report.comparison = TRY(compare_results(a, b));
  report.gates = judge_gates(gates, report.comparison);
  return report;
}

std::function<Exit()> declare(CLI::App& app) {
  auto f = std::make_shared<Flags>();
  app.add_option("results", f->files, "A and B: ours (records, study, JSON), vLLM's, SGLang's, guidellm's or AIPerf's");
  app.add_option("--a", f->a, "files of side A; several are replicates");
  app.add_option("--b", f->b, "files of side B");
  app.add_option("--gate", f->gates,
                 "rules for the exit code: 'p95_ttft<=+5%' (B against A), 'goodput>=-3%', 'failed<=0' (B itself)");
  app.add_flag("--gate-strict", f->strict, "a rule whose interval lies on both sides of its bound is violated");
  app.add_option("--goodput", f->targets, "targets in ms for records and studies, e.g. ttft:300 tpot:40");
  app.add_option("--preset", f->preset, "a named set of targets, see goodput help score");
  app.add_option("--workload", f->workload, "TOML file with the names and targets of the classes");
  declare_window_flags(app, f->window);
  app.add_flag("--plain", f->plain, "tab-separated, all columns");
  app.add_flag("--json", f->json, "one JSON document on stdout");
  return [f] {
    const auto report = compare(*f);
    if (!report)
      return report_error(report.error());
    const std::string text = f->json ? compare_json(*report) + "\n" : render_compare(*report, text_style(f->plain));
    std::fputs(text.c_str(), stdout);
    const bool pass = std::ranges::all_of(report->gates, [&](const GateOutcome& o) { return o.passes(f->strict); });
    return pass ? Exit::kOk : Exit::kTargetMissed;
  };
}

}  // namespace

extern const Verb kCompareVerb;
const Verb kCompareVerb{
    "compare", "how two results differ, with intervals, and gates for CI",
    "  goodput compare before.json after.json\n"
    "  goodput compare --a old1.records old2.records old3.records --b new1.records,new2.records,new3.records\n"
    "  goodput compare vllm-before.json vllm-after.json --gate 'p95_ttft<=+5%' 'failed<=0'\n"
    "  goodput compare run.records aiperf/profile_export_aiperf.json\n",
    declare};

}  // namespace goodput
