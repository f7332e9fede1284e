#include "store/result_file.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "base/file.h"
#include "metrics/definitions.h"
#include "store/arbitrary.h"
#include "store/study.h"

namespace goodput {
namespace {

// Small files in the formats of each tool, written for this test.
const std::string kVllm =
    R"({"date":"x","endpoint_type":"vllm","backend":"vllm","request_rate":"inf","max_concurrency":8,
  "num_prompts":3,"duration":2.0,"completed":2,"total_input_tokens":20,"total_output_tokens":8,"request_throughput":1.0,
  "request_goodput":0.5,"output_throughput":4.0,"total_token_throughput":14.0,"mean_ttft_ms":150.0,"median_ttft_ms":150.0,
  "std_ttft_ms":50.0,"p99_ttft_ms":199.0,"mean_tpot_ms":20.0,"median_tpot_ms":20.0,"p99_tpot_ms":20.0,"mean_itl_ms":20.0,
  "median_itl_ms":20.0,"p99_itl_ms":20.0,"input_lens":[10,10,10],"output_lens":[4,4,0],"ttfts":[0.1,0.2,0.0],
  "itls":[[0.02,0.02,0.02],[0.02,0.02,0.02],[]],"errors":["","","Bad Gateway"]})";
const std::string kSglang =
    R"({"backend":"sglang","request_rate":4.0,"max_concurrency":null,"completed":5,"total_output_tokens_retokenized":40,
"request_throughput":2.5,"output_throughput":20.0,"total_throughput":70.0,"mean_e2e_latency_ms":900.0,
"median_e2e_latency_ms":880.0,"p99_e2e_latency_ms":1200.0,"mean_ttft_ms":120.0,"median_ttft_ms":110.0,"p99_ttft_ms":300.0,
"mean_tpot_ms":30.0,"median_tpot_ms":29.0,"p99_tpot_ms":50.0,"mean_itl_ms":31.0,"p95_itl_ms":60.0})";
const std::string kGuidellm =
    R"({"metadata":{},"args":{},"benchmarks":[{"config":{"strategy":{"type_":"constant","rate":2.0}},
  "metrics":{"request_totals":{"successful":9,"errored":1,"incomplete":0,"total":10},
  "requests_per_second":{"successful":{"mean":1.9,"count":9}},
  "time_to_first_token_ms":{"successful":{"mean":101.0,"count":9,"percentiles":{"p50":100.0,"p95":130.0,"p99":131.0}}},
  "inter_token_latency_ms":{"successful":{"mean":21.0,"count":9,"percentiles":{"p50":20.0,"p95":25.0,"p99":26.0}}},
  "time_per_output_token_ms":{"successful":{"mean":33.0,"count":9,"percentiles":{"p50":32.0,"p95":40.0,"p99":41.0}}},
  "request_latency":{"successful":{"mean":0.9,"count":9,"percentiles":{"p50":0.8,"p95":1.1,"p99":1.2}}}},
  "requests":{"successful":[{"time_to_first_token_ms":100.0,"inter_token_latency_ms":20.0,
  "time_per_output_token_ms":32.0,"request_latency":0.8},{"time_to_first_token_ms":null,"request_latency":0.9}]}}]})";
const std::string kAiperf =
    R"({"request_count":{"unit":"requests","avg":10},"request_throughput":{"unit":"requests/sec","avg":2.0},
  "request_latency":{"unit":"ms","avg":700.0,"p50":690.0,"p95":900.0,"p99":910.0},
  "time_to_first_token":{"unit":"ms","avg":90.0,"p50":88.0,"p95":120.0,"p99":121.0},
  "inter_token_latency":{"unit":"us","avg":20000.0,"p50":19000.0},"good_request_fraction":{"unit":"ratio","avg":0.7}})";
const std::string kAiperfLines =
    R"({"metadata":{"benchmark_phase":"profiling"},"metrics":{"time_to_first_token":{"value":80.0,"unit":"ms"},"request_latency":{"value":500.0,"unit":"ms"}},"error":null}
{"metadata":{"benchmark_phase":"warmup"},"metrics":{"time_to_first_token":{"value":9999.0,"unit":"ms"}},"error":null}
{"metadata":{"benchmark_phase":"profiling"},"metrics":{},"error":{"code":500}}
{"metadata":{"benchmark_phase":"profiling"},"metrics":{"time_to_first_token":{"value":0.1,"unit":"s"},"inter_token_latency":{"value":7,"unit":"furlongs"}},"error":null}
)";

