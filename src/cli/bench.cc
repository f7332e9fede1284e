// goodput bench: one endpoint, one load, every number defined in docs/method.md.
#include <cstdio>
#include <cstdlib>
#include <memory>

#include <unistd.h>

#include <fmt/format.h>

#include "base/file.h"
#include "base/limits.h"
#include "base/process.h"
#include "base/text.h"
#include "cli/cpus.h"
#include "cli/interrupt.h"
#include "cli/verb.h"
#include "load/load.h"
#include "load/protocol.h"
#include "load/words.h"
#include "model/model.h"
#include "report/bench_table.h"
#include "report/terminal_progress.h"
#include "store/study.h"
#include "workload/schedule.h"

namespace goodput {
namespace {

struct Flags {
  std::string base_url, endpoint = "completions", model, extra_body, workload, rate = "inf", duration, warm_up = "0s",
                        tokenizer, save, cpus;
  std::vector<std::string> targets, headers;
  uint64_t prompts = 0, seed = 0;
  int concurrency = 0, input = 128, output = 32, timeout_s = 120;
  bool json = false, no_stream = false, plain = false;
};

void declare_flags(CLI::App& app, Flags& f) {
  app.add_option("--base-url", f.base_url, "server, e.g. http://127.0.0.1:8000")->required();
  std::vector<std::string> endpoints;
  for (const Protocol& p : protocols())
    endpoints.emplace_back(p.name);
  app.add_option("--endpoint", f.endpoint, "the protocol: " + protocol_names())
      ->check(CLI::IsMember(endpoints))
      ->capture_default_str();
  app.add_option("--model", f.model, "as the server names it; default: the first that it names");
  app.add_option("--extra-body", f.extra_body, "JSON object merged over each request's body; null removes a member");
  app.add_option("--workload", f.workload, "TOML file of classes; default: one class of --input-len and --output-len");
  app.add_option("--request-rate", f.rate, "requests/s of a Poisson process; inf: all at once, as the cap allows")
      ->capture_default_str();
  app.add_option("--num-prompts", f.prompts, "requests to send; default 100 unless --duration is given");
  app.add_option("--duration", f.duration, "length of the measured window, e.g. 30s");
  app.add_option("--max-concurrency", f.concurrency, "requests in flight at most")->check(CLI::PositiveNumber);
  app.add_option("--input-len", f.input, "prompt tokens")->check(CLI::PositiveNumber)->capture_default_str();
  app.add_option("--output-len", f.output, "output tokens")->check(CLI::PositiveNumber)->capture_default_str();
  app.add_option("--seed", f.seed, "of the schedule")->capture_default_str();
  app.add_option("--goodput", f.targets, "targets in ms, e.g. ttft:200 tpot:40");
  app.add_option("--tokenizer", f.tokenizer, "GGUF file whose vocabulary makes prompts of exact length");
  app.add_option("--warm-up", f.warm_up, "before the window, e.g. 2s")->capture_default_str();
  app.add_option("--request-timeout", f.timeout_s, "seconds")->check(CLI::PositiveNumber)->capture_default_str();
  app.add_option("--header", f.headers, "Name=Value, sent with each request");
  app.add_option("--save-records", f.save, "file for every request's record");
  app.add_option("--cpus", f.cpus, "processors to run on, e.g. 1");
  app.add_flag("--no-stream", f.no_stream, "ask for whole answers: no token times then");
  app.add_flag("--plain", f.plain, "no emphasis");
  app.add_flag("--json", f.json, "one JSON document on stdout: vLLM's keys, ours under \"goodput\"");
}

struct Plan {
  WorkloadSpec spec;
  ScheduleOptions schedule;
  LoadOptions load;
  BenchReport report;
};

Result<WorkloadSpec> spec_of(const Flags& f) {
  WorkloadSpec spec;
  if (!f.workload.empty()) {
    spec = TRY(load_workload(f.workload));
  } else {
    spec.name = "bench";
    ClassSpec c;
    c.name = "all";
    c.prompt.low = c.prompt.high = Tokens(f.input);
    c.output.low = c.output.high = Tokens(f.output);
    spec.classes = {c};
  }
  if (!f.targets.empty()) {
    const TargetSet targets = TRY(parse_targets(f.targets));
    for (ClassSpec& c : spec.classes)
      c.targets = targets;
  }
  return spec;
}

Result<void> plan_arrivals(const Flags& f, Plan& p) {
  const bool closed = f.rate == "inf";
  const Nanos window = f.duration.empty() ? Nanos(0) : TRY(parse_duration(f.duration));
  const bool timed = window > Nanos(0);
  const uint64_t prompts = f.prompts > 0 ? f.prompts : 100;
  p.load.warm_up = TRY(parse_duration(f.warm_up));
  p.load.window = window;
  if (p.spec.arrivals != ArrivalKind::kTrace)
    p.spec.arrivals = closed ? ArrivalKind::kClosed : ArrivalKind::kPoisson;
  if (closed && p.spec.arrivals == ArrivalKind::kClosed) {
    if (timed && f.concurrency == 0)
      return fail(ErrorCode::kUsage, "--duration needs --request-rate or --max-concurrency");
    const int places = f.concurrency > 0 ? f.concurrency : static_cast<int>(std::min<uint64_t>(prompts, 1 << 20));
    p.load.concurrency = p.spec.concurrency = places;
    p.schedule.requests = timed && f.prompts == 0 ? static_cast<uint64_t>(places) * 500 : prompts;
    return {};
  }
  if (!closed) {
    p.report.rate = p.spec.rate = TRY(parse_double(f.rate));
    if (!(p.spec.rate > 0))
      return fail(ErrorCode::kUsage, "expected a rate above 0, or inf", "--request-rate");
  }
  p.load.max_in_flight = f.concurrency;
  // Arrivals go on behind the window while its requests end, so that they meet the same load.
  if (timed)
    p.schedule.duration = p.load.warm_up + window + std::max(window / 2, seconds(5));
  if (!timed)
    p.schedule.requests = prompts;
  return {};
}

Result<Plan> plan_of(const Flags& f) {
  Plan p;
  p.spec = TRY(spec_of(f));
  TRY(plan_arrivals(f, p));
  p.schedule.seed = f.seed;
  p.schedule.max_model_len = limits::kMaxModelLen;
  p.load.base_url = f.base_url;
  p.load.api = parse_api(f.endpoint).value_or(Api::kCompletions);
  p.load.model = f.model;
  p.load.extra_body = f.extra_body;
  p.load.stream = !f.no_stream;
  p.load.request_timeout = seconds(f.timeout_s);
  if (const char* key = std::getenv(std::string(protocol_of(p.load.api).key_variable).c_str()))
    p.load.api_key = key;  // secrets never stand in arguments
  for (const std::string& header : f.headers) {
    const size_t equals = header.find('=');
    if (equals == std::string::npos)
      return fail(ErrorCode::kUsage, "expected Name=Value", "--header");
    p.load.headers.emplace_back(header.substr(0, equals), header.substr(equals + 1));
  }
  p.report.base_url = f.base_url;
  p.report.endpoint = f.endpoint;
  if (f.concurrency > 0)
    p.report.concurrency = f.concurrency;
  p.report.seed = f.seed;
  p.report.exact_prompts = !f.tokenizer.empty();
  p.report.workload_hash = workload_hash(p.spec);
  p.report.rules = class_rules(p.spec);
  return p;
}

// What the server counted against what was asked: words are only about as many tokens.
void compare_prompts(const Schedule& schedule, BenchReport& report) {
  double asked = 0, seen = 0, n = 0;
  for (size_t i = 0; i < report.load.records.size(); ++i) {
    const auto& tokens = report.load.records[i].prompt_tokens;
    if (!tokens)
      continue;
    asked += static_cast<double>(schedule.requests[i].prompt.size());
    seen += tokens->count();
    ++n;
  }
  if (n > 0)
    report.prompt_asked = asked / n, report.prompt_seen = seen / n;
}

Result<BenchReport> measure(const Flags& f) {
  Plan p = TRY(plan_of(f));
  if (const auto cpus = TRY(parse_cpus(f.cpus, "--cpus")); !cpus.empty())
    TRY(pin_to_cpus(cpus));
  std::shared_ptr<const Model> model;
  if (!f.tokenizer.empty())
    model = TRY(Model::load(f.tokenizer, true));
  Schedule schedule = TRY(make_schedule(p.spec, p.schedule, model.get()));
  if (!model)
    fill_with_words(schedule);
  p.report.schedule_hash = schedule.hash;
  TerminalProgress progress;
  progress.phase(1, 1, "bench " + f.base_url,
                 p.load.window > Nanos(0) ? std::optional(p.load.warm_up + p.load.window) : std::nullopt);
  progress.note(
      fmt::format("seed {}, schedule {}, {} requests", f.seed, schedule.hash.substr(0, 12), schedule.requests.size()));
  BenchReport report = std::move(p.report);
  report.load = TRY(run_load(schedule, p.load, nullptr, progress, interrupt_flag()));
  compare_prompts(schedule, report);
  const auto& records = report.load.records;
  report.summary = summarize(records, report.rules, report.load.window);
  VerdictRules rules;
  rules.open_loop = p.load.concurrency == 0;
  rules.scheduled = schedule.requests.size();
  report.verdict = judge_point(records, report.summary, Observed{}, report.load.audit, report.rules, rules);
  if (!f.save.empty())
    TRY(write_file_atomically(f.save, encode_records(records)));
  return report;
}

std::function<Exit()> declare(CLI::App& app) {
  auto flags = std::make_shared<Flags>();
  declare_flags(app, *flags);
  return [flags] {
    const auto report = measure(*flags);
    if (!report)
      return report_error(report.error());
    const std::string text =
        flags->json ? bench_json(*report) + "\n" : render_bench(*report, text_style(STDOUT_FILENO, flags->plain));
    std::fputs(text.c_str(), stdout);
    if (report->load.interrupted)
      return Exit::kInterrupted;
    return report->verdict.valid() ? Exit::kOk : Exit::kInvalid;
  };
}

}  // namespace

extern const Verb kBenchVerb;
const Verb kBenchVerb{
    "bench", "one endpoint under load: latency, throughput, goodput, and whether to believe it",
    "  goodput bench --base-url http://127.0.0.1:8000 --num-prompts 200 --max-concurrency 16\n"
    "  goodput bench --base-url http://127.0.0.1:8000 --request-rate 4 --duration 30s --goodput ttft:200 tpot:40\n",
    declare};

}  // namespace goodput
