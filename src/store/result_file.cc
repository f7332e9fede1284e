// Which kind a file is, and our own kinds; the others' stand in result_foreign.cc. Pure but for reading; any thread.
#include "store/result_file.h"

#include <algorithm>
#include <fstream>

#include <fmt/format.h>

#include "base/file.h"
#include "base/hash.h"
#include "metrics/definitions.h"
#include "metrics/request_metrics.h"
#include "store/codec.h"
#include "store/point.h"
#include "store/result_json_private.h"
#include "store/study.h"

namespace goodput {
namespace {

using namespace result_json;

constexpr std::string_view kSqlite("SQLite format 3\0", 16);
constexpr std::string_view kRecords("gprecs\0", 7);
constexpr std::string_view kKnown =
    "expected records of `goodput bench --save-records`, a study file, or JSON of goodput bench, vLLM (--save-result), "
    "SGLang (--output-file), guidellm or AIPerf (profile_export_aiperf.json, profile_export.jsonl)";

tl::unexpected<Error> unknown(const std::string& path, std::string_view found) {
  return fail(ErrorCode::kUsage, fmt::format("{}: {}", found, kKnown), path);
}

// ---- ours ----

void add_percentiles(ResultRun& run, dom::element o, std::string_view key, std::string_view metric,
                     std::string_view definition) {
  for (const std::string_view p : {"p50", "p95", "p99"})
    add(run, fmt::format("{}_{}", p, metric), definition, number_at(at(o, key), p));
}

// Figures of a point's JSON: bench's "goodput" object and a study's summary alike.
void add_own_figures(ResultRun& run, dom::element o) {
  add_percentiles(run, o, "ttft_ms", "ttft", tags::kTtftArrival);
  add_percentiles(run, o, "ttft_service_ms", "ttft", tags::kTtftSend);
  add_percentiles(run, o, "tpot_ms", "tpot", tags::kTpotOurs);
  add_percentiles(run, o, "itl_ms", "itl", tags::kItlToken);
  add_percentiles(run, o, "icl_ms", "itl", tags::kGapDelivery);
  add_percentiles(run, o, "e2e_ms", "e2el", tags::kE2eArrival);
  add(run, "goodput", tags::kWindow, number_at(o, "goodput_rps"));
  add(run, "token_goodput", tags::kWindow, number_at(o, "token_goodput"));
  add(run, "attainment", tags::kWindow, number_at(at(at(o, "attainment"), "overall"), "value"));
  const auto throughput = at(o, "throughput");
  add(run, "request_throughput", tags::kWindow, number_at(throughput, "requests_per_s"));
  add(run, "output_throughput", tags::kWindow, number_at(throughput, "output_tokens_per_s"));
  add(run, "total_throughput", tags::kWindow, number_at(throughput, "total_tokens_per_s"));
  const auto requests = number_at(o, "requests"), ok = number_at(at(o, "outcomes"), "ok");
  if (requests && ok && *requests >= *ok) {
    add(run, "completed", "requests scheduled in the window", ok);
    add(run, "failed", "requests scheduled in the window", *requests - *ok);
  }
  bool valid = true;
  if (const auto stated = at(at(o, "verdict"), "valid"); stated && !stated->get(valid))
    run.valid = valid;
}

// Per-request values in the order of the schedule, under our definition and those that a send-based tool can share.
void add_own_samples(ResultRun& run) {
  std::vector<const RequestRecord*> order;
  for (const RequestRecord& r : run.records)
    if (!run.window || run.window->contains(r.scheduled))
      order.push_back(&r);
  std::ranges::stable_sort(order, {}, &RequestRecord::index);
  for (const DefinitionRow& row : definition_rows()) {
    if (row.metric == "itl" || !row.values)
      continue;
    const bool known = std::ranges::any_of(
        run.samples, [&](const ResultSamples& s) { return s.metric == row.metric && s.definition == row.tag; });
    if (known)
      continue;
    std::vector<double> values, one;
    for (const RequestRecord* r : order) {
      one.clear();
      if (r->outcome == Outcome::kOk)
        row.values(*r, one);
      values.push_back(one.empty() ? kNone : one.front());
    }
    add_samples(run, std::string(row.metric), row.tag, std::move(values));
  }
}

void add_record_counts(ResultRun& run) {
  double ok = 0, all = 0;
  for (const RequestRecord& r : run.records) {
    if (run.window && !run.window->contains(r.scheduled))
      continue;
    ok += r.outcome == Outcome::kOk;
    ++all;
  }
  add(run, "completed", "requests scheduled in the window", ok);
  add(run, "failed", "requests scheduled in the window", all - ok);
}

Result<ResultFile> parse_records(std::string_view bytes, std::string path) {
  auto records = decode_records(bytes);
  if (!records)
    return fail(ErrorCode::kUsage, records.error().message + "; the file is damaged, measure again", path);
  ResultFile file{std::move(path), ResultKind::kRecords, {}};
  ResultRun run;
  run.records = std::move(*records);
  run.schedule_hash = run.records.empty() ? "" : "records " + schedule_fingerprint(run.records);
  add_own_samples(run);
  add_record_counts(run);
  file.runs.push_back(std::move(run));
  return file;
}

Result<ResultFile> read_study_file(const std::filesystem::path& path) {
  const auto study = TRY(Study::open(path, false));
  ResultFile file{path.string(), ResultKind::kStudy, {}};
  const auto workload = TRY(study->meta("workload"));
  for (const PointRow& row : TRY(study->points())) {
    if (row.records_hash.empty() || row.executor == "simulated")
      continue;
    if (file.runs.size() >= limits::kMaxResultRuns)
      return fail(ErrorCode::kUsage, fmt::format("more than {} measured points", limits::kMaxResultRuns),
                  path.string());
    const auto point = point_from_json(row.summary_json);
    if (!point)
      return fail(ErrorCode::kUsage, fmt::format("point \"{}\": {}", row.key, describe(point.error())), path.string());
    ResultRun run;
    run.label = fmt::format("{} at {:.4g}/s", short_text(point->settings), row.offered_rate);
    run.phase = row.phase;
    run.schedule_hash = row.schedule_hash;
    run.window = point->summary.window;
    run.valid = point->verdict.valid();
    run.workload_toml = workload;
    run.records = TRY(study->records(row.id));
    simdjson::dom::parser parser;
    dom::element summary;
    if (!parser.parse(row.summary_json).get(summary))
      add_own_figures(run, summary);
    add_own_samples(run);
    file.runs.push_back(std::move(run));
  }
  if (file.runs.empty())
    return fail(ErrorCode::kUsage, "the study holds no measured point with its requests", path.string());
  return file;
}

// ---- JSON of any tool ----

bool is_number(dom::element o, std::string_view key) { return number_at(o, key).has_value(); }

std::optional<ResultKind> kind_of(dom::element o) {
  if (text_at(o, "schema").starts_with("goodput.bench/") || has(at(o, "goodput").value_or(o), "goodput_rps"))
    return ResultKind::kBenchJson;
  if (array_at(o, "benchmarks"))
    return ResultKind::kGuidellm;
  if (is_number(o, "mean_e2e_latency_ms") || has(o, "total_output_tokens_retokenized"))
    return ResultKind::kSglang;
  if (is_number(o, "mean_ttft_ms") || (is_number(o, "request_throughput") && is_number(o, "completed")))
    return ResultKind::kVllm;
  if (has(o, "metrics") && has(o, "metadata"))
    return ResultKind::kAiperfRecords;
  for (const std::string_view key : {"request_latency", "request_throughput", "request_count"})
    if (!text_at(at(o, key), "unit").empty())
      return ResultKind::kAiperf;
  return std::nullopt;
}

class JsonReader {
 public:
  explicit JsonReader(std::string path) : path_(std::move(path)) {}

