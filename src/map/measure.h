// One measured point: a fresh server, a load generator in a process of its own, and everything both of them know, safe
// in the study file before the next point begins. A point that the file already holds is read, not repeated.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "base/progress.h"
#include "base/result.h"
#include "map/plan.h"
#include "metrics/record.h"
#include "scheduler/capabilities.h"
#include "store/point.h"
#include "store/study.h"

namespace goodput {

struct PointRequest {
  std::string phase;  // "probe", "measure", "confirm", "background"
  std::string name;   // what people see
  Settings settings;
  WorkloadSpec workload;  // with its rate
  uint64_t seed = 1;
  Nanos warm_up, window;
  int concurrency = 0;  // > 0: closed loop
};

struct MeasuredPoint {
  Point point;
  std::vector<RequestRecord> records;
  std::vector<StepRecord> steps;
  std::optional<Capabilities> capabilities;  // of our own server
};

// A name for the point that is equal for equal requests and for nothing else.
std::string point_key(const PointRequest&);

class Measurer {
 public:
  // Everything outlives the measurer. Scratch files go to options.out / "tmp".
  Measurer(const MapOptions&, Study&, Progress&, const std::atomic<bool>& stop);
  // Measures, or reads what was measured before. kInterrupted when `stop` was set: nothing is stored of that point.
  // `done_before` and `share` place the point in its phase for the progress display.
  Result<MeasuredPoint> run(const PointRequest&, double done_before, double share);

 private:
  Result<MeasuredPoint> measure(const PointRequest&, const std::string& key, double done_before, double share);
  Result<std::optional<MeasuredPoint>> stored(const std::string& key) const;

  const MapOptions& options_;
  const std::vector<int> all_cpus_;  // this process measures from the generator's processors and computes on all
  Study& study_;
  Progress& progress_;
  const std::atomic<bool>& stop_;
  std::string scratch_;
};

}  // namespace goodput
