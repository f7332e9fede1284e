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
  Result<std::vector<MeasuredPoint>> replicate(const std::string& phase, const std::string& name, const WorkloadSpec&,
                                               const Settings&, double rate, int n);
  void choose(const Capacity& best, double rate, const std::vector<MeasuredPoint>& runs);
  Result<Rule> measure_rule(const Capacity& rule, const Capacity& best, const std::vector<MeasuredPoint>& runs);
  Result<void> compare_rules(const Capacity& best, const std::vector<MeasuredPoint>& runs);
  Result<void> compare_background(const Capacity& best, double rate, const std::vector<MeasuredPoint>& runs);
  void draw_ttft_map(const Capacity& best, double rate, const std::vector<MeasuredPoint>& runs);
  void add_prediction(const PointRequest&, const Point& measured);
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
  double confirm_share_ = 0, confirmed_ = 0;  // of the confirm phase, for the progress display
};

}  // namespace goodput
