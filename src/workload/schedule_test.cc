#include "workload/schedule.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "base/limits.h"
#include "workload/random_spec.h"
#include "workload/toy_tokenizer.h"

namespace goodput {
namespace {

Schedule make(const WorkloadSpec& w, const ScheduleOptions& o, const Tokenizer* tokenizer = nullptr) {
  auto s = make_schedule(w, o, tokenizer);
  if (!s)
    ADD_FAILURE() << describe(s.error());
  return s ? std::move(*s) : Schedule{};
}

WorkloadSpec one_class(int prompt, int output) {
  WorkloadSpec w;
  w.classes = {{.name = "only",
                .prompt = {LengthSpec::Kind::kFixed, Tokens(prompt), Tokens(prompt)},
                .output = {LengthSpec::Kind::kFixed, Tokens(output), Tokens(output)}}};
  return w;
}

std::string refusal(const WorkloadSpec& w, const ScheduleOptions& o, const Tokenizer* tokenizer = nullptr) {
  const auto s = make_schedule(w, o, tokenizer);
  return s ? "made" : describe(s.error());
}

TEST(Schedule, HashIsPinned) {
  // A change here makes every stored schedule another one: only with a new version in the hash's text.
  WorkloadSpec w = default_workload();
  w.rate = 4;
  EXPECT_EQ(make(w, {.seed = 1, .requests = 200}).hash,
            "0596259c8b416b9623b37f9c3786f101ac7e5bc41021d7900aabc486caf0b633");
  const ToyTokenizer tokenizer;
  EXPECT_EQ(make(w, {.seed = 1, .requests = 200}, &tokenizer).hash,
            "7b7be48be8fdf039619dd3abb3edac2b079bc1eecd7e195f7537110479849f3b");
}

TEST(Schedule, SameSeedSameScheduleOtherSeedAnother) {
  const WorkloadSpec w = default_workload();
  const Schedule a = make(w, {.seed = 5, .duration = seconds(60)}), b = make(w, {.seed = 5, .duration = seconds(60)});
  const Schedule c = make(w, {.seed = 6, .duration = seconds(60)});
  EXPECT_EQ(a.hash, b.hash);
  EXPECT_NE(a.hash, c.hash);
  EXPECT_EQ(a.seed, 5u);
}

TEST(Schedule, TheDefaultMixHasItsSharesLengthsAndOrder) {
  WorkloadSpec w = default_workload();
  w.rate = 100;
  const Schedule s = make(w, {.seed = 1, .requests = 20'000});
  std::array<double, 3> count{}, prompt{}, output{};
  Nanos last;
  for (const auto& r : s.requests) {
    const ClassSpec& c = w.classes[r.cls];
    const Tokens length(std::ssize(r.prompt));
    EXPECT_TRUE(length >= c.prompt.low && length <= c.prompt.high);
    EXPECT_TRUE(r.output >= c.output.low && r.output <= c.output.high);
    EXPECT_EQ(r.priority, c.priority);
    EXPECT_TRUE(r.text.empty());
    EXPECT_GE(r.at, last);
    last = r.at;
    ++count[r.cls];
    prompt[r.cls] += length.count();
    output[r.cls] += r.output.count();
  }
  for (size_t c = 0; c < 3; ++c) {
    const double p = w.classes[c].share;
    EXPECT_NEAR(count[c] / 20'000, p, 4 * std::sqrt(p * (1 - p) / 20'000));
  }
  EXPECT_NEAR(prompt[0] / count[0], 64, 1);
  EXPECT_NEAR(prompt[1] / count[1], 1536, 30);
  EXPECT_NEAR(prompt[2] / count[2], 128, 3);
  EXPECT_NEAR(output[0] / count[0], 32, 0.5);
  EXPECT_EQ(s.requests[7].index, 7u);
}

TEST(Schedule, RagPromptsAreDocumentsAndQuestions) {
  const WorkloadSpec w = default_workload();
  const Schedule s = make(w, {.seed = 3, .requests = 3000});
  // Document k of 4 is the (k + ½)/4 quantile of 1024–2048 less the question: whatever the seed.
  ASSERT_EQ(s.priming.size(), 4u);
  const std::array<int, 4> lengths = {1120, 1376, 1632, 1888};
  std::array<int, 4> used{};
  for (size_t k = 0; k < 4; ++k) {
    EXPECT_EQ(std::ssize(s.priming[k].prompt), lengths[k] + 32);
    EXPECT_EQ(s.priming[k].output, Tokens(1));
    EXPECT_EQ(s.priming[k].cls, 1);
  }
  int64_t hits = 0, total = 0;
  for (const auto& r : s.requests) {
    total += std::ssize(r.prompt);
    if (r.cls != 1)
      continue;
    size_t documents = 0;
    for (size_t k = 0; k < 4; ++k) {
      const auto n = static_cast<size_t>(lengths[k]);
      if (r.prompt.size() <= n ||
          !std::equal(r.prompt.begin(), r.prompt.begin() + lengths[k], s.priming[k].prompt.begin()))
        continue;
      ++documents;
      ++used[k];
      hits += lengths[k] / 16 * 16;
      EXPECT_GE(r.prompt.size() - n, 16u);
      EXPECT_LE(r.prompt.size() - n, 48u);
    }
    EXPECT_EQ(documents, 1u);
  }
  for (const int n : used)
    EXPECT_GT(n, 40);
  EXPECT_DOUBLE_EQ(s.implied_hit_rate, static_cast<double>(hits) / static_cast<double>(total));
  EXPECT_GT(s.implied_hit_rate, 0.5);
}

TEST(Schedule, ImpliedHitsAreWholeBlocksAndNeverTheLastToken) {
  WorkloadSpec w = one_class(65, 1);
  w.classes[0].shared_documents = 1;
  w.classes[0].question = Tokens(1);
  // 64 shared of 65 tokens.
  EXPECT_DOUBLE_EQ(make(w, {.requests = 10, .block_size = Tokens(16)}).implied_hit_rate, 64 / 65.0);
  EXPECT_DOUBLE_EQ(make(w, {.requests = 10, .block_size = Tokens(50)}).implied_hit_rate, 50 / 65.0);
  EXPECT_DOUBLE_EQ(make(w, {.requests = 10, .block_size = Tokens(128)}).implied_hit_rate, 0);
  EXPECT_DOUBLE_EQ(make(one_class(64, 1), {.requests = 10}).implied_hit_rate, 0);
}

TEST(Schedule, AnotherRateIsTheSameRequestsWithStretchedTimes) {
  WorkloadSpec slow = default_workload(), fast = slow;
  slow.rate = 0.5;
  fast.rate = 8;
  const Schedule a = make(slow, {.seed = 9, .requests = 500}), b = make(fast, {.seed = 9, .requests = 500});
  for (size_t i = 0; i < 500; ++i) {
    EXPECT_EQ(a.requests[i].cls, b.requests[i].cls);
    EXPECT_EQ(a.requests[i].prompt, b.requests[i].prompt);
    EXPECT_EQ(a.requests[i].output, b.requests[i].output);
    EXPECT_NEAR(to_seconds(a.requests[i].at), 16 * to_seconds(b.requests[i].at), 1e-7);
  }
}

TEST(Schedule, AShorterRunIsAPrefixOfTheLonger) {
  const WorkloadSpec w = default_workload();
  const Schedule a = make(w, {.seed = 9, .duration = seconds(20)}), b = make(w, {.seed = 9, .requests = 200});
  ASSERT_LT(a.requests.size(), b.requests.size());
  for (size_t i = 0; i < a.requests.size(); ++i) {
    EXPECT_EQ(a.requests[i].at, b.requests[i].at);
    EXPECT_EQ(a.requests[i].prompt, b.requests[i].prompt);
  }
  EXPECT_GE(b.requests[a.requests.size()].at, seconds(20));
}

TEST(Schedule, ATokenizerChangesWordsOnly) {
  const WorkloadSpec w = default_workload();
  const ToyTokenizer tokenizer({.merges_words = true});
  const Schedule ids = make(w, {.seed = 2, .requests = 300}), text = make(w, {.seed = 2, .requests = 300}, &tokenizer);
  ASSERT_EQ(text.requests.size(), ids.requests.size());
  for (size_t i = 0; i < ids.requests.size(); ++i) {
    const auto &a = ids.requests[i], &b = text.requests[i];
    EXPECT_EQ(a.at, b.at);
    EXPECT_EQ(a.cls, b.cls);
    EXPECT_EQ(a.output, b.output);
    EXPECT_EQ(a.prompt.size(), b.prompt.size());
    EXPECT_EQ(tokenizer.tokenize(b.text, true, false), b.prompt);
  }
  EXPECT_EQ(ids.implied_hit_rate, text.implied_hit_rate);
  ASSERT_EQ(text.priming.size(), 4u);
  for (const auto& p : text.priming)
    EXPECT_EQ(tokenizer.tokenize(p.text, true, false), p.prompt);
}

// Case 45: prompts depend on (seed, index) alone, 8 × 5,000 of them are 40,000 different ones, and no two share a
// block.
TEST(Schedule, Case45PromptsAreUnique) {
  const Schedule s = make(one_class(32, 1), {.seed = 1, .requests = 40'000});
  EXPECT_EQ(s.distinct_prompts, 40'000u);
  EXPECT_EQ(s.implied_hit_rate, 0);
  std::set<std::vector<TokenId>> blocks;
  for (const auto& r : s.requests)
    blocks.insert({r.prompt.begin(), r.prompt.begin() + 16});
  EXPECT_EQ(blocks.size(), 40'000u);

  const Schedule other = make(one_class(32, 1), {.seed = 2, .requests = 5'000});
  for (const auto& r : other.requests)
    EXPECT_FALSE(blocks.contains({r.prompt.begin(), r.prompt.begin() + 16}));
}

TEST(Schedule, Case45WithWordsToo) {
  const ToyTokenizer tokenizer;
  const Schedule s = make(one_class(24, 1), {.seed = 1, .requests = 5'000}, &tokenizer);
  EXPECT_EQ(s.distinct_prompts, 5'000u);
  std::set<std::string> texts;
  for (const auto& r : s.requests)
    texts.insert(r.text);
  EXPECT_EQ(texts.size(), 5'000u);
}

// Case 47: rates below one per second are ordinary.
TEST(Schedule, Case47BelowOneRequestPerSecond) {
  for (const double rate : {0.21, 0.26375, 0.3175, 0.37125, 0.425}) {
    WorkloadSpec w = one_class(8, 8);
    w.rate = rate;
    const Schedule s = make(w, {.seed = 1, .duration = seconds(20'000)});
    EXPECT_NEAR(static_cast<double>(s.requests.size()), 20'000 * rate, 4 * std::sqrt(20'000 * rate));
    w.arrivals = ArrivalKind::kConstant;
    EXPECT_EQ(make(w, {.duration = seconds(1000)}).requests.size(), static_cast<size_t>(std::ceil(1000 * rate)));
  }
}

// Case 36's schedule: uniform 10/s, 8 requests at i × 0.1 s, whatever a server does.
TEST(Schedule, Case36ConstantTimes) {
  WorkloadSpec w = one_class(8, 8);
  w.arrivals = ArrivalKind::kConstant;
  w.rate = 10;
  const Schedule s = make(w, {.requests = 8});
  for (size_t i = 0; i < 8; ++i)
    EXPECT_EQ(s.requests[i].at, milliseconds(100) * i);
}

TEST(Schedule, ClosedLoopHasNoTimes) {
  WorkloadSpec w = default_workload();
  w.arrivals = ArrivalKind::kClosed;
  w.concurrency = 8;
  const Schedule s = make(w, {.requests = 50});
  EXPECT_EQ(s.requests.size(), 50u);
  for (const auto& r : s.requests)
    EXPECT_EQ(r.at, Nanos(0));
  EXPECT_NE(refusal(w, {.duration = seconds(5)}).find("closed loop needs a number of requests"), std::string::npos);
}

TEST(Schedule, AnEmptyScheduleIsLegal) {
  WorkloadSpec w = one_class(8, 8);
  w.rate = 1e-3;
  const Schedule s = make(w, {.seed = 1, .duration = Nanos(1)});
  EXPECT_TRUE(s.requests.empty());
  EXPECT_EQ(s.implied_hit_rate, 0);
  EXPECT_EQ(s.hash.size(), 64u);
}

TEST(Schedule, RefusesWhatItCannotKeep) {
  WorkloadSpec w = one_class(4000, 97);
  EXPECT_NE(refusal(w, {.requests = 1})
                .find("class 'only': a prompt of up to 4000 tokens and an output of up to 97 exceed "
                      "max_model_len 4096"),
            std::string::npos);
  EXPECT_EQ(refusal(w, {.requests = 1, .max_model_len = Tokens(4097)}), "made");
  w = one_class(8, 8);
  EXPECT_NE(refusal(w, {}).find("duration or a number"), std::string::npos);
  EXPECT_NE(refusal(w, {.duration = seconds(1), .requests = 1}).find("not both"), std::string::npos);
  EXPECT_NE(refusal(w, {.duration = seconds(-1)}).find("duration"), std::string::npos);
  EXPECT_NE(refusal(w, {.duration = seconds(1'000'000'000)}).find("duration"), std::string::npos);
  EXPECT_NE(refusal(w, {.requests = 0}).find("0 requests"), std::string::npos);
  EXPECT_NE(refusal(w, {.requests = 1, .block_size = Tokens(0)}).find("block size"), std::string::npos);
  EXPECT_NE(refusal(w, {.requests = limits::kMaxScheduledRequests + 1}).find("limit is 50000000"), std::string::npos);
  w.rate = 1e6;
  EXPECT_NE(refusal(w, {.duration = seconds(100)}).find("limit is 50000000"), std::string::npos);
  w.rate = 1e-6;
  EXPECT_NE(refusal(w, {.requests = 1000}).find("take longer than"), std::string::npos);
  w = one_class(limits::kMaxModelLen.count(), 1);
  EXPECT_NE(refusal(w, {.requests = 1000, .max_model_len = Tokens(1 << 21)}).find("the limit is 1000000000"),
            std::string::npos);
  w.classes[0].share = 0;
  EXPECT_NE(refusal(w, {.requests = 1}).find("share"), std::string::npos);
}

TEST(Schedule, TokenizerFailuresComeThrough) {
  const ToyTokenizer no_words({.has_words = false});
  EXPECT_NE(refusal(one_class(8, 8), {.requests = 1}, &no_words).find("no whole words"), std::string::npos);
  const ToyTokenizer tokenizer;
  EXPECT_NE(refusal(one_class(1, 8), {.requests = 1}, &tokenizer).find("too short"), std::string::npos);
}

TEST(Schedule, AnyValidWorkloadHasASchedule) {
  EXPECT_TRUE(rc::check("lengths, order, sharing", [] {
    WorkloadSpec w = random_workload();
    if (w.arrivals == ArrivalKind::kTrace)
      w.arrivals = ArrivalKind::kPoisson;
    w.rate = 1;
    w.ramp.reset();
    w.stages.clear();
    w.trace.reset();
    const auto s = make_schedule(
        w, {.seed = *rc::gen::arbitrary<uint64_t>(), .requests = 30, .max_model_len = Tokens(100'000)}, nullptr);
    if (!s)
      RC_FAIL(describe(s.error()));
    RC_ASSERT(s->requests.size() == 30u);
    size_t documents = 0;
    for (const auto& c : w.classes)
      documents += static_cast<size_t>(c.shared_documents);
    RC_ASSERT(s->priming.size() == documents);
    RC_ASSERT(s->implied_hit_rate >= 0 && s->implied_hit_rate < 1);
    for (const auto& r : s->requests) {
      const LengthSpec& l = w.classes[r.cls].prompt;
      const ClassSpec& c = w.classes[r.cls];
      const auto length = std::ssize(r.prompt) - (c.prefix_groups > 0 ? c.prefix_len.count() : 0);
      if (!r.turn || !r.turn->after) {
        RC_ASSERT(length >= l.low.count() && length <= std::max(l.low, l.high).count());
        continue;
      }
      // A later turn begins with the turn before and its answer's stand-ins.
      const ScheduledRequest& before = s->requests[*r.turn->after];
      RC_ASSERT(r.turn->after == r.index - 1 && r.turn->number >= 1u && r.turn->continues);
      RC_ASSERT(std::ssize(r.prompt) == std::ssize(before.prompt) + before.output.count() + r.turn->added.count());
      RC_ASSERT(std::equal(before.prompt.begin(), before.prompt.end(), r.prompt.begin()));
      RC_ASSERT(r.at == before.at && r.cls == before.cls && r.turn->session == before.turn->session);
    }
  }));
}

class Replay : public testing::Test {
 protected:
  void SetUp() override {
    path_ = testing::TempDir() + "goodput_replay_" + std::to_string(::getpid()) + ".csv";
    std::ofstream(path_) << "TIMESTAMP,ContextTokens,GeneratedTokens\n"
                            "2023-11-16 18:17:00.0000000,1000,10\n"
                            "2023-11-16 18:17:01.0000001,2000,0\n"
                            "2023-11-16 18:17:02.0000003,3000,300\n"
                            "2023-11-16 18:17:05.0000000,4,1\n";
    w_ = default_workload();
    w_.arrivals = ArrivalKind::kTrace;
    w_.trace = TraceSpec{.file = path_};
  }
  void TearDown() override { std::filesystem::remove(path_); }

  std::string path_;
  WorkloadSpec w_;
};

// Case 52: a trace of lengths is replayed with unique prompts, 0 % reuse, at its own times.
TEST_F(Replay, Case52AsItIs) {
  const Schedule s = make(w_, {});
  ASSERT_EQ(s.requests.size(), 3u);  // the row without output is a failed request, skipped
  EXPECT_EQ(s.requests[1].at, Nanos(2'000'000'300));
  EXPECT_EQ(s.requests[1].prompt.size(), 3000u);
  EXPECT_EQ(s.requests[1].output, Tokens(300));
  EXPECT_EQ(s.requests[2].at, seconds(5));
  EXPECT_EQ(s.implied_hit_rate, 0);
  EXPECT_TRUE(s.priming.empty());
  EXPECT_EQ(s.distinct_prompts, 3u);
  for (const auto& r : s.requests)
    EXPECT_EQ(r.cls, 0);
}

TEST_F(Replay, WindowFactorsAndClips) {
  w_.trace->from = seconds(2);
  w_.trace->length = seconds(3);  // the row at 5 s is outside
  w_.trace->rate_factor = 2;
  w_.trace->length_factor = 0.1;
  w_.trace->max_prompt = Tokens(250);
  const Schedule s = make(w_, {});
  ASSERT_EQ(s.requests.size(), 1u);
  EXPECT_EQ(s.requests[0].at, Nanos(150));
  EXPECT_EQ(s.requests[0].prompt.size(), 250u);
  EXPECT_EQ(s.requests[0].output, Tokens(30));
}

TEST_F(Replay, ShrunkRequestsKeepATokenEachWay) {
  w_.trace->length_factor = 1e-6;
  const Schedule s = make(w_, {});
  for (const auto& r : s.requests) {
    EXPECT_EQ(r.prompt.size(), 2u);
    EXPECT_EQ(r.output, Tokens(1));
  }
}

TEST_F(Replay, DurationAndRequestsCut) {
  EXPECT_EQ(make(w_, {.requests = 2}).requests.size(), 2u);
  EXPECT_EQ(make(w_, {.duration = seconds(1)}).requests.size(), 1u);
}

TEST_F(Replay, Refusals) {
  EXPECT_NE(refusal(w_, {.max_model_len = Tokens(3299)})
                .find("row 3 asks for 3000 + 300 tokens, more than max_model_len 3299"),
            std::string::npos);
  EXPECT_EQ(refusal(w_, {.max_model_len = Tokens(3300)}), "made");
  w_.trace->from = seconds(100);
  EXPECT_NE(refusal(w_, {}).find("no request in the window: the trace has 4 rows over 5.000 s"), std::string::npos);
  w_.trace->from = Nanos(0);
  w_.trace->rate_factor = 1e-6;
  EXPECT_NE(refusal(w_, {}).find("raise rate_factor"), std::string::npos);
  w_.trace->file = "/nonexistent.csv";
  EXPECT_NE(refusal(w_, {}).find("cannot open the trace"), std::string::npos);
}

TEST(Schedule, ThePublishedCodeTraceFitsASmallModel) {
  WorkloadSpec w = default_workload();
  w.arrivals = ArrivalKind::kTrace;
  w.trace = TraceSpec{.file = GOODPUT_SOURCE_DIR "/../shared/data/traces/azure_llm_2023_code.csv"};
  if (!std::filesystem::exists(w.trace->file))
    GTEST_SKIP() << "no ../shared here";
  w.trace->from = seconds(600);
  w.trace->length = seconds(300);
  w.trace->rate_factor = 0.5;
  w.trace->length_factor = 0.1;
  const ToyTokenizer tokenizer;
  const Schedule s = make(w, {.max_model_len = Tokens(2048)}, &tokenizer);
  EXPECT_GT(s.requests.size(), 100u);
  EXPECT_LT(s.requests.back().at, seconds(600));
  EXPECT_EQ(s.distinct_prompts, s.requests.size());
}

}  // namespace
}  // namespace goodput
