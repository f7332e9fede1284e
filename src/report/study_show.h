// What `goodput study show` prints: the points of a study file, as text or as JSON. Works on any study, finished or
// not.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "report/table.h"
#include "store/point.h"
#include "store/study.h"

namespace goodput {

struct StudyShown {
  std::string file;
  std::vector<PointRow> points;
  std::vector<Point> parsed;          // of the same order
  std::optional<std::string> result;  // the map's JSON as it stood at the end (meta "result"); absent: not finished
};

// Reads what is shown. Errors name the point that cannot be read.
Result<StudyShown> read_study(const std::string& file);
std::string render_study(const StudyShown&, const TextStyle&);
// {"schema":"goodput.study/1","study_file":…,"points":[…]}; a finished map's own document where the study has one.
std::string study_json(const StudyShown&);

}  // namespace goodput
