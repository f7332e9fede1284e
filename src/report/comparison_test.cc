#include "report/comparison.h"

#include <gtest/gtest.h>

#include "metrics/definitions.h"
#include "report/compare_text.h"

namespace goodput {
namespace {

ResultRun run_with(std::vector<ResultFigure> figures, std::string hash = "", std::string label = "") {
  ResultRun run;
  run.label = std::move(label);
  run.schedule_hash = std::move(hash);
  run.figures = std::move(figures);
  return run;
}
ResultFigure p95_ttft(double value, std::string_view definition = tags::kTtftArrival) {
  return {"p95_ttft", std::string(definition), value};
}
std::vector<ResultFile> files(std::vector<ResultRun> runs) {
  std::vector<ResultFile> out;
  for (ResultRun& run : runs)
    out.push_back({"f", ResultKind::kBenchJson, {std::move(run)}});
  return out;
}
const ComparedFigure* find(const Comparison& c, std::string_view name) {
  for (const ComparedFigure& f : c.figures)
    if (f.name == name)
      return &f;
  return nullptr;
}

TEST(Comparison, SingleFiguresHaveNoInterval) {
  const auto c = compare_results(files({run_with({p95_ttft(100)})}), files({run_with({p95_ttft(110)})}));
  ASSERT_TRUE(c);
  const ComparedFigure* f = find(*c, "p95_ttft");
  ASSERT_TRUE(f && f->difference);
  EXPECT_EQ(f->difference->basis, Basis::kNone);
  EXPECT_NEAR(*f->difference->ratio, 0.1, 1e-12);
}

TEST(Comparison, SameSchedulesArePairedInAnyOrder) {
  const auto a =
      files({run_with({p95_ttft(100)}, "x"), run_with({p95_ttft(300)}, "y"), run_with({p95_ttft(200)}, "z")});
  const auto b =
      files({run_with({p95_ttft(331)}, "y"), run_with({p95_ttft(219)}, "z"), run_with({p95_ttft(110)}, "x")});
  const auto c = compare_results(a, b);
  ASSERT_TRUE(c);
  const Difference& d = *find(*c, "p95_ttft")->difference;
  EXPECT_EQ(d.basis, Basis::kPairedReplicates);
  EXPECT_NEAR(d.change, 20, 1e-9);
  EXPECT_GT(d.ratio_interval->low, 0.05);  // 10 % each, paired
  // One other schedule and the sides are unpaired.
  auto other = b;
  other[0].runs[0].schedule_hash = "w";
  EXPECT_EQ(find(*compare_results(a, other), "p95_ttft")->difference->basis, Basis::kReplicates);
}

TEST(Comparison, DefinitionsThatDifferAreNeverSubtracted) {
  const auto c = compare_results(files({run_with({p95_ttft(100), {"failed", "requests", 0}})}),
                                 files({run_with({p95_ttft(90, tags::kTtftChunk), {"failed", "requests", 2}})}));
  ASSERT_TRUE(c);
  const ComparedFigure* f = find(*c, "p95_ttft");
  ASSERT_TRUE(f);
  EXPECT_FALSE(f->difference);
  EXPECT_EQ(f->value_a, 100);
  EXPECT_EQ(f->value_b, 90);
  EXPECT_EQ(f->definition_a, tags::kTtftArrival);
  EXPECT_TRUE(find(*c, "failed")->difference);
  CompareReport report{{"a"}, {"b"}, {"x"}, {"y"}, *c, {}, false};
  const std::string text = render_compare(report, {});
  EXPECT_NE(text.find("not compared: p95_ttft"), std::string::npos);
  EXPECT_NE(text.find("send to first chunk"), std::string::npos);
}

TEST(Comparison, ASharedDefinitionIsFoundBehindOurs) {
  // Ours knows both meanings, the other tool one: that one is compared, by the other's percentile rule.
  ResultRun ours = run_with({p95_ttft(100)});
  std::vector<double> values;
  for (int i = 1; i <= 100; ++i)
    values.push_back(i);
  ours.samples.push_back({"ttft", std::string(tags::kTtftText), values});
  const std::string linear = std::string(tags::kTtftText) + ", linear percentile";
  const auto c = compare_results(files({ours}), files({run_with({{"p95_ttft", linear, 90}})}));
  ASSERT_TRUE(c);
  const ComparedFigure* f = find(*c, "p95_ttft");
  ASSERT_TRUE(f && f->difference);
  EXPECT_EQ(f->definition_a, linear);
  EXPECT_NEAR(f->difference->a, 95.05, 1e-9);  // numpy's
}

TEST(Comparison, LabelsAreMatched) {
  std::vector<ResultFile> a = {
      {"a", ResultKind::kSglang, {run_with({p95_ttft(1)}, "", "rate 1"), run_with({p95_ttft(2)}, "", "rate 2")}}};
  std::vector<ResultFile> b = {
      {"b", ResultKind::kSglang, {run_with({p95_ttft(4)}, "", "rate 2"), run_with({p95_ttft(9)}, "", "rate 3")}}};
  const auto c = compare_results(a, b);
  ASSERT_TRUE(c);
  ASSERT_EQ(c->figures.size(), 1u);
  EXPECT_EQ(c->figures[0].label, "rate 2");
  EXPECT_NEAR(*c->figures[0].difference->ratio, 1, 1e-12);
  EXPECT_GE(c->notes.size(), 2u);
  b[0].runs.erase(b[0].runs.begin());
  EXPECT_EQ(compare_results(a, b).error().code, ErrorCode::kUsage);
}

TEST(Gate, Parses) {
  EXPECT_EQ(parse_gate("p95_ttft<=+5%")->of, Gate::Of::kRatio);
  EXPECT_DOUBLE_EQ(parse_gate("goodput >= -3%")->bound, -0.03);
  EXPECT_FALSE(parse_gate("goodput>=-3%")->at_most);
  EXPECT_EQ(parse_gate("failed<=0")->of, Gate::Of::kValue);
  EXPECT_EQ(parse_gate("p95_ttft<=+20ms")->of, Gate::Of::kChange);
  EXPECT_EQ(parse_gate("p95_ttft<=300ms")->of, Gate::Of::kValue);
  EXPECT_DOUBLE_EQ(parse_gate("attainment>=-2pp")->bound, -0.02);
  for (const char* bad :
       {"", "p95_ttft", "<=5%", "p95_ttft<5%", "p95_ttft<=", "p95_ttft<=5%", "p95_ttft<=+x%", "a<=+nan"})
    EXPECT_FALSE(parse_gate(bad)) << bad;
}

TEST(Gate, Case40PointDecidesAndUndecidedIsSaid) {
  const auto a = files(
      {run_with({p95_ttft(100), {"failed", "requests", 0}}), run_with({p95_ttft(104), {"failed", "requests", 0}})});
  const auto b = files(
      {run_with({p95_ttft(103), {"failed", "requests", 3606}}), run_with({p95_ttft(105), {"failed", "requests", 0}})});
  const Comparison c = compare_results(a, b).value();
  std::vector<Gate> gates;
  for (const char* text : {"p95_ttft<=+5%", "failed<=0", "goodput>=-3%", "p95_ttft<=+1%"})
    gates.push_back(parse_gate(text).value());
  const auto outcomes = judge_gates(gates, c);
  ASSERT_EQ(outcomes.size(), 4u);
  EXPECT_TRUE(outcomes[0].passes(false));
  EXPECT_TRUE(outcomes[0].undecided);  // two replicates cannot exclude 5 %
  EXPECT_FALSE(outcomes[0].passes(true));
  EXPECT_FALSE(outcomes[1].passes(false));  // failures are never averaged away: mean 1803
  EXPECT_EQ(outcomes[2].result, GateResult::kCannotJudge);
  EXPECT_FALSE(outcomes[2].passes(false));
  EXPECT_EQ(outcomes[3].result, GateResult::kViolated);
}

}  // namespace
}  // namespace goodput
