// What a map found: plain values, computed from the study file alone, rendered by `report`. Times in milliseconds,
// rates in requests per second, absent = nullopt.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "metrics/stats.h"
#include "scheduler/cost.h"
#include "scheduler/settings.h"
#include "store/point.h"
#include "workload/spec.h"

namespace goodput {

// How a setting does at one rate: the coordinates of the frontier.
struct Operating {
  double rate = 0;  // offered
  double goodput_rps = 0;
  std::vector<std::pair<std::string, double>> attainment_by_class;
  std::optional<double> interactive_ttft_p95_ms, interactive_gap_p95_ms;
};

// The largest rate at which every class's attainment is at or above the floor.
struct Capacity {
  Settings settings;
  std::optional<Operating>
      predicted;                      // by the simulator, at its capacity; absent: none found (no rate meets the floor)
  std::optional<Operating> measured;  // the largest measured rate that met the floor; absent: not measured, or none did
  std::optional<double> offline_tokens_per_s;  // output tokens per second of a backlog: what an offline chart shows
  // The better evidenced of the two.
  const std::optional<Operating>& best() const { return measured ? measured : predicted; }
};

struct Choice {
  Settings settings;
  double offered_rate = 0;              // of the confirmation runs
  Estimate goodput;                     // from fresh confirmation runs, requests per second
  std::optional<double> capacity_rate;  // predicted or measured capacity
  double headroom = 0;                  // capacity ÷ offered rate − 1
  std::vector<Settings> not_separable_from;
  std::string flags;       // exactly what to set
  std::string why;         // one or two sentences
  bool undecided = false;  // an interval straddles the floor
};

// What following a rule of thumb would have cost.
struct Rule {
  Settings settings;
  Estimate goodput;       // requests per second
  Estimate regret;        // 1 − its goodput ÷ the choice's, signed
  bool measured = false;  // false: simulated
};

struct BackgroundCost {  // interactive goodput with and without the classes that have no token-time target
  std::optional<Estimate> with, without;  // requests per second
  bool measured = false;
};

// Relative errors of prediction, predicted ÷ measured − 1, as shares (0.1 = 10 %).
struct RelativeErrors {
  std::optional<double> ttft_p50, tpot_p50, goodput;
};
// Two questions are kept apart. `as_predicted`: how far off was what the probe's costs said? `at_speed`: how far off is
// the model once the machine's own change of speed since the probe is taken out, by repeating the prediction with all
// costs multiplied by the point's slowdown?
struct PredictionError {
  struct Row {
    std::string key;
    Settings settings;
    double rate;
    std::optional<double> slowdown;  // of the machine in this point's window, see slowdown() in predict.h
    RelativeErrors as_predicted, at_speed;
  };
  std::vector<Row> rows;
  RelativeErrors as_predicted, at_speed;  // over the rows: the largest magnitude, signed
};

// One iteration of a timeline: who ran in it.
struct TimelineStep {
  double start_ms = 0, end_ms = 0;
  struct Lane {
    uint64_t request;
    int tokens;
    bool decode;
  };
  std::vector<Lane> lanes;
};
struct Timeline {
  std::string title;  // "continuous", "static"
  std::vector<TimelineStep> steps;
  std::vector<std::pair<uint64_t, double>> ended_ms;  // when each request's last token came
};

// Median TTFT of requests by prompt length and by the sequences running when they arrived.
struct TtftCell {
  int prompt_low = 0, prompt_high = 0;    // tokens, [low, high)
  int running_low = 0, running_high = 0;  // [low, high)
  size_t n = 0;
  std::optional<double> ttft_p50_ms;
};
struct TtftMap {
  Settings settings;
  std::vector<TtftCell> measured, predicted;
};

struct MapResult {
  std::string study_file, report;       // paths
  std::string version, machine, model;  // "goodput 0.1.0", "2 × Intel …", "tiny q8_0 …"
  std::string started;                  // ISO 8601, UTC
  WorkloadSpec workload;                // targets resolved
  std::string workload_hash;
  double floor = 0.90;  // attainment floor
  uint64_t seed = 1;
  std::optional<StepCost> cost;
  std::optional<double> cost_median_error, cost_p90_error;       // of the fit, as shares
  std::map<std::string, std::pair<double, double>> unloaded_ms;  // class → (TTFT p50, TPOT p50)
  std::vector<Point> points;       // every measured point and its prediction; simulated capacities of the screen
  std::vector<Capacity> capacity;  // all settings, best first
  std::vector<Capacity> frontier;  // those that no other beats in goodput, TTFT p95 and gap p95 at once
  std::optional<Choice> chosen;    // absent: stopped early, or nothing met the floor
  std::optional<Rule> largest_batch, offline_throughput;
  std::optional<BackgroundCost> background;
  std::optional<PredictionError> prediction_error;
  std::vector<Timeline> timelines;  // static and continuous on the small example
  std::optional<TtftMap> ttft_map;
  std::vector<std::string> notes;  // what a reader must know: INVALID points, missing budget, …
};

}  // namespace goodput