ResultFile parsed(std::string_view bytes) {
  auto file = parse_result(bytes, "file");
  EXPECT_TRUE(file) << (file ? "" : describe(file.error()));
  return file ? std::move(*file) : ResultFile{};
}

std::optional<double> figure(const ResultRun& run, std::string_view name, std::string_view definition) {
  for (const ResultFigure& f : run.figures)
    if (f.name == name && f.definition == definition)
      return f.value;
  return std::nullopt;
}
std::vector<double> samples(const ResultRun& run, std::string_view metric, std::string_view definition) {
  for (const ResultSamples& s : run.samples)
    if (s.metric == metric && s.definition == definition)
      return s.values;
  return {};
}
std::string linear(std::string_view definition) { return std::string(definition) + ", linear percentile"; }

TEST(ResultFile, Vllm) {
  const ResultFile file = parsed(kVllm);
  EXPECT_EQ(file.kind, ResultKind::kVllm);
  ASSERT_EQ(file.runs.size(), 1u);
  const ResultRun& run = file.runs[0];
  EXPECT_EQ(run.label, "rate inf, concurrency 8");
  EXPECT_EQ(figure(run, "mean_ttft", tags::kTtftChunk), 150);
  EXPECT_EQ(figure(run, "p99_ttft", linear(tags::kTtftChunk)), 199);
  EXPECT_EQ(figure(run, "goodput", tags::kWholeRun), 0.5);
  EXPECT_EQ(figure(run, "failed", "requests"), 1);  // asked 3, completed 2
  const auto ttft = samples(run, "ttft", tags::kTtftChunk);
  ASSERT_EQ(ttft.size(), 3u);
  EXPECT_DOUBLE_EQ(ttft[1], 200);
  EXPECT_TRUE(std::isnan(ttft[2]));  // a failed request's 0 is no time
  EXPECT_NEAR(samples(run, "tpot", tags::kTpotChunk)[0], 20, 1e-9);
  EXPECT_NEAR(samples(run, "e2el", tags::kE2eToken)[1], 260, 1e-9);
}

TEST(ResultFile, SglangLinesAreRuns) {
  std::string lines = kSglang;
  std::ranges::replace(lines, '\n', ' ');
  const ResultFile file = parsed(lines + "\n" + lines + "\n");
  EXPECT_EQ(file.kind, ResultKind::kSglang);
  ASSERT_EQ(file.runs.size(), 2u);
  EXPECT_EQ(file.runs[0].label, "rate 4");
  EXPECT_EQ(figure(file.runs[1], "mean_e2el", tags::kE2eClosed), 900);
  EXPECT_EQ(figure(file.runs[1], "p95_itl", linear(tags::kGapText)), 60);
  EXPECT_FALSE(figure(file.runs[1], "failed", "requests"));  // it does not tell
}

TEST(ResultFile, GuidellmKeepsItsTwoMeaningsOfTpotApart) {
  const ResultFile file = parsed(kGuidellm);
  EXPECT_EQ(file.kind, ResultKind::kGuidellm);
  const ResultRun& run = file.runs.at(0);
  EXPECT_EQ(run.label, "constant, rate 2");
  EXPECT_EQ(figure(run, "p95_tpot", tags::kTpotText), 25);
  EXPECT_EQ(figure(run, "p95_tpot", tags::kTpotWithTtft), 40);
  EXPECT_NEAR(*figure(run, "p95_e2el", tags::kE2eClosed), 1100, 1e-9);  // seconds there
  EXPECT_EQ(figure(run, "failed", "requests"), 1);
  EXPECT_TRUE(std::isnan(samples(run, "ttft", tags::kTtftText).at(1)));
}

