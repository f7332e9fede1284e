// goodput map: options from flags, then the plan (what --dry-run prints), then the study, then the report.
#include <algorithm>
#include <memory>

#include <unistd.h>

#include <fmt/format.h>

#include "base/file.h"
#include "cli/config.h"
#include "cli/interrupt.h"
#include "cli/map_options.h"
#include "cli/verb.h"
#include "map/map.h"
#include "report/html.h"
#include "report/plan_text.h"
#include "report/study_json.h"
#include "report/terminal.h"
#include "report/terminal_progress.h"

namespace goodput {
namespace {

Result<void> render(const MapOptions& options, MapResult& result, const MapFlags& f) {
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

Exit run(MapFlags& f) {
  const auto options = map_options(f);
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

// What may stand beside --resume: it is for this run only.
const std::vector<std::string> kOfThisRun = {"help", "out", "resume", "json", "plain", "dry-run", "stop-after"};

// --resume takes the study's own arguments. Repeating one does no harm; another value would be ignored, so it is
// refused.
Result<void> refuse_other_options(const std::vector<std::string>& given, const std::vector<std::string>& stored) {
  for (const auto& argument : given)
    if (std::ranges::find(stored, argument) == stored.end())
      return fail(
          ErrorCode::kUsage,
          fmt::format("the study keeps the options it was begun with; leave out {}, or begin another study", argument),
          "--resume");
  return {};
}

Result<void> restore(MapFlags& f, const std::vector<std::string>& given) {
  if (f.out.empty())
    return fail(ErrorCode::kUsage, "--resume needs the study's folder: --out DIR");
  MapFlags stored;
  stored.arguments = TRY(stored_arguments(f.out));
  TRY(refuse_other_options(given, stored.arguments));
  CLI::App app;
  declare_map_flags(app, stored);
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
  auto flags = std::make_shared<MapFlags>();
  declare_map_flags(app, *flags);
  return [flags, &app] {
    auto given = given_arguments(app, kOfThisRun);
    if (flags->resume) {
      if (const auto restored = restore(*flags, given); !restored)
        return report_error(restored.error());
    } else {
      flags->arguments = std::move(given);
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
