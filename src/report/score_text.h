// `goodput score`: stored runs judged again by another set of targets, as a table and as JSON.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "metrics/mlperf.h"
#include "metrics/presets.h"
#include "metrics/summary.h"
#include "report/table.h"

namespace goodput {

struct ScoredRun {
  std::string label, phase;  // phase: of a study's point, else empty
  std::vector<ClassRule> rules;
  PointSummary summary;
  std::optional<MlperfVerdict> mlperf;
  double length_s = 0;  // of the whole run, first arrival to last end: MLPerf asks for ten minutes
  bool valid = true;    // as the study or the bench judged it
};

struct ScoreReport {
  std::string source;
  std::optional<Preset> preset;
  bool strict = false;
  std::vector<ScoredRun> runs;
};

// Runs of one label and phase are replicates: their attainment is pooled, with the interval over replicates.
struct ScoredGroup {
  std::string label, phase;
  size_t replicates = 0;
  std::optional<Estimate> attainment;   // absent: not measurable in one of them
  std::optional<Estimate> goodput_rps;  // mean; the interval needs two
};
std::vector<ScoredGroup> score_groups(const ScoreReport&);

std::string render_score(const ScoreReport&, const TextStyle&);
std::string score_json(const ScoreReport&);  // goodput.score/1

}  // namespace goodput
