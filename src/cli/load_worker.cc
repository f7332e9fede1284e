// goodput load-worker JOB.json OUT: the load generator as a process of its own, for `map`. Reads a job, plays it,
// writes the result in one piece; one JSON line of progress a second on stdout. Not for people: hidden from help.
#include <algorithm>
#include <cstdio>
#include <memory>

#include "base/file.h"
#include "base/limits.h"
#include "base/process.h"
#include "base/progress.h"
#include "cli/interrupt.h"
#include "cli/verb.h"
#include "load/job.h"
#include "load/words.h"
#include "model/model.h"
#include "store/study.h"
#include "workload/schedule.h"

namespace goodput {
namespace {

// Per place and in all: more than a probe's window uses, few enough to be tokenized in a second.
constexpr uint64_t kClosedLoopRequests = 500, kMostClosedLoopRequests = 6000;

struct Flags {
  std::string job, out;
};

Result<Schedule> schedule_of(const LoadJob& job) {
  WorkloadSpec spec = TRY(parse_workload(job.workload_toml, "workload_toml"));
  spec.rate = job.rate;
  ScheduleOptions options;
  options.seed = job.seed;
  options.block_size = job.block_size;
  options.max_model_len = job.max_model_len;
  if (job.concurrency) {
    spec.arrivals = ArrivalKind::kClosed;
    spec.concurrency = *job.concurrency;
    options.requests = std::min(kClosedLoopRequests * static_cast<uint64_t>(*job.concurrency), kMostClosedLoopRequests);
  } else {
    options.duration = job.warm_up + job.window + job.tail;
  }
  std::shared_ptr<const Model> model;
  if (!job.model_path.empty())
    model = TRY(Model::load(job.model_path, true));
  Schedule schedule = TRY(make_schedule(spec, options, model.get()));
  if (!model)
    fill_with_words(schedule);
  return schedule;
}

LoadOptions options_of(const LoadJob& job) {
  LoadOptions o;
  o.base_url = job.base_url;
  o.api = job.api;
  o.request_timeout = job.request_timeout;
  o.drain_limit = job.drain_limit;
  o.concurrency = job.concurrency.value_or(0);
  o.warm_up = job.warm_up;
  o.window = job.window;
  o.server_pid = job.server_pid;
  o.running_usage = job.running_usage;
  o.on_second = [](const LoadCounts& c) {
    std::fputs(progress_line(c).c_str(), stdout);
    std::fflush(stdout);
  };
  return o;
}

// What the requests of the window could find of primed documents: their mix is not the whole schedule's.
double implied_hit_rate(const Schedule& schedule, const LoadResult& load) {
  int64_t shared = 0, prompt = 0;
  for (const RequestRecord& r : load.records) {
    if (r.scheduled < load.window.start || r.scheduled >= load.window.end || !r.prompt_tokens)
      continue;
    shared += schedule.requests[r.index].shared.count();
    prompt += r.prompt_tokens->count();
  }
  return prompt > 0 ? static_cast<double>(shared) / static_cast<double>(prompt) : 0;
}

Result<void> work(const Flags& flags) {
  const LoadJob job = TRY(parse_job(TRY(read_file(flags.job, limits::kMaxStudyFileBytes))));
  if (!job.cpus.empty())
    TRY(pin_to_cpus(job.cpus));
  const Schedule schedule = TRY(schedule_of(job));
  NoProgress progress;
  LoadResult load = TRY(run_load(schedule, options_of(job), nullptr, progress, interrupt_flag()));
  LoadJobResult result;
  result.window = load.window;
  result.audit = load.audit;
  result.interrupted = load.interrupted;
  result.schedule_hash = schedule.hash;
  result.implied_hit_rate = implied_hit_rate(schedule, load);
  result.primed = !schedule.priming.empty();
  result.model = load.model;
  result.problems = std::move(load.problems);
  // What never arrived before the end is no record of this point.
  const size_t never_arrived = std::erase_if(load.records, [&](const RequestRecord& r) {
    return r.outcome == Outcome::kNotSent && !r.dispatched && r.scheduled >= load.window.end;
  });
  result.scheduled = schedule.requests.size() - never_arrived;
  result.records = encode_records(load.records);
  return write_file_atomically(flags.out, encode_result(result));
}

std::function<Exit()> declare(CLI::App& app) {
  auto flags = std::make_shared<Flags>();
  app.add_option("job", flags->job, "JSON job")->required();
  app.add_option("out", flags->out, "result file")->required();
  return [flags] {
    const auto done = work(*flags);
    return done ? Exit::kOk : report_error(done.error());
  };
}

}  // namespace

extern const Verb kLoadWorkerVerb;
const Verb kLoadWorkerVerb{"load-worker", "", "", declare};

}  // namespace goodput
