#include "map/map.h"

#include <algorithm>
#include <fstream>
#include <thread>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/random.h"
#include "base/text.h"
#include "map/choose.h"
#include "map/frontier.h"
#include "map/measure.h"
#include "map/operating.h"
#include "map/predict.h"
#include "map/probe.h"
#include "map/screen.h"
#include "map/target.h"
#include "map/timeline.h"
#include "map/ttft_map.h"
#include "store/study.h"

namespace goodput {
namespace {

constexpr int kPhases = 5;

std::string machine_name() {
  std::ifstream file("/proc/cpuinfo");
  std::string line, model = "unknown processor";
  while (std::getline(file, line))
    if (line.starts_with("model name")) {
      model = trim(std::string_view(line).substr(line.find(':') + 1));
      break;
    }
  return fmt::format("{} × {}", std::thread::hardware_concurrency(), model);
}

// Only one process works on a study at a time; the kernel lets go of the lock however that process ends.
class StudyLock {
 public:
  static Result<StudyLock> take(const std::filesystem::path& out) {
    const auto path = out / "lock";
    StudyLock lock;
    lock.fd_ = ::open(path.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0644);
    if (lock.fd_ < 0)
      return fail(ErrorCode::kIo, "cannot write here", path.string());
    if (::flock(lock.fd_, LOCK_EX | LOCK_NB) != 0)
      return fail(ErrorCode::kUsage, "another goodput is working on this study; wait for it or choose another --out",
                  out.string());
    return lock;
  }
  StudyLock(StudyLock&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  StudyLock& operator=(StudyLock&&) = delete;
  ~StudyLock() {
    if (fd_ >= 0)
      ::close(fd_);
  }

 private:
  StudyLock() = default;
  int fd_ = -1;
};

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
                                               const Settings&, double rate, int n, double& done, double share);
  void choose(const Capacity& best, double rate, const std::vector<MeasuredPoint>& runs);
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
};

WorkloadSpec Mapper::workload_at(double rate) const {
  WorkloadSpec workload = found_.workload;
  workload.rate = rate;
  return workload;
}

Result<void> Mapper::probe() {
  progress_.phase(1, kPhases, "probe", plan_.probe_time);
  std::vector<MeasuredPoint> unloaded, loaded;
  const double share = 1.0 / double(plan_.probes.size());
  for (size_t i = 0; i < plan_.probes.size(); ++i) {
    const auto& p = plan_.probes[i];
    WorkloadSpec workload = options_.workload;
    if (p.only_class)
      workload.classes = {workload.classes[*p.only_class]};
    workload.arrivals = ArrivalKind::kClosed;
    workload.concurrency = p.concurrency;
    MeasuredPoint point = TRY(measurer_.run({.phase = "probe",
                                             .name = p.name,
                                             .settings = p.settings,
                                             .workload = workload,
                                             .seed = mix64(options_.seed, 1000 + i),
                                             .warm_up = milliseconds(300),
                                             .window = p.length,
                                             .concurrency = p.concurrency},
                                            double(i) * share, share));
    result_.points.push_back(point.point);
    (p.only_class ? unloaded : loaded).push_back(std::move(point));
  }
  found_ = TRY(read_probe(options_.workload, unloaded, loaded));
  result_.workload = found_.workload;
  result_.workload_hash = workload_hash(found_.workload);
  result_.unloaded_ms = found_.unloaded_ms;
  for (const auto& c : found_.workload.classes)
    progress_.note(fmt::format("{}: unloaded TTFT {:.1f} ms, TPOT {:.2f} ms; targets {}", c.name,
                               found_.unloaded_ms.at(c.name).first, found_.unloaded_ms.at(c.name).second,
                               c.targets.empty() ? "none" : to_text(c.targets)));
  if (found_.fit) {
    result_.cost = found_.fit->cost;
    result_.cost_median_error = found_.fit->median_relative_error;
    result_.cost_p90_error = found_.fit->p90_relative_error;
    result_.timelines = TRY(example_timelines(found_.fit->cost));
  }
  return {};
}

Result<void> Mapper::screen_settings() {
  progress_.phase(2, kPhases, "screen", plan_.screen_time);
  ScreenOptions options{.workload = found_.workload,
                        .floor = options_.floor,
                        .seed = mix64(options_.seed, 2),
                        .requests = plan_.screen_requests,
                        .finalists = plan_.measured_settings + 1,
                        .finalist_requests = plan_.finalist_requests,
                        .threads = static_cast<int>(std::max<size_t>(1, allowed_cpus().size()))};
  result_.capacity = TRY(screen(
      plan_.grid, *found_.engine, options,
      [&](double done) { progress_.update(done, fmt::format("{} settings on virtual time", plan_.grid.size())); },
      stop_));
  if (const Capacity& top = result_.capacity.front(); top.predicted)
    progress_.note(fmt::format("predicted best: {} with {:.2f} good requests/s at {:.2f}/s", short_text(top.settings),
                               top.predicted->goodput_rps, top.predicted->rate));
  return {};
}

// Without a step log there is no simulator: the backlog's rate is the upper end of what each setting can sustain.
Result<void> Mapper::bracket_by_backlog() {
  progress_.phase(2, kPhases, "backlog", plan_.probe_time);
  std::vector<Settings> settings =
      options_.target == TargetKind::kRemote ? std::vector{options_.grid.base} : plan_.grid;
  if (options_.target == TargetKind::kLaunched) {
    std::vector<std::string> seen;
    std::erase_if(settings, [&](const Settings& s) {
      const auto command = render_launch(options_.launch, 1, s);
      if (!command || std::ranges::find(seen, *command) != seen.end())
        return true;
      seen.push_back(*command);
      return false;
    });
  }
  const double share = 1.0 / double(settings.size());
  for (size_t i = 0; i < settings.size(); ++i) {
    WorkloadSpec workload = found_.workload;
    workload.arrivals = ArrivalKind::kClosed;
    workload.concurrency = std::max(2 * settings[i].max_num_seqs, 16);
    const MeasuredPoint point = TRY(measurer_.run({.phase = "probe",
                                                   .name = "backlog, " + short_text(settings[i]),
                                                   .settings = settings[i],
                                                   .workload = workload,
                                                   .seed = mix64(options_.seed, 2000 + i),
                                                   .warm_up = seconds(1),
                                                   .window = std::max(plan_.measure_window / 3, seconds(2)),
                                                   .concurrency = workload.concurrency},
                                                  double(i) * share, share));
    Capacity c{.settings = settings[i]};
    c.offline_tokens_per_s = point.point.summary.throughput.output_tokens_per_s;
    // Stands in for a predicted capacity when rates are chosen; it is not a capacity and is not reported as one.
    c.predicted = Operating{.rate = point.point.summary.throughput.requests_per_s};
    result_.points.push_back(point.point);
    result_.capacity.push_back(std::move(c));
  }
  std::ranges::stable_sort(result_.capacity, std::greater{}, [](const Capacity& c) { return c.predicted->rate; });
  result_.notes.push_back(
      "The server's own step log is not available, so nothing is simulated: rates are shares of each "
      "setting's backlog throughput, and only measured settings are compared.");
  return {};
}

// The best by prediction, the largest batch, the best static batch, then the next best, each once.
std::vector<Capacity*> Mapper::to_measure() {
  std::vector<Capacity*> chosen;
  auto& all = result_.capacity;
  const auto add = [&](const Capacity* c) {
    if (c && c->predicted && c->predicted->rate > 0 && static_cast<int>(chosen.size()) < plan_.measured_settings &&
        std::ranges::find(chosen, c) == chosen.end())
      chosen.push_back(const_cast<Capacity*>(c));
  };
  add(&all.front());
  add(largest_batch(all));
  for (const auto& c : all)
    if (c.settings.batching == Batching::kStatic && plan_.measured_settings > 2) {
      add(&c);
      break;
    }
  for (const auto& c : all)
    add(&c);
  return chosen;
}

void Mapper::add_prediction(const PointRequest& request, const Point& measured) {
  if (!found_.engine)
    return;
  auto predicted = predict(request, *found_.engine);
  if (!predicted) {
    result_.notes.push_back("No prediction for " + measured.key + ": " + describe(predicted.error()));
    return;
  }
  if (measured.verdict.valid())
    errors_.push_back(prediction_row(measured, predicted->point));
  // Its prompts have the same lengths and sharing but no text, so its own hash differs; readers pair the two by this
  // one.
  predicted->point.schedule_hash = measured.schedule_hash;
  result_.points.push_back(std::move(predicted->point));
}

Result<void> Mapper::measure() {
  progress_.phase(3, kPhases, "measure", plan_.measure_time);
  struct Job {
    Capacity* capacity;
    double rate;
  };
  std::vector<Job> jobs;
  for (Capacity* c : to_measure())
    for (const double fraction : plan_.fractions)
      jobs.push_back({c, fraction * c->predicted->rate});
  // Random order, so that a drift of the machine does not look like a difference between settings.
  Random order(options_.seed, "order of points");
  for (size_t i = jobs.size(); i > 1; --i)
    std::swap(jobs[i - 1], jobs[static_cast<size_t>(order.uniform_int(0, static_cast<int64_t>(i) - 1))]);
  const auto rules = class_rules(found_.workload);
  const double share = jobs.empty() ? 1 : 1.0 / double(jobs.size());
  for (size_t i = 0; i < jobs.size(); ++i) {
    const PointRequest request{.phase = "measure",
                               .name = short_text(jobs[i].capacity->settings),
                               .settings = jobs[i].capacity->settings,
                               .workload = workload_at(jobs[i].rate),
                               .seed = mix64(options_.seed, 3),  // the same requests for every setting
                               .warm_up = plan_.warm_up,
                               .window = plan_.measure_window};
    const MeasuredPoint point = TRY(measurer_.run(request, double(i) * share, share));
    result_.points.push_back(point.point);
    add_prediction(request, point.point);
    const Operating there = operating_at(jobs[i].rate, point.records, rules, point.point.summary.window);
    auto& measured = jobs[i].capacity->measured;
    if (point.point.verdict.valid() && meets_floor(there, options_.floor) && (!measured || there.rate > measured->rate))
      measured = there;
    if (!point.point.verdict.valid())
      result_.notes.push_back(fmt::format("INVALID at {:.2f}/s with {}: {}", jobs[i].rate, short_text(request.settings),
                                          fmt::join(point.point.verdict.reasons, "; ")));
  }
  return {};
}

Result<std::vector<MeasuredPoint>> Mapper::replicate(const std::string& phase, const std::string& name,
                                                     const WorkloadSpec& workload, const Settings& settings,
                                                     double rate, int n, double& done, double share) {
  std::vector<MeasuredPoint> runs;
  for (int i = 0; i < n; ++i) {
    WorkloadSpec spec = workload;
    spec.rate = rate;
    const PointRequest request{
        .phase = phase,
        .name = name,
        .settings = settings,
        .workload = spec,
        .seed = mix64(options_.seed, 100 + static_cast<uint64_t>(i)),  // fresh: never the search's
        .warm_up = plan_.warm_up,
        .window = plan_.confirm_window};
    runs.push_back(TRY(measurer_.run(request, done, share)));
    done += share;
    result_.points.push_back(runs.back().point);
    if (phase == "confirm")
      add_prediction(request, runs.back().point);
  }
  return runs;
}

void Mapper::choose(const Capacity& best, double rate, const std::vector<MeasuredPoint>& runs) {
  Choice choice;
  choice.settings = best.settings;
  choice.offered_rate = rate;
  choice.goodput = goodput_estimate(runs, [](const PointSummary& s) { return s.goodput_rps; });
  if (found_.engine && best.predicted) {
    choice.capacity_rate = best.predicted->rate;
    choice.headroom = best.predicted->rate / rate - 1;
    choice.not_separable_from = not_separable(result_.capacity, best.settings, 0.05);
  }
  choice.undecided = undecided(runs, options_.floor);
  if (options_.target == TargetKind::kLaunched)
    choice.flags = render_launch(options_.launch, 0, best.settings).value_or("");
  if (options_.target == TargetKind::kEmbedded)
    choice.flags = "goodput serve " + serve_flags(best.settings);
  choice.why = fmt::format(
      "{} sustains the most good requests: every class stays at or above {:.0f} % attainment up to about "
      "{:.2f} requests/s.",
      short_text(best.settings), 100 * options_.floor, choice.capacity_rate.value_or(rate));
  result_.chosen = std::move(choice);
}

Result<void> Mapper::confirm() {
  progress_.phase(4, kPhases, "confirm", plan_.confirm_time);
  const Capacity* best = best_measured(result_.capacity);
  if (!best) {
    result_.notes.push_back(
        fmt::format("No measured point kept every class at or above {:.0f} % attainment: there is no choice. "
                    "Loosen the targets or use a faster machine.",
                    100 * options_.floor));
    return {};
  }
  const Capacity* largest = largest_batch(result_.capacity);
  const int n = plan_.replicates;
  const double share = 1.0 / double(2 * n + plan_.background_replicates);
  double done = 0;
  const double rate = confirmation_rate(*best);
  const auto runs = TRY(replicate("confirm", "the choice", found_.workload, best->settings, rate, n, done, share));
  choose(*best, rate, runs);

  const auto rule_of = [&](const Capacity& c) -> Result<Rule> {
    Rule rule{.settings = c.settings};
    if (c.settings == best->settings) {
      rule.goodput = result_.chosen->goodput;
      rule.regret = Estimate{0, 0.0, 0.0};
      rule.measured = true;
      return rule;
    }
    const double rule_rate = confirmation_rate(c);
    if (rule_rate <= 0) {
      rule.regret.value = 1;  // it has no capacity at all
      return rule;
    }
    const auto rule_runs =
        TRY(replicate("confirm", "the rule", found_.workload, c.settings, rule_rate, n, done, share));
    rule.goodput = goodput_estimate(rule_runs, [](const PointSummary& s) { return s.goodput_rps; });
    rule.regret = regret_estimate(rule_runs, runs);
    rule.measured = true;
    return rule;
  };
  if (largest)
    result_.largest_batch = TRY(rule_of(*largest));
  if (const Capacity* offline = best_offline(result_.capacity)) {
    if (largest && offline->settings == largest->settings) {
      result_.offline_throughput = result_.largest_batch;
    } else if (offline->settings == best->settings || !found_.engine) {
      result_.offline_throughput = TRY(rule_of(*offline));
    } else if (offline->predicted && best->predicted) {
      // Simulated on both sides: the minutes go to the choice and to the rule that people follow.
      result_.offline_throughput =
          Rule{.settings = offline->settings,
               .goodput = {.value = offline->predicted->goodput_rps},
               .regret = {.value = 1 - offline->predicted->goodput_rps / best->predicted->goodput_rps}};
    }
  }

  const auto interactive = [](const PointSummary& s) { return s.interactive_goodput_rps; };
  WorkloadSpec quiet = found_.workload;
  double kept = 0, all = 0;
  for (const auto& c : quiet.classes) {
    all += c.share;
    if (c.targets.interactive())
      kept += c.share;
  }
  std::erase_if(quiet.classes, [](const ClassSpec& c) { return !c.targets.interactive(); });
  if (!quiet.classes.empty() && kept < all && plan_.background_replicates > 0) {
    // The same interactive arrivals per second, alone.
    const auto alone = TRY(replicate("background", "without background", quiet, best->settings, rate * kept / all,
                                     plan_.background_replicates, done, share));
    result_.background =
        BackgroundCost{goodput_estimate(runs, interactive), goodput_estimate(alone, interactive), true};
  }
  if (!runs.empty()) {
    result_.ttft_map = TtftMap{.settings = best->settings, .measured = {}, .predicted = {}};
    std::vector<RequestRecord> records;
    for (const auto& r : runs)
      records.insert(records.end(), r.records.begin(), r.records.end());
    result_.ttft_map->measured = ttft_cells(records);
    if (found_.engine) {
      PointRequest longer{.phase = "ttft map",
                          .name = "",
                          .settings = best->settings,
                          .workload = workload_at(rate),
                          .seed = mix64(options_.seed, 5),
                          .warm_up = seconds(2),
                          .window = seconds(120)};
      if (auto predicted = predict(longer, *found_.engine))
        result_.ttft_map->predicted = ttft_cells(predicted->records);
    }
  }
  return {};
}

Result<MapResult> Mapper::run() {
  result_.floor = options_.floor;
  result_.seed = options_.seed;
  result_.machine = machine_name();
  result_.workload = options_.workload;
  result_.workload_hash = workload_hash(options_.workload);
  TRY(probe());
  if (options_.stop_after == StopAfter::kProbe)
    return std::move(result_);
  if (found_.engine)
    TRY(screen_settings());
  else
    TRY(bracket_by_backlog());
  if (options_.stop_after == StopAfter::kScreen) {
    if (found_.engine)
      result_.frontier = frontier_of(result_.capacity);
    return std::move(result_);
  }
  TRY(measure());
  if (options_.stop_after != StopAfter::kMeasure)
    TRY(confirm());
  if (!found_.engine)
    for (auto& c : result_.capacity)
      c.predicted.reset();
  if (!errors_.empty())
    result_.prediction_error = prediction_error(std::move(errors_));
  sort_by_goodput(result_.capacity);
  result_.frontier = frontier_of(result_.capacity);
  return std::move(result_);
}

// Everything that decides what is measured; a study is only resumed with the same.
std::string fingerprint(const MapOptions& o) {
  std::string grid;
  if (const auto all = settings_of(o.grid))
    for (const auto& s : *all)
      grid += short_text(s) + ";";
  return fmt::format(
      "workload {}\nmodel {}\nlaunch {}\nbase_url {}\nsimulate {}\nkv_tokens {}\nbudget {}\nseed {}\nfloor {}\ngrid {}",
      workload_hash(o.workload), o.model.string(), o.launch, o.base_url, o.simulate, o.kv_tokens.count(),
      o.budget.count(), o.seed, o.floor, grid);
}

}  // namespace