  Result<void> add(dom::element o) {
    const auto kind = kind_of(o);
    if (!kind)
      return unknown(path_, "JSON without the keys of a known result");
    if (kind_ && *kind_ != *kind)
      return fail(ErrorCode::kUsage, fmt::format("holds both {} and {}", to_string(*kind_), to_string(*kind)), path_);
    kind_ = kind;
    switch (*kind) {
      case ResultKind::kBenchJson:
        return keep(TRY(read_bench_json(o)));
      case ResultKind::kVllm:
        return keep(read_vllm(o));
      case ResultKind::kSglang:
        return keep(read_sglang(o));
      case ResultKind::kAiperf:
        return keep(read_aiperf(o));
      case ResultKind::kAiperfRecords:
        lines_.add(o);
        return {};
      case ResultKind::kGuidellm:
        return add_benchmarks(o);
      case ResultKind::kRecords:
      case ResultKind::kStudy:
        break;
    }
    return {};
  }

  Result<ResultFile> take() {
    if (!kind_)
      return unknown(path_, "an empty file");
    if (*kind_ == ResultKind::kAiperfRecords)
      TRY(keep(lines_.take()));
    const bool any =
        std::ranges::any_of(runs_, [](const ResultRun& r) { return !r.figures.empty() || !r.samples.empty(); });
    if (!any)
      return fail(ErrorCode::kUsage, fmt::format("{} without a single figure", to_string(*kind_)), path_);
    return ResultFile{path_, *kind_, std::move(runs_)};
  }

