#include "workload/spec.h"

#include <algorithm>
#include <functional>
#include <limits>

#include <gtest/gtest.h>

#include "base/limits.h"

namespace goodput {
namespace {

ClassSpec simple(std::string name) {
  return {.name = std::move(name), .prompt = {LengthSpec::Kind::kFixed, Tokens(8), Tokens(8)}};
}

TEST(Spec, DefaultMixIsTheDocumentedOne) {
  const WorkloadSpec w = default_workload();
  ASSERT_TRUE(validate(w));
  ASSERT_EQ(w.classes.size(), 3u);
  EXPECT_EQ(w.classes[0].name, "chat");
  EXPECT_DOUBLE_EQ(w.classes[0].share, 0.7);
  EXPECT_EQ(w.classes[0].prompt, (LengthSpec{LengthSpec::Kind::kUniform, Tokens(32), Tokens(96)}));
  EXPECT_EQ(w.classes[0].output, (LengthSpec{LengthSpec::Kind::kUniform, Tokens(16), Tokens(48)}));
  EXPECT_EQ(w.classes[0].ttft_times_unloaded, 20);
  EXPECT_EQ(w.classes[0].gap_times_unloaded, 20);
  EXPECT_EQ(w.classes[1].name, "rag");
  EXPECT_DOUBLE_EQ(w.classes[1].share, 0.1);
  EXPECT_EQ(w.classes[1].prompt, (LengthSpec{LengthSpec::Kind::kUniform, Tokens(1024), Tokens(2048)}));
  EXPECT_EQ(w.classes[1].shared_documents, 4);
  EXPECT_EQ(w.classes[2].name, "background");
  EXPECT_DOUBLE_EQ(w.classes[2].share, 0.2);
  EXPECT_GT(w.classes[2].priority, w.classes[0].priority);
  EXPECT_FALSE(w.classes[2].gap_times_unloaded);
  EXPECT_FALSE(w.classes[2].ttft_times_unloaded);
  EXPECT_TRUE(w.classes[2].e2e_times_unloaded);
}

TEST(Spec, ClassRulesKeepOrderAndTargets) {
  WorkloadSpec w = default_workload();
  w.classes[1].targets[TargetKey::kTtft] = milliseconds(70);
  const auto rules = class_rules(w);
  ASSERT_EQ(rules.size(), 3u);
  EXPECT_EQ(rules[1].name, "rag");
  EXPECT_EQ(rules[1].targets, w.classes[1].targets);
  EXPECT_TRUE(rules[0].targets.empty());
}

TEST(Spec, HashIsPinned) {
  // A change here changes the name of every workload in every study file: only with a new version in the hash's text.
  EXPECT_EQ(workload_hash(default_workload()), "cc7aed4c3f0b10d8e080d7cb7caded6d7c8febe9b40ea5977355b9d027d46cdf");
}

TEST(Spec, HashIgnoresWhatDoesNotMakeTheLoad) {
  const WorkloadSpec base = default_workload();
  WorkloadSpec w = base;
  w.rate = 17.5;
  w.name = "another";
  w.concurrency = 9;  // open loop: unused
  w.think_time = seconds(3);
  w.trace = TraceSpec{.file = "x.csv"};
  EXPECT_EQ(workload_hash(w), workload_hash(base));

  WorkloadSpec here, there;
  here.classes = there.classes = {simple("a")};
  here.arrivals = there.arrivals = ArrivalKind::kTrace;
  here.trace = TraceSpec{.file = "traces/code.csv"};
  there.trace = TraceSpec{.file = "/elsewhere/code.csv"};
  EXPECT_EQ(workload_hash(here), workload_hash(there));
}

TEST(Spec, HashSeesEverythingElse) {
  const WorkloadSpec base = default_workload();
  std::vector<WorkloadSpec> variants(19, base);
  variants[1].classes[0].share = 0.71;
  variants[2].classes[0].priority = 1;
  variants[3].classes[0].prompt.high = Tokens(97);
  variants[4].classes[1].shared_documents = 5;
  variants[5].classes[1].question = Tokens(33);
  variants[6].classes[0].targets[TargetKey::kTpot] = milliseconds(40);
  variants[7].classes[0].ttft_times_unloaded = 11;
  variants[8].arrivals = ArrivalKind::kConstant;
  variants[9].arrivals = ArrivalKind::kClosed;
  variants[10].classes[2].name = "batch";
  variants[11].classes[0].prefix_groups = 2;
  variants[12].classes[0].prefix_len = Tokens(64);
  variants[13].classes[0].turns = {LengthSpec::Kind::kUniform, Tokens(1), Tokens(3)};
  variants[14].classes[0].think_time.low = seconds(1);
  variants[15].classes[0].text = TextKind::kCode;
  variants[16].arrivals = ArrivalKind::kGamma;
  variants[17].ramp = RampSpec{.from = 1, .to = 2};
  variants[18].trace = TraceSpec{.file = "a", .requests_only = true};
  std::vector<std::string> hashes;
  for (const auto& w : variants)
    hashes.push_back(workload_hash(w));
  std::ranges::sort(hashes);
  EXPECT_EQ(std::ranges::adjacent_find(hashes), hashes.end());
}

TEST(Spec, ClosedLoopHashSeesConcurrency) {
  WorkloadSpec a = default_workload();
  a.arrivals = ArrivalKind::kClosed;
  WorkloadSpec b = a;
  b.concurrency = 2;
  EXPECT_NE(workload_hash(a), workload_hash(b));
}

// Each wrong value is named with its class and key.
TEST(Spec, ValidateNamesWhatIsWrong) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const std::pair<std::string, std::function<void(WorkloadSpec&)>> cases[] = {
      {"workload: rate", [&](WorkloadSpec& w) { w.rate = nan; }},
      {"workload: rate", [](WorkloadSpec& w) { w.rate = 0; }},
      {"workload: rate", [](WorkloadSpec& w) { w.rate = 1e300; }},
      {"workload: concurrency", [](WorkloadSpec& w) { w.concurrency = 0; }},
      {"workload: think_time", [](WorkloadSpec& w) { w.think_time = Nanos(-1); }},
      {"workload: arrivals", [](WorkloadSpec& w) { w.arrivals = ArrivalKind::kTrace; }},
      {"workload: class", [](WorkloadSpec& w) { w.classes.clear(); }},
      {"workload.trace: file", [](WorkloadSpec& w) { w.trace = TraceSpec{}; }},
      {"workload.trace: file", [](WorkloadSpec& w) { w.trace = TraceSpec{.file = std::string("a\0b", 3)}; }},
      {"workload.trace: rate_factor", [](WorkloadSpec& w) { w.trace = TraceSpec{.file = "a", .rate_factor = 0}; }},
      {"workload.class[0] 'chat': share", [&](WorkloadSpec& w) { w.classes[0].share = nan; }},
      {"workload.class[0] 'chat': share", [](WorkloadSpec& w) { w.classes[0].share = 0; }},
      {"workload.class[0] 'chat': share", [](WorkloadSpec& w) { w.classes[0].share = -1; }},
      {"workload.class[0] 'chat': prompt", [](WorkloadSpec& w) { w.classes[0].prompt.low = Tokens(97); }},
      {"workload.class[0] 'chat': prompt", [](WorkloadSpec& w) { w.classes[0].prompt.low = Tokens(0); }},
      {"workload.class[0] 'chat': output", [](WorkloadSpec& w) { w.classes[0].output.high = Tokens(1 << 30); }},
      {"workload.class[1] 'rag': question", [](WorkloadSpec& w) { w.classes[1].question = Tokens(0); }},
      {"workload.class[1] 'rag': question", [](WorkloadSpec& w) { w.classes[1].question = Tokens(1023); }},
      {"workload.class[1] 'rag': shared_documents", [](WorkloadSpec& w) { w.classes[1].shared_documents = -1; }},
      {"workload.class[1] 'chat': name", [](WorkloadSpec& w) { w.classes[1].name = "chat"; }},
      {"workload.class[0] 'a b': name", [](WorkloadSpec& w) { w.classes[0].name = "a b"; }},
      {"workload: burstiness", [](WorkloadSpec& w) { w.burstiness = 0; }},
      {"workload: burstiness", [&](WorkloadSpec& w) { w.burstiness = nan; }},
      {"workload: ramp", [](WorkloadSpec& w) { w.ramp = RampSpec{}, w.stages = {{1, seconds(1)}}; }},
      {"workload: rescale", [](WorkloadSpec& w) { w.ramp = RampSpec{}, w.rescale = true; }},
      {"workload.ramp: from",
       [](WorkloadSpec& w) { w.ramp = RampSpec{.shape = RampSpec::Shape::kExponential, .from = 0}; }},
      {"workload.ramp: to", [](WorkloadSpec& w) { w.ramp = RampSpec{.from = 0, .to = 0}; }},
      {"workload.stage[1]: rate", [](WorkloadSpec& w) { w.stages = {{1, seconds(1)}, {-1, seconds(1)}}; }},
      {"workload.stage[0]: rate", [](WorkloadSpec& w) { w.stages = {{0, seconds(1)}}; }},
      {"workload.stage[0]: duration", [](WorkloadSpec& w) { w.stages = {{1, Nanos(0)}}; }},
      {"workload.trace: requests_only",
       [](WorkloadSpec& w) {
         w.arrivals = ArrivalKind::kTrace;
         w.trace = TraceSpec{.file = "a", .requests_only = true};
       }},
      {"workload.trace: assumed_prefix_share",
       [](WorkloadSpec& w) { w.trace = TraceSpec{.file = "a", .assumed_prefix_share = 1}; }},
      {"workload.trace: label_hash_ids",
       [](WorkloadSpec& w) { w.trace = TraceSpec{.file = "a", .labels = {"t", "i", "o", ""}}; }},
      {"workload.class[1] 'rag': prefix_groups", [](WorkloadSpec& w) { w.classes[1].prefix_groups = 2; }},
      {"workload.class[0] 'chat': prefix_len", [](WorkloadSpec& w) { w.classes[0].prefix_groups = 2; }},
      {"workload.class[0] 'chat': turns", [](WorkloadSpec& w) { w.classes[0].turns.low = Tokens(2000); }},
      {"workload.class[0] 'chat': think_time", [](WorkloadSpec& w) { w.classes[0].think_time.low = Nanos(-1); }},
      {"workload.class[0] 'chat': ttft_times_unloaded", [](WorkloadSpec& w) { w.classes[0].ttft_times_unloaded = 0; }},
  };
  for (const auto& [expected, spoil] : cases) {
    WorkloadSpec w = default_workload();
    spoil(w);
    const auto result = validate(w);
    ASSERT_FALSE(result) << expected;
    EXPECT_EQ(result.error().code, ErrorCode::kUsage);
    EXPECT_TRUE(describe(result.error()).starts_with(expected)) << describe(result.error());
  }
}

TEST(Spec, AtMostTheLimitOfClasses) {
  WorkloadSpec w;
  for (int i = 0; i < limits::kMaxClasses; ++i)
    w.classes.push_back(simple("c" + std::to_string(i)));
  EXPECT_TRUE(validate(w));
  w.classes.push_back(simple("one-more"));
  EXPECT_FALSE(validate(w));
}

TEST(Spec, NamesHaveALimit) {
  WorkloadSpec w = default_workload();
  w.classes[0].name = std::string(limits::kMaxNameBytes, 'x');
  EXPECT_TRUE(validate(w));
  w.classes[0].name += 'x';
  EXPECT_FALSE(validate(w));
}

}  // namespace
}  // namespace goodput
