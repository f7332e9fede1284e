#include "map/measure.h"

#include <array>
#include <cerrno>
#include <csignal>

#include <poll.h>
#include <unistd.h>

#include <fmt/format.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/process.h"
#include "load/job.h"
#include "map/capabilities_text.h"
#include "map/target.h"

namespace goodput {
namespace {

constexpr uint64_t kMostResultBytes = 4ull << 30;
constexpr Nanos kWorkerGrace = seconds(5);

std::string executor_of(const MapOptions& options) {
  if (options.target != TargetKind::kEmbedded)
    return "remote";
  return options.simulate ? "simulated in real time" : "llama";
}

LoadJob job_for(const PointRequest& request, const MapOptions& options, const RunningServer& server) {
  LoadJob job;
  job.base_url = server.base_url;
  job.model_path = options.model.string();
  job.workload_toml = to_toml(request.workload);
  job.rate = request.workload.rate;
  if (request.concurrency > 0)
    job.concurrency = request.concurrency;
  job.seed = request.seed;
  job.warm_up = request.warm_up;
  job.window = request.window;
  job.block_size = request.settings.block_size;
  job.max_model_len = request.settings.max_model_len;
  job.cpus = options.load_cpus;
  job.server_pid = server.pid();
  job.running_usage = options.target == TargetKind::kEmbedded;
  return job;
}

// Lines from the worker's pipe, as they come; never blocks for longer than `limit`.
class LineReader {
 public:
  explicit LineReader(int fd) : fd_(fd) {}
  template <class OnLine>
  void read_for(Nanos limit, OnLine on_line) {
    pollfd ready{.fd = fd_, .events = POLLIN, .revents = 0};
    if (::poll(&ready, 1, static_cast<int>(to_ms(limit))) <= 0)
      return;
    std::array<char, 4096> buffer;
    const ssize_t n = ::read(fd_, buffer.data(), buffer.size());
    if (n <= 0) {
      ::poll(nullptr, 0, static_cast<int>(to_ms(limit)));  // the writer is gone; it is reaped elsewhere
      return;
    }
    pending_.append(buffer.data(), static_cast<size_t>(n));
    for (size_t end; (end = pending_.find('\n')) != std::string::npos; pending_.erase(0, end + 1))
      on_line(std::string_view(pending_).substr(0, end));
  }

