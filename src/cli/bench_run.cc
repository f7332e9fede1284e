#include "cli/bench_run.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <thread>

#include <fmt/format.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/limits.h"
#include "load/server_identity.h"
#include "load/words.h"
#include "model/model.h"
#include "net/url.h"
#include "report/bench_json.h"
#include "store/study.h"

namespace goodput {
namespace {

constexpr uint64_t kWarmupSeed = 0x7761726d2d757073;  // warm-up prompts must not be the measured ones
constexpr auto kReadyPause = std::chrono::milliseconds(500);

// What the server counted against what was asked: words are only about as many tokens.
void compare_prompts(const Schedule& schedule, BenchReport& report) {
  double asked = 0, seen = 0, n = 0;
  for (size_t i = 0; i < report.load.records.size(); ++i) {
    const auto& tokens = report.load.records[i].prompt_tokens;
    const auto wanted = prompt_tokens(schedule.requests[i]);
    if (!tokens || !wanted)
      continue;
    asked += wanted->count();
    seen += tokens->count();
    ++n;
  }
  if (n > 0)
    report.prompt_asked = asked / n, report.prompt_seen = seen / n;
}

// vLLM repeats request 0, which then meets its own prefix in the cache; these are of the same kind and new.
Result<void> add_warmups(const BenchPlan& p, const Tokenizer* tokenizer, Schedule& schedule) {
  if (p.warmups == 0)
    return {};
  WorkloadSpec spec = p.spec;
  spec.arrivals = ArrivalKind::kClosed;
  spec.trace.reset();
  ScheduleOptions options = p.schedule;
  options.seed ^= kWarmupSeed;
  options.duration.reset();
  options.requests = p.warmups;
  Schedule warm = TRY(make_schedule(spec, options, tokenizer));
  for (ScheduledRequest& r : warm.requests)
    schedule.priming.push_back(std::move(r));
  return {};
}

// Until something answers at the server's address, or the wait is over: then the run itself says what is wrong.
void wait_until_ready(const BenchPlan& p, Progress& progress, const std::atomic<bool>& stop) {
  const TimePoint end = monotonic_now() + p.ready_wait;
  const auto url = parse_url(p.load.base_url);
  bool told = false;
  while (url && !stop && monotonic_now() < end) {
    if (const auto routes = find_routes(*url, p.load.transport); routes && identify(*url, p.load, *routes))
      return;
    if (!told)
      progress.note("waiting for the server at " + p.load.base_url);
    told = true;
    std::this_thread::sleep_for(kReadyPause);
  }
}

}  // namespace

Result<Schedule> bench_schedule(const BenchPlan& p) {
  std::shared_ptr<const Model> model;
  if (!p.tokenizer.empty())
    model = TRY(Model::load(p.tokenizer, true));
  Schedule schedule = TRY(make_schedule(p.spec, p.schedule, model.get()));
  TRY(add_warmups(p, model.get(), schedule));
  if (!model)
    fill_with_words(schedule);
  return schedule;
}

Result<BenchReport> run_bench(const BenchPlan& p, const Schedule& schedule, Progress& progress,
                              const std::atomic<bool>& stop) {
  for (const std::string& note : p.notes)
    progress.note(note);
  BenchReport report = p.report;
  report.schedule_hash = schedule.hash;
  report.scheduled = schedule.requests.size();
  report.num_prompts = p.schedule.requests.value_or(report.scheduled);
  report.distinct_prompts = schedule.distinct_prompts;
  for (const ScheduledRequest& r : schedule.requests)
    report.asked_prompt.push_back(prompt_tokens(r).value_or(Tokens(0)).count());
  if (schedule.trace)
    for (const std::string& note : schedule.trace->notes)
      progress.note(note);
  wait_until_ready(p, progress, stop);
  progress.phase(1, 1, "bench " + p.load.base_url,
                 p.load.window > Nanos(0) ? std::optional(p.load.warm_up + p.load.window) : std::nullopt);
  progress.note(fmt::format("seed {}, schedule {}, {} requests", p.schedule.seed, schedule.hash.substr(0, 12),
                            schedule.requests.size()));
  report.load = TRY(run_load(schedule, p.load, nullptr, progress, stop));
  compare_prompts(schedule, report);
  if (!p.load.ignore_eos)  // the length was a limit, not a wish
    for (RequestRecord& r : report.load.records)
      r.asked_output = Tokens(0);
  const auto& records = report.load.records;
  report.summary = summarize(records, report.rules, report.load.window);
  VerdictRules rules;
  rules.open_loop = p.load.concurrency == 0;
  rules.scheduled = schedule.requests.size();
  report.verdict = judge_point(records, report.summary, Observed{}, report.load.audit, report.rules, rules);
  return report;
}

Result<std::vector<std::string>> save_bench(const BenchPlan& p, const BenchReport& report) {
  std::vector<std::string> written;
  if (p.output.save) {
    const std::filesystem::path path =
        p.output.directory / (p.output.file_name.empty() ? bench_file_name(report) : p.output.file_name.string());
    std::string text;
    std::error_code ignored;
    if (p.output.append && std::filesystem::exists(path, ignored)) {
      text = TRY(read_file(path, limits::kMaxResultFileBytes));
      if (!text.empty() && !text.ends_with('\n'))
        text += '\n';
    }
    TRY(write_file_atomically(path, text + bench_json(report, p.output.detailed)));
    written.push_back(path.string());
  }
  if (!p.output.records.empty()) {
    TRY(write_file_atomically(p.output.records, encode_records(report.load.records)));
    written.push_back(p.output.records);
  }
  return written;
}

}  // namespace goodput
