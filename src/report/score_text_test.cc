#include "report/score_text.h"

#include <gtest/gtest.h>

#include "metrics/test_records.h"
#include "report/definitions_text.h"

namespace goodput {
namespace {

using testing::failed;
using testing::rule;
using testing::steady_stream;
using testing::window_ms;

ScoredRun scored(double ttft, std::string label = "") {
  std::vector<RequestRecord> records = {steady_stream(0, 100, 10, 5), steady_stream(10, ttft, 10, 5),
                                        failed(Outcome::kReset, 20, 5)};
  ScoredRun run;
  run.label = std::move(label);
  run.rules = {rule({"ttft:300", "tpot:40"}, "all")};
  run.summary = summarize(records, run.rules, window_ms(0, 1000));
  run.mlperf = mlperf_verdict(records, from_ms(300), from_ms(40));
  run.length_s = 1;
  return run;
}

TEST(Score, CountsFailuresAndPoolsReplicates) {
  ScoreReport report;
  report.runs = {scored(200), scored(400), scored(200)};
  const auto groups = score_groups(report);
  ASSERT_EQ(groups.size(), 1u);
  EXPECT_EQ(groups[0].replicates, 3u);
  EXPECT_NEAR(groups[0].attainment->value, 5.0 / 9, 1e-12);
  EXPECT_LT(*groups[0].attainment->low, 5.0 / 9);
  const std::string text = render_score(report, {});
  EXPECT_NE(text.find("66.7 %"), std::string::npos);
  EXPECT_NE(text.find("3 replicates"), std::string::npos);
  EXPECT_NE(text.find("MLPerf's own rule: does not hold"), std::string::npos);
  EXPECT_NE(text.find("600 s"), std::string::npos);
  const std::string json = score_json(report);
  EXPECT_NE(json.find("\"schema\":\"goodput.score/1\""), std::string::npos);
  EXPECT_NE(json.find("\"needed_within\""), std::string::npos);
}

TEST(DefinitionsText, NamesEveryToolAndNeverPrintsNonsense) {
  DefinitionsReport report{"f", "", rule({"ttft:300"}).targets, {}};
  const std::vector<RequestRecord> none, records = {steady_stream(0, 100, 10, 5)};
  for (const auto& r : {none, records}) {
    report.views.clear();
    for (const Tool tool : kTools)
      report.views.push_back(view_under(tool, r, r, report.targets, 1));
    for (const std::string& text : {render_definitions(report, {}), definitions_json(report)}) {
      for (const char* tool : {"vllm", "sglang", "aiperf", "guidellm", "evalscope"})
        EXPECT_TRUE(text.find(tool) != text.npos || text.find("vLLM") != text.npos) << tool;
      for (const char* nonsense : {"nan", "inf ", "-1"})
        EXPECT_EQ(text.find(nonsense), text.npos) << nonsense;
    }
  }
}

}  // namespace
}  // namespace goodput