 private:
  Result<void> add_benchmarks(dom::element o) {
    const auto benchmarks = array_at(o, "benchmarks");
    for (const dom::element benchmark : *benchmarks)
      TRY(keep(read_guidellm_benchmark(benchmark)));
    return {};
  }
  Result<void> keep(ResultRun run) {
    if (runs_.size() >= limits::kMaxResultRuns)
      return fail(ErrorCode::kUsage, fmt::format("more than {} runs in one file", limits::kMaxResultRuns), path_);
    runs_.push_back(std::move(run));
    return {};
  }

  std::string path_;
  std::optional<ResultKind> kind_;
  AiperfRecords lines_;
  std::vector<ResultRun> runs_;
};

Result<ResultFile> parse_json(std::string_view bytes, const std::string& path) {
  JsonReader reader(path);
  dom::parser parser;
  dom::element document;
  const simdjson::padded_string whole(bytes);
  if (!parser.parse(whole).get(document)) {
    dom::array several;
    if (document.get(several)) {
      TRY(reader.add(document));
    } else {
      for (const dom::element e : several)
        TRY(reader.add(e));
    }
    return reader.take();
  }
  // One document a line: SGLang's and AIPerf's, vLLM's --append-result.
  size_t line_number = 0;
  for (size_t from = 0; from < bytes.size();) {
    const size_t end = std::min(bytes.find('\n', from), bytes.size());
    std::string_view line = bytes.substr(from, end - from);
    from = end + 1;
    ++line_number;
    while (!line.empty() && (line.back() == '\r' || line.back() == ' ' || line.back() == ','))
      line.remove_suffix(1);
    if (line.empty())
      continue;
    if (const auto error = parser.parse(simdjson::padded_string(line)).get(document))
      return fail(ErrorCode::kUsage,
                  fmt::format("line {} is not JSON ({}); {}", line_number, simdjson::error_message(error), kKnown),
                  path);
    TRY(reader.add(document));
  }
  return reader.take();
}

}  // namespace

namespace result_json {

Result<ResultRun> read_bench_json(dom::element o) {
  ResultRun run = read_vllm(o);  // its flat keys have vLLM's meaning
  const auto own = at(o, "goodput");
  if (!own)
    return run;
  run.schedule_hash = text_at(own, "schedule_hash");
  add_own_figures(run, *own);
  return run;
}

}  // namespace result_json

std::string_view to_string(ResultKind kind) {
  switch (kind) {
    case ResultKind::kRecords:
      return "records of goodput bench";
    case ResultKind::kStudy:
      return "a goodput study";
    case ResultKind::kBenchJson:
      return "goodput bench's JSON";
    case ResultKind::kVllm:
      return "vLLM's result JSON";
    case ResultKind::kSglang:
      return "SGLang's result lines";
    case ResultKind::kGuidellm:
      return "guidellm's JSON";
    case ResultKind::kAiperf:
      return "AIPerf's summary";
    case ResultKind::kAiperfRecords:
      break;
  }
  return "AIPerf's per-request lines";
}

void restate(ResultRun& run, const PointSummary& s, const std::string& targets) {
  Point point;
  point.summary = s;
  run.figures.clear();
  run.samples.clear();
  dom::parser parser;
  dom::element summary;
  const bool valid = run.valid;
  if (!parser.parse(to_json(point)).get(summary))
    add_own_figures(run, summary);
  const auto of_targets = [](const ResultFigure& f) {
    return f.name == "goodput" || f.name == "token_goodput" || f.name == "attainment";
  };
  if (targets.empty())
    std::erase_if(run.figures, of_targets);
  for (ResultFigure& f : run.figures)
    if (of_targets(f))
      f.definition += " within " + targets;
  run.valid = valid;
  add_own_samples(run);
}

std::string schedule_fingerprint(const std::vector<RequestRecord>& records) {
  std::vector<const RequestRecord*> order;
  for (const RequestRecord& r : records)
    order.push_back(&r);
  std::ranges::stable_sort(order, {}, &RequestRecord::index);
  codec::Writer w;
  for (const RequestRecord* r : order) {
    w.unsigned_number(r->index);
    w.unsigned_number(r->cls);
    w.signed_number(r->asked_output.count());
    w.signed_number((r->scheduled - order.front()->scheduled).count());
  }
  return sha256_hex(w.out());
}

Result<ResultFile> parse_result(std::string_view bytes, std::string path) {
  if (bytes.starts_with(kRecords))
    return parse_records(bytes, std::move(path));
  if (bytes.starts_with("\xEF\xBB\xBF"))
    bytes.remove_prefix(3);
  const size_t start = bytes.find_first_not_of(" \t\r\n");
  if (start == bytes.npos)
    return unknown(path, "an empty file");
  if (bytes[start] != '{' && bytes[start] != '[')
    return unknown(path, "neither JSON nor a file of ours");
  return parse_json(bytes, path);
}

Result<ResultFile> read_result_file(const std::filesystem::path& given) {
  std::error_code none;
  std::filesystem::path path = given;
  if (std::filesystem::is_directory(path, none))
    path /= "study.db";
  if (!std::filesystem::exists(path, none))
    return fail(ErrorCode::kNotFound, "there is no such file", path.string());
  std::string head(kSqlite.size(), '\0');
  if (std::ifstream in(path, std::ios::binary); in.read(head.data(), static_cast<std::streamsize>(head.size())))
    if (head == kSqlite)
      return read_study_file(path);
  const std::string bytes = TRY(read_file(path, limits::kMaxResultBytes));
  return parse_result(bytes, path.string());
}

Result<Window> window_of_bench_json(const std::filesystem::path& path) {
  const std::string bytes = TRY(read_file(path, limits::kMaxResultBytes));
  dom::parser parser;
  dom::element document;
  int64_t start = 0, end = 0;
  const simdjson::padded_string padded(bytes);
  if (parser.parse(padded).get(document))
    return fail(ErrorCode::kUsage, "expected the JSON of goodput bench, found no JSON", path.string());
  const auto window = at(at(document, "goodput"), "window");
  const auto from = at(window, "start_ns"), to = at(window, "end_ns");
  const int64_t most = limits::kMaxStoredTime.count();
  if (!from || !to || from->get(start) || to->get(end) || end <= start || start < -most || end > most)
    return fail(ErrorCode::kUsage, "expected the JSON of goodput bench with goodput.window", path.string());
  return Window{TimePoint(Nanos(start)), TimePoint(Nanos(end))};
}

}  // namespace goodput