 private:
  int fd_;
  std::string pending_;
};

void add_request_facts(Observed& observed, const PointSummary& summary, const std::vector<RequestRecord>& records) {
  uint64_t prompt = 0, cached = 0;
  bool known = false;
  for (const auto& r : records) {
    if (r.scheduled < summary.window.start || r.scheduled >= summary.window.end || !r.prompt_tokens)
      continue;
    prompt += static_cast<uint64_t>(r.prompt_tokens->count());
    if (r.cached_tokens) {
      cached += static_cast<uint64_t>(r.cached_tokens->count());
      known = true;
    }
  }
  if (known && prompt > 0) {
    observed.prefix_query_tokens = prompt;
    observed.prefix_hit_tokens = cached;
    observed.prefix_hit_rate = double(cached) / double(prompt);
  }
  observed.rejected = summary.outcomes[static_cast<size_t>(Outcome::kRejected)];
}

}  // namespace

std::string point_key(const PointRequest& r) {
  std::string settings;
  for (const SettingRow& row : setting_rows())
    settings += fmt::format(" {}={}", row.name, setting_text(r.settings, row.name));
  return fmt::format("{} workload={} rate={:.6g} seed={} window={} warm_up={} concurrency={}{}", r.phase,
                     workload_hash(r.workload).substr(0, 16), r.concurrency > 0 ? 0.0 : r.workload.rate, r.seed,
                     r.window.count(), r.warm_up.count(), r.concurrency, settings);
}

Measurer::Measurer(const MapOptions& options, Study& study, Progress& progress, const std::atomic<bool>& stop)
    : options_(options),
      all_cpus_(allowed_cpus()),
      study_(study),
      progress_(progress),
      stop_(stop),
      scratch_((options.out / "tmp").string()) {}

Result<MeasuredPoint> Measurer::run(const PointRequest& request, double done_before, double share) {
  const std::string key = point_key(request);
  progress_.update(done_before, request.name);
  if (auto known = TRY(stored(key)))
    return std::move(*known);
  if (stop_)
    return fail(ErrorCode::kInterrupted, "interrupted");
  if (!options_.load_cpus.empty())
    TRY(pin_to_cpus(options_.load_cpus));
  auto outcome = measure(request, key, done_before, share);
  TRY(pin_to_cpus(all_cpus_));
  MeasuredPoint measured = TRY(std::move(outcome));
  PointRow row{.phase = request.phase,
               .key = key,
               .settings_json = to_json(request.settings),
               .offered_rate = measured.point.summary.offered_rate,
               .seed = request.seed,
               .executor = measured.point.executor,
               .schedule_hash = measured.point.schedule_hash,
               .summary_json = to_json(measured.point)};
  TRY(study_.add_point(row, measured.records, measured.steps));
  if (measured.capabilities)
    TRY(study_.set_meta("capabilities " + key, encode_capabilities(*measured.capabilities)));
  return measured;
}

Result<std::optional<MeasuredPoint>> Measurer::stored(const std::string& key) const {
  const auto row = TRY(study_.find_point(key));
  if (!row)
    return std::nullopt;
  MeasuredPoint measured;
  measured.point = TRY(point_from_json(row->summary_json));
  measured.records = TRY(study_.records(row->id));
  measured.steps = TRY(study_.steps(row->id));
  if (const auto text = TRY(study_.meta("capabilities " + key)))
    measured.capabilities = TRY(decode_capabilities(*text));
  return measured;
}

Result<MeasuredPoint> Measurer::measure(const PointRequest& request, const std::string& key, double done_before,
                                        double share) {
  TRY(make_directories(scratch_));
  RunningServer server = TRY(start_server(options_, request.settings, scratch_, stop_));
  const std::string job_file = scratch_ + "/job.json", result_file = scratch_ + "/result.bin",
                    log_file = scratch_ + "/load.log";
  TRY(write_file_atomically(job_file, encode_job(job_for(request, options_, server))));
  std::error_code ignored;
  std::filesystem::remove(result_file, ignored);
  Child worker = TRY(Child::spawn({.arguments = {self_path(), "load-worker", job_file, result_file},
                                   .cpus = options_.load_cpus,
                                   .stdout_file = {},
                                   .stderr_file = log_file,
                                   .capture_stdout = true}));
  LineReader lines(worker.stdout_fd());
  const TimePoint began = monotonic_now();
  const double expected = to_seconds(request.warm_up + request.window) + 1;
  while (!worker.poll()) {
    if (stop_)
      return fail(ErrorCode::kInterrupted, "interrupted");
    if (auto dead = server.death()) {
      worker.stop(kWorkerGrace);
      return tl::unexpected(*dead);
    }
    std::string now = request.name;
    lines.read_for(milliseconds(100), [&](std::string_view line) {
      if (const auto counts = parse_progress_line(line))
        now = fmt::format("{}: {} sent, {} done", request.name, counts->sent, counts->done);
    });
    progress_.update(done_before + share * std::min(1.0, to_seconds(monotonic_now() - began) / expected), now);
  }
  if (const int status = *worker.poll(); status != 0) {
    if (auto dead = server.death())
      return tl::unexpected(*dead);
    const auto log = read_file(log_file, 1u << 20);
    return fail(WIFEXITED(status) && WEXITSTATUS(status) == 3 ? ErrorCode::kUnreachable : ErrorCode::kFailed,
                fmt::format("the load generator {}: {}", describe_wait_status(status), log ? *log : std::string()));
  }
  LoadJobResult load = TRY(parse_result(TRY(read_file(result_file, kMostResultBytes))));
  if (load.interrupted)
    return fail(ErrorCode::kInterrupted, "interrupted");

  MeasuredPoint out;
  out.records = TRY(decode_records(load.records));
  out.capabilities = server.capabilities;
  std::optional<uint64_t> peak;
  if (const auto pid = server.pid())
    peak = peak_rss_bytes(*pid);
  out.steps = TRY(server.stop());
  const auto rules = class_rules(request.workload);
  Point& p = out.point;
  p.phase = request.phase;
  p.key = key;
  p.executor = executor_of(options_);
  p.settings = request.settings;
  p.rate = request.workload.rate;
  p.seed = request.seed;
  p.schedule_hash = load.schedule_hash;
  p.primed = load.primed;
  p.summary = summarize(out.records, rules, load.window);
  if (!out.steps.empty() && out.capabilities)
    p.observed = observe(out.steps, out.capabilities->kv.total, load.window);
  p.observed.peak_rss_bytes = peak;
  add_request_facts(p.observed, p.summary, out.records);
  p.audit = load.audit;
  VerdictRules verdict{
      .open_loop = request.concurrency == 0, .expected_hit_rate = std::nullopt, .scheduled = load.scheduled};
  if (request.settings.enable_prefix_caching)
    verdict.expected_hit_rate = load.implied_hit_rate;
  p.verdict = judge_point(out.records, p.summary, p.observed, load.audit, rules, verdict);
  return out;
}

}  // namespace goodput
