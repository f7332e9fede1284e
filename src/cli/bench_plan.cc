#include "cli/bench_plan.h"

#include <unistd.h>

#include <cstdlib>
#include <ctime>

#include <fmt/format.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/limits.h"
#include "base/text.h"
#include "cli/cpus.h"
#include "load/protocol.h"

namespace goodput {
namespace {

// A script may name a tokenizer of the hub, which cannot be had here: prompts are words then, and the server counts
// them. What looks like a file is one.
void plan_tokenizer(const BenchFlags& f, BenchPlan& p) {
  p.report.tokenizer = f.tokenizer;
  if (f.tokenizer.empty())
    return;
  std::error_code ignored;
  if (f.tokenizer.ends_with(".gguf") || std::filesystem::is_regular_file(f.tokenizer, ignored)) {
    p.tokenizer = f.tokenizer;
    p.report.exact_prompts = true;
    return;
  }
  p.notes.push_back(
      fmt::format("--tokenizer {}: not a GGUF file; prompts are made of words, and the report shows how "
                  "many tokens the server counted",
                  f.tokenizer));
}

Result<void> plan_output(const BenchFlags& f, BenchPlan& p) {
  BenchOutput& o = p.output;
  o.table = find_bench_table(f.table);
  if (!o.table) {
    std::vector<std::string_view> names;
    for (const BenchTable& t : bench_tables())
      names.push_back(t.name);
    return fail(ErrorCode::kUsage, fmt::format("expected one of {}, found '{}'", fmt::join(names, ", "), f.table),
                "--table");
  }
  if (f.language != "en" && f.language != "zh")
    return fail(ErrorCode::kUsage, fmt::format("expected en or zh, found '{}'", f.language), "--lang");
  o.chinese = f.language == "zh";
  o.plain = f.plain;
  o.json = f.json;
  o.quiet = f.quiet;
  o.save = f.save_result || f.append_result;
  o.detailed = f.save_detailed;
  o.append = f.append_result;
  o.directory = f.result_dir;
  o.file_name = f.result_filename;
  o.records = f.records;
  if (o.append && o.file_name.empty())
    p.notes.push_back(
        "--append-result without --result-filename: the default name holds the time, so each run has its own file");
  if (o.detailed && !o.save && !o.json)
    p.notes.push_back("--save-detailed without --save-result or --json has no effect");
  // An hour's run must not end at a folder that could have been refused before it.
  if (o.save && !o.directory.empty() && !f.dry_run)
    TRY(make_directories(o.directory));
  const std::filesystem::path folder = (o.directory / o.file_name).parent_path();
  if (o.save && ::access(folder.empty() ? "." : folder.c_str(), W_OK) != 0 && !f.dry_run)
    return fail(ErrorCode::kIo, "no file can be written there", folder.empty() ? "." : folder.string());
  return {};
}

Result<void> plan_report(const BenchFlags& f, BenchPlan& p) {
  BenchReport& r = p.report;
  if (!f.metrics.empty()) {
    auto metrics = parse_bench_metrics(f.metrics);
    if (!metrics)
      return fail(ErrorCode::kUsage, metrics.error().message, "--percentile-metrics");
    r.metrics = std::move(*metrics);
  }
  auto percents = parse_percents(f.percentiles);
  if (!percents)
    return fail(ErrorCode::kUsage, percents.error().message, "--metric-percentiles");
  r.percents = std::move(*percents);
  for (const std::string& item : f.metadata)
    r.metadata.push_back(TRY(key_value("--metadata", item)));
  if (f.floor && !(*f.floor > 0 && *f.floor <= 1))
    return fail(ErrorCode::kUsage, "expected a share above 0 and up to 1, e.g. 0.9", "--floor");
  r.floor = f.floor;
  if (f.floor && std::ranges::all_of(p.spec.classes, [](const ClassSpec& c) { return c.targets.empty(); }))
    return fail(ErrorCode::kUsage, "a floor is of the share that keeps its targets: give --goodput too", "--floor");
  r.label = f.label;
  r.seed = f.seed;
  r.num_prompts = p.schedule.requests.value_or(0);
  r.workload_hash = workload_hash(p.spec);
  r.rules = class_rules(p.spec);
  return {};
}

}  // namespace

tl::unexpected<Error> not_here(std::string_view flag, std::string_view what, std::string_view instead) {
  return fail(ErrorCode::kUsage, fmt::format("{} is not served by this version; there is {}", what, instead),
              std::string(flag));
}

Result<std::pair<std::string, std::string>> key_value(std::string_view flag, std::string_view text) {
  const size_t equals = text.find('=');
  if (equals == std::string_view::npos || trim(text.substr(0, equals)).empty())
    return fail(ErrorCode::kUsage, fmt::format("expected NAME=VALUE, found '{}'", text), std::string(flag));
  return std::pair(std::string(trim(text.substr(0, equals))), std::string(trim(text.substr(equals + 1))));
}

BenchEnvironment bench_environment() {
  BenchEnvironment e;
  e.variable = [](const std::string& name) {
    const char* value = std::getenv(name.c_str());
    return std::string(value ? value : "");
  };
  const std::time_t now = unix_seconds();
  std::tm local{};
  ::localtime_r(&now, &local);
  char text[32];
  e.date.assign(text, std::strftime(text, sizeof text, "%Y%m%d-%H%M%S", &local));
  return e;
}

Result<BenchPlan> bench_plan(const BenchFlags& f, const BenchEnvironment& environment) {
  BenchPlan p;
  TRY(plan_server(f, p));
  TRY(plan_workload(f, p));
  TRY(plan_arrivals(f, p));
  TRY(validate(p.spec));
  p.load.api_key =  // secrets never stand in arguments
      environment.variable(std::string(protocol_of(p.load.api).key_variable));
  p.report.date = environment.date;
  p.schedule.seed = f.seed;
  p.schedule.salt = f.salt;
  p.schedule.max_model_len = limits::kMaxModelLen;
  p.cpus = TRY(parse_cpus(f.cpus, "--cpus"));
  if (f.warmups > limits::kMaxWarmupRequests)
    return fail(ErrorCode::kUsage, fmt::format("at most {}", limits::kMaxWarmupRequests), "--num-warmups");
  p.warmups = static_cast<uint64_t>(f.warmups);
  plan_tokenizer(f, p);
  TRY(plan_report(f, p));
  TRY(plan_output(f, p));
  return p;
}

}  // namespace goodput
