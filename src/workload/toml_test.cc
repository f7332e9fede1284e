// Reading workloads from TOML: the grammar, its inverse, and everything that can be wrong with a file.
#include <filesystem>
#include <fstream>

#include <cmath>

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "base/limits.h"
#include "workload/random_spec.h"
#include "workload/spec.h"

namespace goodput {
namespace {

constexpr std::string_view kFull = R"([workload]
name = "study"
arrivals = "closed"
rate = 2.5
concurrency = 8
think_time = "1500ms"

[[workload.class]]
name = "chat"
share = 7
prompt = "32..96"
output = 24
targets = "ttft:200 tpot:40.5"

[[workload.class]]
name = "rag"
share = 3
priority = -2
prompt = { median = 1500.5, sigma = 0.4, min = 1024, max = 2048 }
output = "16..32"
shared_documents = 4
question = 32
ttft_times_unloaded = 20
gap_times_unloaded = 8.5
e2e_times_unloaded = 12
)";

TEST(Toml, ReadsTheWholeGrammar) {
  const auto w = parse_workload(kFull, "study.toml");
  ASSERT_TRUE(w) << describe(w.error());
  EXPECT_EQ(w->name, "study");
  EXPECT_EQ(w->arrivals, ArrivalKind::kClosed);
  EXPECT_EQ(w->rate, 2.5);
  EXPECT_EQ(w->concurrency, 8);
  EXPECT_EQ(w->think_time, milliseconds(1500));
  ASSERT_EQ(w->classes.size(), 2u);
  const ClassSpec &chat = w->classes[0], &rag = w->classes[1];
  EXPECT_EQ(chat.share, 7);
  EXPECT_EQ(chat.prompt, (LengthSpec{LengthSpec::Kind::kUniform, Tokens(32), Tokens(96)}));
  EXPECT_EQ(chat.output, (LengthSpec{LengthSpec::Kind::kFixed, Tokens(24), Tokens(24)}));
  EXPECT_EQ(chat.targets[TargetKey::kTtft], milliseconds(200));
  EXPECT_EQ(chat.targets[TargetKey::kTpot], microseconds(40'500));
  EXPECT_FALSE(chat.ttft_times_unloaded);
  EXPECT_EQ(rag.priority, -2);
  EXPECT_EQ(rag.prompt, (LengthSpec{LengthSpec::Kind::kLognormal, Tokens(1024), Tokens(2048), 1500.5, 0.4}));
  EXPECT_EQ(rag.shared_documents, 4);
  EXPECT_EQ(rag.question, Tokens(32));
  EXPECT_EQ(rag.ttft_times_unloaded, 20);
  EXPECT_EQ(rag.gap_times_unloaded, 8.5);
  EXPECT_EQ(rag.e2e_times_unloaded, 12);
}

TEST(Toml, ReadsATrace) {
  const auto w = parse_workload(R"(
[workload]
arrivals = "trace"
trace = { file = "code.csv", from = 600, length = "5m", rate_factor = 0.5, length_factor = 0.1, max_prompt = 2048 }
[[workload.class]]
name = "code"
)",
                                "f");
  ASSERT_TRUE(w) << describe(w.error());
  const TraceSpec expected{.file = "code.csv",
                           .from = seconds(600),
                           .length = seconds(300),
                           .rate_factor = 0.5,
                           .length_factor = 0.1,
                           .max_prompt = Tokens(2048)};
  EXPECT_EQ(w->trace, expected);
  EXPECT_EQ(w->classes.size(), 1u);
}

TEST(Toml, ArrivalsTurnsAndPrefixes) {
  const auto w = parse_workload(
      "[workload]\narrivals = \"gamma\"\nburstiness = inf\n"
      "[[workload.stage]]\nrate = 4\nduration = \"1m\"\n[[workload.stage]]\nrate = 0\nduration = 5\n"
      "[[workload.class]]\nname = \"a\"\nprompt = 8\noutput = 8\nprefix_groups = 3\nprefix_len = 64\n"
      "turns = \"2..4\"\nthink_time = {median = \"2s\", sigma = 0.5, min = 0, max = \"1m\"}\ntext = \"chinese\"\n"
      "[[workload.class]]\nname = \"b\"\nprompt = 8\noutput = 8\nthink_time = \"500ms..2s\"\n",
      "f");
  ASSERT_TRUE(w) << describe(w.error());
  EXPECT_TRUE(std::isinf(w->burstiness));
  ASSERT_EQ(w->stages.size(), 2u);
  EXPECT_EQ(w->stages[1], (StageSpec{0, seconds(5)}));
  const ClassSpec& a = w->classes[0];
  EXPECT_EQ(a.prefix_len, Tokens(64));
  EXPECT_EQ(a.turns, (LengthSpec{LengthSpec::Kind::kUniform, Tokens(2), Tokens(4)}));
  EXPECT_EQ(a.think_time, (TimeSpec{LengthSpec::Kind::kLognormal, Nanos(0), seconds(60), seconds(2), 0.5}));
  EXPECT_EQ(a.text, TextKind::kChinese);
  EXPECT_EQ(w->classes[1].think_time, (TimeSpec{LengthSpec::Kind::kUniform, milliseconds(500), seconds(2)}));

  const auto ramp = parse_workload(
      "[workload]\n[workload.ramp]\nfrom = 1\nto = 8\nover = \"5m\"\nshape = \"exponential\"\nby = \"index\"\n", "f");
  ASSERT_TRUE(ramp) << describe(ramp.error());
  EXPECT_EQ(ramp->ramp, (RampSpec{RampSpec::Shape::kExponential, RampSpec::By::kIndex, 1, 8, seconds(300)}));
  EXPECT_EQ(parse_workload("[workload]\n[workload.ramp]\nfrom = 1\nto = -8\n", "f").error().context, "f:4:6");
  EXPECT_EQ(parse_workload("[workload]\n[[workload.stage]]\nrate = 1\n", "f").error().context, "f:2:1");
}

TEST(Toml, OtherPartsOfAStudyFileAreOthers) {
  const auto w = parse_workload("[map]\nanything = 1\n[engine]\n[targets]\nx.y = [1, 2]\n", "f");
  ASSERT_TRUE(w) << describe(w.error());
  EXPECT_EQ(*w, default_workload());
}

TEST(Toml, WithoutClassesTheDefaultMixStays) {
  const auto w = parse_workload("[workload]\nrate = 3\n", "f");
  ASSERT_TRUE(w) << describe(w.error());
  WorkloadSpec expected = default_workload();
  expected.rate = 3;
  EXPECT_EQ(*w, expected);
}

TEST(Toml, WritingIsTheInverseOfReading) {
  EXPECT_TRUE(rc::check("parse(to_toml(w)) == w", [] {
    const WorkloadSpec w = random_workload();
    RC_ASSERT(validate(w).has_value());
    const std::string text = to_toml(w);
    const auto back = parse_workload(text, "f");
    if (!back)
      RC_FAIL(describe(back.error()) + "\n" + text);
    if (!(*back == w))
      RC_FAIL(text + "\n---\n" + to_toml(*back));
    RC_ASSERT(to_toml(*back) == text);
    RC_ASSERT(workload_hash(*back) == workload_hash(w));
  }));
  EXPECT_EQ(*parse_workload(to_toml(default_workload()), "f"), default_workload());
}

// One wrong file: where and what the error says.
struct Wrong {
  std::string toml, where, says;
};

std::string a_class(const std::string& extra) {
  return "[[workload.class]]\nname = \"a\"\nprompt = 8\noutput = 8\n" + extra + "\n";
}

class TomlErrors : public testing::TestWithParam<Wrong> {};

TEST_P(TomlErrors, SaysWhereAndWhat) {
  const auto w = parse_workload(GetParam().toml, "f.toml");
  ASSERT_FALSE(w) << GetParam().toml;
  EXPECT_EQ(w.error().code, ErrorCode::kUsage);
  EXPECT_EQ(w.error().context, "f.toml:" + GetParam().where) << describe(w.error());
  EXPECT_NE(w.error().message.find(GetParam().says), std::string::npos) << describe(w.error());
  EXPECT_LT(describe(w.error()).size(), 1000u);
}

INSTANTIATE_TEST_SUITE_P(
    Keys, TomlErrors,
    testing::Values(Wrong{"", "1:1", "empty"}, Wrong{"  \n# only a comment\n", "1:1", "empty"},
                    Wrong{"[worklaod]\nrate = 1\n", "1:2", "worklaod: unknown key; did you mean 'workload'?"},
                    Wrong{"workload = 3\n", "1:12", "workload: expected a table, found 3"},
                    Wrong{"[workload]\nrat = 1\n", "2:1", "workload.rat: unknown key; did you mean 'rate'?"},
                    Wrong{"[workload]\nzzzzzzzzzz = 1\n", "2:1", "expected one of name, arrivals"},
                    Wrong{a_class("shares = 1"), "5:1", "workload.class[0].shares: unknown key; did you mean 'share'?"},
                    Wrong{a_class("share = \"half\""), "5:9",
                          "workload.class[0].share: expected a number, found 'half'"},
                    Wrong{"[workload]\ntrace = {file = 'a', fron = 1}\n", "2:22",
                          "workload.trace.fron: unknown key; did you mean 'from'?"},
                    Wrong{a_class("targets = \"tftt:200\""), "5:11", "did you mean 'ttft'?"},
                    Wrong{a_class("targets = \"ttft\""), "5:11", "targets"},
                    Wrong{"[workload]\narrivals = \"poison\"\n", "2:12", "did you mean 'poisson'?"},
                    Wrong{"[[workload.class]]\nprompt = 1\noutput = 1\n", "1:1", "workload.class[0].name: missing"},
                    Wrong{"[[workload.class]]\nname = 'a'\noutput = 1\n", "1:1", "workload.class[0].prompt: missing"},
                    Wrong{"[workload]\nclass = []\n", "2:9", "at least one class"},
                    Wrong{"[workload]\nclass = [1]\n", "2:10", "expected a table, found 1"},
                    Wrong{"[workload.class]\nname = 'a'\n", "1:1", "[[workload.class]]"},
                    Wrong{a_class("") + a_class(""), "7:8", "there is another class 'a'"}));

INSTANTIATE_TEST_SUITE_P(
    Values, TomlErrors,
    testing::Values(Wrong{a_class("share = 0"), "5:9", "above 0"}, Wrong{a_class("share = -0.1"), "5:9", "above 0"},
                    Wrong{a_class("share = nan"), "5:9", "expected a number, found nan"},
                    Wrong{a_class("share = inf"), "5:9", "expected a number, found inf"},
                    Wrong{"[workload]\nrate = 1e300\n", "2:8", "at most"},
                    Wrong{"[workload]\nrate = -1\n", "2:8", "above 0"},
                    Wrong{"[workload]\nrate = true\n", "2:8", "found true"},
                    Wrong{"[workload]\nrate = 1979-05-27\n", "2:8", "found a date"},
                    Wrong{"[workload]\nconcurrency = 2.5\n", "2:15", "expected a whole number, found 2.5"},
                    Wrong{"[workload]\nconcurrency = 99999999999\n", "2:15", "expected a whole number"},
                    Wrong{"[workload]\nconcurrency = 99999999999999999999999\n", "2:38", "64 bits"},
                    Wrong{"[workload]\nconcurrency = 0\n", "2:15", "expected 1 to"},
                    Wrong{"[workload]\nthink_time = \"soon\"\n", "2:14", "duration"},
                    Wrong{"[workload]\nthink_time = \"-1s\"\n", "2:14", "think_time"},
                    Wrong{"[workload]\nthink_time = []\n", "2:14", "duration"},
                    Wrong{"[workload]\narrivals = \"trace\"\n", "2:12", "[workload.trace]"},
                    Wrong{"[workload]\n[workload.trace]\nfrom = 1\n", "2:1", "workload.trace.file: missing"},
                    Wrong{"[workload]\n[workload.trace]\nfile = ''\n", "3:8", "needs a file"},
                    Wrong{"[workload]\n[workload.trace]\nfile = 'a'\nrate_factor = 0\n", "4:15", "above 0"},
                    Wrong{a_class("shared_documents = 2"), "1:1", "question"},
                    Wrong{a_class("shared_documents = 2\nquestion = 7"), "6:12", "leaves no document"},
                    Wrong{a_class("shared_documents = 9999999\nquestion = 1"), "5:20", "documents"},
                    Wrong{a_class("priority = 3000000000"), "5:12", "whole number"},
                    Wrong{a_class("gap_times_unloaded = -1"), "5:22", "above 0"}));

Wrong length(const std::string& value, const std::string& says, int column = 10) {
  return {"[[workload.class]]\nname = 'a'\noutput = 1\nprompt = " + value + "\n", "4:" + std::to_string(column), says};
}

INSTANTIATE_TEST_SUITE_P(
    Lengths, TomlErrors,
    testing::Values(length("\"96..32\"", "the minimum 96 is above the maximum 32"), length("0", "expected 1 to"),
                    length("-5", "expected 1 to"), length("\"0..5\"", "expected 1 to"),
                    length("2.5", "expected a number of tokens"), length("\"32\"", "range"),
                    length("\"32..\"", "range"), length("\"..\"", "range"), length("\"1..99999999999\"", "range"),
                    length("\"1..2..3\"", "range"), length("9999999999", "whole number"),
                    length("2000000", "expected 1 to"), length("[1, 2]", "found an array"),
                    length("{median = 3}", "workload.class[0].prompt.sigma: missing"),
                    length("{median = nan, sigma = 1, min = 1, max = 2}", "expected a number", 20),
                    length("{median = 3, sigma = 99, min = 1, max = 2}", "sigma"),
                    length("{median = 0, sigma = 1, min = 1, max = 2}", "median"),
                    length("{median = 3, sigma = 1, min = 5, max = 2}", "minimum 5"),
                    length("{median = 3, sigma = 1, min = 5, maxx = 2}", "did you mean 'max'?", 43)));

std::string repeated(std::string_view what, size_t times) {
  std::string out;
  for (size_t i = 0; i < times; ++i)
    out += what;
  return out;
}

INSTANTIATE_TEST_SUITE_P(
    Hostile, TomlErrors,
    testing::Values(Wrong{"[workload]\nname = \"a\nrate = 1\n", "2:10", ""}, Wrong{"[workload", "1:10", ""},
                    Wrong{"[workload]\nname = \"\xff\xfe\"\n", "2:8", "utf-8"},
                    Wrong{"[workload]\nrate = 1\nrate = 2\n", "3:8", "redefine"},
                    Wrong{"a" + repeated(".a", 100'000) + " = 1\n", "1:1", "dots in one line"},
                    Wrong{"[workload]\n[" + repeated("1.", 100'000) + "1]\n", "2:1", "dots in one line"},
                    Wrong{"[workload]\n" + std::string(1'000'000, 'k') + " = 1\n", "2:1", "unknown key"},
                    Wrong{"[workload]\nname = \"" + std::string(1'000'000, 'k') + "\"\n", "2:8", "at most"}));

TEST(Toml, DeepNestingIsRefused) {
  EXPECT_FALSE(parse_workload("[map]\nx = " + std::string(100'000, '['), "f"));
  EXPECT_FALSE(parse_workload("[map]\nx = " + repeated("{a=", 100'000), "f"));
  // As deep as the limits allow: dotted keys inside inline tables inside arrays.
  std::string deep = "[map]\nx = ";
  for (int i = 0; i < 200; ++i)
    deep += "[\n{" + repeated("a.", limits::kMaxTomlDotsPerLine) + "a = ";
  deep += "1";
  for (int i = 0; i < 200; ++i)
    deep += "}]";
  (void)parse_workload(deep, "f");  // refused or read: it returns
}

TEST(Toml, ManyDecimalsInALineAreNotDots) {
  EXPECT_TRUE(parse_workload("[map]\nrates = [" + repeated("0.25, 1.5, ", 200) + "]\n", "f"));
}

TEST(Toml, TooManyClasses) {
  std::string text;
  for (int i = 0; i <= limits::kMaxClasses; ++i)
    text += "[[workload.class]]\nname = 'c" + std::to_string(i) + "'\nprompt = 1\noutput = 1\n";
  const auto w = parse_workload(text, "f");
  ASSERT_FALSE(w);
  EXPECT_NE(w.error().message.find("at most 64 classes, found 65"), std::string::npos) << w.error().message;
}

TEST(Toml, TooLargeAFile) { EXPECT_FALSE(parse_workload(std::string(limits::kMaxStudyFileBytes + 1, '\n'), "f")); }

TEST(Toml, AnyBytesReturn) {
  EXPECT_TRUE(rc::check("no input ends the process", [](const std::string& bytes) {
    (void)parse_workload(bytes, "f");
    (void)parse_workload("[workload]\n" + bytes, "f");
  }));
}

TEST(Toml, EveryPrefixOfAFileReturns) {
  for (size_t n = 0; n < kFull.size(); ++n)
    if (const auto w = parse_workload(kFull.substr(0, n), "f"); !w) {
      EXPECT_TRUE(w.error().context.starts_with("f:"));
    }
}

TEST(Toml, LoadsFromAFileAndFindsItsTraceBesideIt) {
  const auto folder = std::filesystem::path(testing::TempDir()) / "goodput_toml_test";
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "s.toml") << "[workload]\narrivals = 'trace'\ntrace = {file = 'sub/t.csv'}\n";
  const auto w = load_workload((folder / "s.toml").string());
  ASSERT_TRUE(w) << describe(w.error());
  EXPECT_EQ(w->trace->file, (folder / "sub/t.csv").string());
  std::ofstream(folder / "abs.toml") << "[workload]\narrivals = 'trace'\ntrace = {file = '/t.csv'}\n";
  EXPECT_EQ(load_workload((folder / "abs.toml").string())->trace->file, "/t.csv");

  const auto missing = load_workload((folder / "none.toml").string());
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, ErrorCode::kNotFound);
  EXPECT_FALSE(load_workload(folder.string()));
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace goodput