TEST(ResultFile, AiperfSummaryAndLines) {
  const ResultRun summary = parsed(kAiperf).runs.at(0);
  EXPECT_EQ(figure(summary, "p95_ttft", linear(tags::kTtftText)), 120);
  EXPECT_EQ(figure(summary, "mean_tpot", tags::kTpotText), 20);  // stated in microseconds
  EXPECT_EQ(figure(summary, "failed", "requests"), 0);
  const ResultFile lines = parsed(kAiperfLines);
  EXPECT_EQ(lines.kind, ResultKind::kAiperfRecords);
  const ResultRun& run = lines.runs.at(0);
  EXPECT_EQ(samples(run, "ttft", tags::kTtftText), (std::vector<double>{80, 100}));  // warm-up left out
  EXPECT_TRUE(samples(run, "tpot", tags::kTpotText).empty());                        // an unknown unit is no time
  EXPECT_EQ(figure(run, "failed", "requests"), 1);
}

std::vector<RequestRecord> stored_records() {
  std::vector<RequestRecord> records;
  for (uint64_t i = 0; i < 3; ++i) {
    RequestRecord r;
    r.index = 2 - i;  // out of order: they end in any
    r.outcome = i == 1 ? Outcome::kReset : Outcome::kOk;
    r.scheduled = TimePoint(milliseconds(100 * static_cast<int64_t>(2 - i)));
    r.dispatched = r.scheduled + milliseconds(5);
    r.first_chunk = r.first_token = r.scheduled + milliseconds(10 + static_cast<int64_t>(i));
    r.done = r.closed = r.scheduled + milliseconds(30);
    r.events = {{Nanos((*r.first_token - r.scheduled).count()), std::nullopt, 1}, {milliseconds(30), std::nullopt, 1}};
    r.output_tokens = Tokens(2);
    r.token_source = TokenSource::kUsage;
    records.push_back(r);
  }
  return records;
}

TEST(ResultFile, OurRecordsInTheOrderOfTheSchedule) {
  const auto records = stored_records();
  const ResultFile file = parsed(encode_records(records));
  EXPECT_EQ(file.kind, ResultKind::kRecords);
  const ResultRun& run = file.runs.at(0);
  EXPECT_EQ(run.records.size(), 3u);
  const auto ttft = samples(run, "ttft", tags::kTtftArrival);
  ASSERT_EQ(ttft.size(), 3u);
  EXPECT_EQ(ttft[0], 12);
  EXPECT_TRUE(std::isnan(ttft[1]));
  EXPECT_EQ(samples(run, "ttft", tags::kTtftText)[0], 7);  // from the send, as AIPerf would have it
  EXPECT_EQ(figure(run, "failed", "requests scheduled in the window"), 1);
  // The same schedule measured again, slower and shifted as a whole, is the same schedule; another arrival is not.
  auto again = records;
  for (RequestRecord& r : again)
    r.scheduled += seconds(5), r.done = r.scheduled + seconds(1);
  EXPECT_EQ(schedule_fingerprint(again), schedule_fingerprint(records));
  again[0].scheduled += Nanos(1);
  EXPECT_NE(schedule_fingerprint(again), schedule_fingerprint(records));
}

TEST(ResultFile, DamagedOrForeignFilesAreNamedWithWhatWasExpected) {
  const std::string records = encode_records(stored_records());
  for (const std::string& bad :
       {std::string(), std::string("  \n"), std::string("hello"), std::string("{\"a\":1}"), std::string("{"),
        std::string("[]"), std::string("[1]"), std::string("{\"benchmarks\":[]}"), kVllm + "\n{broken",
        records.substr(0, records.size() / 2), records + "x", std::string("SQLite format 3"),
        std::string(R"({"mean_ttft_ms":"fast","request_throughput":-1,"completed":1e400})")}) {
    const auto file = parse_result(bad, "bad.json");
    ASSERT_FALSE(file) << bad.substr(0, 40);
    EXPECT_EQ(file.error().code, ErrorCode::kUsage);
    EXPECT_EQ(file.error().context, "bad.json");
    EXPECT_FALSE(file.error().message.empty());
  }
  const auto missing = read_result_file("/nonexistent/run.json");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, ErrorCode::kNotFound);
}

