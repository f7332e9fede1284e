// goodput explain-definitions: what vLLM, SGLang, AIPerf, guidellm and evalscope would have printed for this very run.
#include <cstdio>
#include <memory>

#include <fmt/format.h>

#include "cli/stored_runs.h"
#include "cli/verb.h"
#include "report/definitions_text.h"

namespace goodput {
namespace {

struct Flags {
  std::string file, preset;
  std::vector<std::string> targets;
  size_t point = 0;
  WindowFlags window;
  bool json = false, plain = false;
};

Result<DefinitionsReport> explain(const Flags& f) {
  ResultFile file = TRY(read_result_file(f.file));
  TRY(place_windows(file, f.window));
  if (f.point > file.runs.size())
    return fail(ErrorCode::kUsage, fmt::format("the file holds {} runs", file.runs.size()), "--point");
  const ResultRun& run = file.runs[f.point > 0 ? f.point - 1 : file.runs.size() - 1];
  if (run.records.empty())
    return fail(ErrorCode::kUsage,
                fmt::format("{} holds no streams: expected records of `goodput bench --save-records` or a study",
                            to_string(file.kind)),
                f.file);
  DefinitionsReport report{f.file, run.label, TRY(targets_of(f.targets, f.preset)).value_or(TargetSet{}), {}};
  std::vector<RequestRecord> cohort;
  for (const RequestRecord& r : run.records)
    if (run.window->contains(r.scheduled))
      cohort.push_back(r);
  for (const Tool tool : kTools)
    report.views.push_back(view_under(tool, run.records, cohort, report.targets, run.window->length_s()));
  return report;
}

std::function<Exit()> declare(CLI::App& app) {
  auto f = std::make_shared<Flags>();
  app.add_option("result", f->file, "records of bench --save-records, or a study")->required();
  app.add_option("--goodput", f->targets, "targets in ms, e.g. ttft:300 tpot:40, for the goodput of each tool");
  app.add_option("--preset", f->preset, "a named set of targets, see goodput help score");
  app.add_option("--point", f->point, "which measured point of a study, from 1; default: the last");
  declare_window_flags(app, f->window);
  app.add_flag("--plain", f->plain, "tab-separated, all columns");
  app.add_flag("--json", f->json, "one JSON document on stdout");
  return [f] {
    const auto report = explain(*f);
    if (!report)
      return report_error(report.error());
    const std::string text =
        f->json ? definitions_json(*report) + "\n" : render_definitions(*report, text_style(f->plain));
    std::fputs(text.c_str(), stdout);
    return Exit::kOk;
  };
}

}  // namespace

extern const Verb kDefinitionsVerb;
const Verb kDefinitionsVerb{"explain-definitions",
                            "one run under the definitions of vLLM, SGLang, AIPerf, guidellm, evalscope",
                            "  goodput bench --base-url URL --request-rate 4 --save-records run.records\n"
                            "  goodput explain-definitions run.records\n"
                            "  goodput explain-definitions run.records --goodput ttft:300 tpot:40 --json\n",
                            declare};

}  // namespace goodput
