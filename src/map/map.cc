#include "map/map.h"

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
#include "base/text.h"
#include "map/frontier.h"
#include "map/mapper.h"
#include "map/predict.h"
#include "map/target.h"
#include "store/study.h"

namespace goodput {
namespace {

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

WorkloadSpec Mapper::workload_at(double rate) const {
  WorkloadSpec workload = found_.workload;
  workload.rate = rate;
  return workload;
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
  note_drift();
  if (!errors_.empty())
    result_.prediction_error = prediction_error(std::move(errors_));
  sort_by_goodput(result_.capacity);
  result_.frontier = frontier_of(result_.capacity);
  return std::move(result_);
}

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
