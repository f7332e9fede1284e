// goodput study show | verify: reads a study file, finished or not, also while a map writes it.
#include <filesystem>
#include <memory>

#include <fmt/format.h>

#include "cli/verb.h"
#include "map/map.h"
#include "report/study_show.h"
#include "store/json_writer.h"
#include "store/study.h"

namespace goodput {
namespace {

struct Flags {
  std::string file;
  bool json = false, plain = false;
};

// A study's folder means the study file in it.
std::string study_file(const std::string& given) {
  std::error_code none;
  return std::filesystem::is_directory(given, none) ? study_path(given).string() : given;
}

Result<Exit> show(const Flags& f) {
  const StudyShown shown = TRY(read_study(study_file(f.file)));
  if (f.json)
    fmt::print("{}\n", study_json(shown));
  else
    fmt::print("{}", render_study(shown, text_style(f.plain)));
  return Exit::kOk;
}

Result<Exit> verify(const Flags& f) {
  const std::string file = study_file(f.file);
  const auto study = TRY(Study::open(file, false));
  const size_t points = TRY(study->points()).size();
  const auto differing = TRY(study->verify());
  if (f.json) {
    JsonWriter w;
    w.begin_object().field("study_file", file).field("points", points).key("differing").begin_array();
    for (const std::string& key : differing)
      w.value(key);
    fmt::print("{}\n", w.end_array().end_object().take());
  } else if (differing.empty()) {
    fmt::print("{}: {} points, every record as it was measured\n", file, points);
  } else {
    for (const std::string& key : differing)
      fmt::print("differs: {}\n", key);
  }
  if (differing.empty())
    return Exit::kOk;
  return fail(ErrorCode::kFailed,
              fmt::format("the records of {} of {} points are not those that were stored: measure them again",
                          differing.size(), points),
              file);
}

std::function<Exit()> declare(CLI::App& app) {
  auto f = std::make_shared<Flags>();
  CLI::App* tell = app.add_subcommand("show", "the points of a study and its choice");
  tell->add_flag("--plain", f->plain, "tab-separated, all columns");
  CLI::App* check =
      app.add_subcommand("verify", "holds every point's records against the hash that was stored with them");
  for (CLI::App* sub : {tell, check}) {
    sub->add_option("file", f->file, "a study file, or the folder of a study")->required();
    sub->add_flag("--json", f->json, "one JSON document on stdout");
  }
  app.require_subcommand(1);
  return [f, tell] {
    const auto done = tell->parsed() ? show(*f) : verify(*f);
    return done ? *done : report_error(done.error());
  };
}

}  // namespace

extern const Verb kStudyVerb;
const Verb kStudyVerb{"study", "shows what a study file holds, and checks that it is whole",
                      "  goodput study show goodput-study/20260101-120000\n"
                      "  goodput study show study.db --json\n"
                      "  goodput study verify study.db\n",
                      declare};

}  // namespace goodput