std::filesystem::path study_path(const std::filesystem::path& out) { return out / "study.db"; }

Result<MapResult> run_map(const MapOptions& options, const std::vector<std::string>& arguments, Progress& progress,
                          const std::atomic<bool>& stop) {
  MapPlan plan = TRY(make_plan(options));
  if (options.target == TargetKind::kLaunched)
    TRY(render_launch(options.launch, 0, options.grid.base));
  TRY(make_directories(options.out));
  const auto path = study_path(options.out);
  const bool exists = std::filesystem::exists(path);
  if (exists && !options.resume)
    return fail(ErrorCode::kUsage, "a study is already here; continue it with --resume or choose another --out",
                options.out.string());
  if (!exists && options.resume)
    return fail(ErrorCode::kUsage, "there is no study to resume", path.string());
  const StudyLock lock = TRY(StudyLock::take(options.out));
  auto study = TRY(Study::open(path, !exists));
  const std::string print = fingerprint(options);
  if (const auto stored = TRY(study->meta("options")); stored && *stored != print)
    return fail(ErrorCode::kUsage,
                fmt::format("the study was begun with other options\n-- then\n{}\n-- now\n{}", *stored, print),
                path.string());
  TRY(study->set_meta("options", print));
  if (!TRY(study->meta("arguments")))
    TRY(study->set_meta("arguments", fmt::format("{}", fmt::join(arguments, "\n"))));
  if (!TRY(study->meta("started")))
    TRY(study->set_meta("started", fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(unix_seconds()))));
  TRY(study->set_meta("workload", to_toml(options.workload)));
  Mapper mapper(options, std::move(plan), *study, progress, stop);
  MapResult result = TRY(mapper.run());
  result.study_file = path.string();
  result.started = TRY(study->meta("started")).value_or("");
  result.model = options.model.filename().string();
  return result;
}

Result<std::vector<std::string>> stored_arguments(const std::filesystem::path& out) {
  const auto path = study_path(out);
  if (!std::filesystem::exists(path))
    return fail(ErrorCode::kUsage, "there is no study to resume", path.string());
  const auto study = TRY(Study::open(path, false));
  const auto stored = TRY(study->meta("arguments"));
  std::vector<std::string> arguments;
  if (stored && !stored->empty())
    for (const auto part : split(*stored, '\n'))
      arguments.emplace_back(part);
  return arguments;
}

Result<void> store_document(const std::filesystem::path& out, const std::string& json) {
  const auto study = TRY(Study::open(study_path(out), false));
  return study->set_meta("result", json);
}

}  // namespace goodput
