// The phases of a map in their order, each in a file of its own: mapper_probe.cc, mapper_screen.cc, mapper_measure.cc,
// mapper_confirm.cc. Used by run_map alone. One thread; what it found is in result_.
#pragma once

#include <atomic>
#include <string>
#include <vector>

#include "base/progress.h"
#include "base/result.h"
#include "map/measure.h"
#include "map/plan.h"
#include "map/probe.h"
#include "map/result.h"

namespace goodput {

inline constexpr int kMapPhases = 5;

class Mapper {
 public:
  Mapper(const MapOptions& options, MapPlan plan, Study& study, Progress& progress, const std::atomic<bool>& stop)
      : options_(options),
        plan_(std::move(plan)),
        progress_(progress),
        stop_(stop),
        measurer_(options, study, progress, stop) {}

  Result<MapResult> run();

 private:
  Result<void> probe();
  Result<void> screen_settings();
  Result<void> bracket_by_backlog();
  Result<void> measure();
  Result<void> confirm();
  // One line of the comparison that confirms the choice.
  struct Arm {
    std::string phase, name;
    WorkloadSpec workload;  // with its rate
    Settings settings;
    int replicates;
    std::vector<MeasuredPoint> runs;
  };
  std::vector<Arm> arms_of(const Capacity& best) const;
  Result<void> replicate(std::vector<Arm>&);
  void choose(const Capacity& best, double rate, const std::vector<MeasuredPoint>& runs);
  Rule rule_of(const Capacity& rule, const Capacity& best, const std::vector<Arm>&) const;
  void compare_rules(const Capacity& best, const std::vector<Arm>&);
  void draw_ttft_map(const Capacity& best, double rate, const std::vector<MeasuredPoint>& runs);
  void note_drift();
  void add_prediction(const PointRequest&, const MeasuredPoint&);
  std::vector<Capacity*> to_measure();
  WorkloadSpec workload_at(double rate) const;

  const MapOptions& options_;
  const MapPlan plan_;
  Progress& progress_;
  const std::atomic<bool>& stop_;
  Measurer measurer_;
  ProbeFindings found_;
  std::vector<PredictionError::Row> errors_;
  MapResult result_;
};

}  // namespace goodput