TEST(ResultFile, NegativeAndInfiniteFiguresAreAbsent) {
  const ResultRun run =
      parsed(
          R"({"mean_ttft_ms":5,"p99_ttft_ms":-1715507074412.0,"median_ttft_ms":1e300,"completed":1,"ttfts":[-1,0.5]})")
          .runs.at(0);
  EXPECT_FALSE(figure(run, "p99_ttft", linear(tags::kTtftChunk)));
  EXPECT_FALSE(figure(run, "p50_ttft", linear(tags::kTtftChunk)));
  EXPECT_TRUE(std::isnan(samples(run, "ttft", tags::kTtftChunk).at(0)));
}

TEST(ResultFile, BoundsTheNumberOfRuns) {
  std::string line = kSglang;
  std::ranges::replace(line, '\n', ' ');
  std::string lines;
  for (size_t i = 0; i <= limits::kMaxResultRuns; ++i)
    lines += line + "\n";
  const auto file = parse_result(lines, "many.jsonl");
  ASSERT_FALSE(file);
  EXPECT_NE(file.error().message.find("4096"), std::string::npos);
}

// Any damage gives a value or an error, and every number that is handed on is one.
TEST(ResultFile, MutatedFilesNeverCrashAndNeverYieldNonsense) {
  const std::vector<std::string> seeds = {kVllm,   kSglang,      kGuidellm,
                                          kAiperf, kAiperfLines, encode_records(stored_records())};
  EXPECT_TRUE(rc::check([&](uint64_t seed) {
    Random random(seed, "damage");
    std::string bytes = seeds[static_cast<size_t>(random.uniform_int(0, static_cast<int64_t>(seeds.size()) - 1))];
    for (int64_t i = random.uniform_int(1, 6); i > 0 && !bytes.empty(); --i) {
      const auto at = static_cast<size_t>(random.uniform_int(0, static_cast<int64_t>(bytes.size()) - 1));
      switch (random.uniform_int(0, 3)) {
        case 0:
          bytes[at] = static_cast<char>(random.next());
          break;
        case 1:
          bytes.erase(at, static_cast<size_t>(random.uniform_int(1, 40)));
          break;
        case 2:
          bytes.insert(at, bytes.substr(bytes.size() / 3, static_cast<size_t>(random.uniform_int(1, 40))));
          break;
        default:
          bytes.resize(at);
      }
    }
    if (const auto file = parse_result(bytes, "mutated"))
      for (const ResultRun& run : file->runs)
        for (const ResultFigure& f : run.figures)
          RC_ASSERT(std::isfinite(f.value) && f.value >= 0);
  }));
}

TEST(ResultFile, AStudysMeasuredPoints) {
  const auto path = std::filesystem::temp_directory_path() / "goodput-result-file-test";
  std::filesystem::remove_all(path);
  std::filesystem::create_directories(path);
  {
    auto study = Study::open(path / "study.db", true).value();
    Random random(3, "points");
    Point point = arbitrary::point(random);
    point.summary.window = {TimePoint(), TimePoint(seconds(1))};
    PointRow row;
    row.phase = "measure";
    row.key = "k";
    row.settings_json = "{}";
    row.offered_rate = 4;
    row.executor = "llama";
    row.schedule_hash = "abc";
    row.summary_json = to_json(point);
    ASSERT_TRUE(study->add_point(row, stored_records(), {}));
    PointRow simulated = row;
    simulated.key = "s";
    simulated.executor = "simulated";
    ASSERT_TRUE(study->add_point(simulated, stored_records(), {}));
  }
  const auto file = read_result_file(path);  // the folder means the study in it
  ASSERT_TRUE(file) << describe(file.error());
  EXPECT_EQ(file->kind, ResultKind::kStudy);
  ASSERT_EQ(file->runs.size(), 1u);  // what was simulated was not measured
  EXPECT_EQ(file->runs[0].phase, "measure");
  EXPECT_EQ(file->runs[0].schedule_hash, "abc");
  EXPECT_EQ(file->runs[0].records.size(), 3u);
  EXPECT_TRUE(file->runs[0].window);
  std::filesystem::remove_all(path);
}

}  // namespace
}  // namespace goodput
