// What requests of a schedule have in common: prefixes, a trace's blocks, conversations, and what a salt keeps apart.
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "base/log.h"
#include "workload/prompts.h"
#include "workload/schedule.h"
#include "workload/toy_tokenizer.h"

namespace goodput {
namespace {

Schedule make(const WorkloadSpec& w, const ScheduleOptions& o, const Tokenizer* tokenizer = nullptr) {
  auto s = make_schedule(w, o, tokenizer);
  if (!s)
    ADD_FAILURE() << describe(s.error());
  return s ? std::move(*s) : Schedule{};
}

std::string refusal(const WorkloadSpec& w, const ScheduleOptions& o, const Tokenizer* tokenizer = nullptr) {
  const auto s = make_schedule(w, o, tokenizer);
  return s ? "made" : describe(s.error());
}

LengthSpec fixed(int n) { return {LengthSpec::Kind::kFixed, Tokens(n), Tokens(n)}; }

WorkloadSpec one_class(int prompt, int output) {
  WorkloadSpec w;
  w.classes = {{.name = "only", .prompt = fixed(prompt), .output = fixed(output)}};
  return w;
}

WorkloadSpec grouped(int groups, int prefix, int prompt) {
  WorkloadSpec w = one_class(prompt, 4);
  w.classes[0].prefix_groups = groups;
  w.classes[0].prefix_len = Tokens(prefix);
  return w;
}

WorkloadSpec talking(int turns, int prompt, int output) {
  WorkloadSpec w = one_class(prompt, output);
  w.classes[0].turns = fixed(turns);
  w.classes[0].think_time = {LengthSpec::Kind::kUniform, seconds(1), seconds(3)};
  return w;
}

class Trace {
 public:
  explicit Trace(std::string_view bytes) : path_(testing::TempDir() + "goodput_sharing_" + std::to_string(::getpid())) {
    std::ofstream(path_, std::ios::binary) << bytes;
  }
  ~Trace() { std::filesystem::remove(path_); }
  WorkloadSpec workload() const {
    WorkloadSpec w = one_class(1, 7);
    w.arrivals = ArrivalKind::kTrace;
    w.trace = TraceSpec{.file = path_};
    return w;
  }
  WorkloadSpec paced(ArrivalKind arrivals) const {
    WorkloadSpec w = workload();
    w.arrivals = arrivals;
    w.trace->requests_only = true;
    return w;
  }

 private:
  std::string path_;
};

// What a cache of whole blocks answers that has seen all earlier requests: by comparing them all.
int64_t hits_by_comparison(const Schedule& s, int block) {
  int64_t hits = 0;
  for (size_t i = 0; i < s.requests.size(); ++i) {
    const auto& p = s.requests[i].prompt;
    std::ptrdiff_t best = 0;
    for (size_t k = 0; k < i; ++k) {
      const auto& q = s.requests[k].prompt;
      const auto common = std::ranges::mismatch(p, q).in1 - p.begin();
      best = std::max(best, std::min(common, std::ssize(p) - 1) / block * block);
    }
    hits += best;
  }
  return hits;
}
int64_t prompt_total(const Schedule& s) {
  int64_t total = 0;
  for (const auto& r : s.requests)
    total += std::ssize(r.prompt);
  return total;
}
void expect_implied_hits(const Schedule& s, int block) {
  EXPECT_DOUBLE_EQ(s.implied_hit_rate,
                   static_cast<double>(hits_by_comparison(s, block)) / static_cast<double>(prompt_total(s)));
}

TEST(Sharing, PrefixGroupsAreReallyShared) {
  const ToyTokenizer plain, merging({.merges_words = true}), eos({.adds_eos = true});
  for (const Tokenizer* tokenizer : {static_cast<const Tokenizer*>(nullptr), static_cast<const Tokenizer*>(&plain),
                                     static_cast<const Tokenizer*>(&merging), static_cast<const Tokenizer*>(&eos)}) {
    const Schedule s = make(grouped(3, 64, 32), {.seed = 4, .requests = 100}, tokenizer);
    EXPECT_TRUE(s.priming.empty());
    std::set<std::vector<TokenId>> prefixes;
    for (const auto& r : s.requests) {
      ASSERT_EQ(r.prompt.size(), 96u);
      prefixes.insert({r.prompt.begin(), r.prompt.begin() + 64});
      if (tokenizer) {
        EXPECT_EQ(tokenizer->tokenize(r.text, true, false), r.prompt);
      }
    }
    EXPECT_EQ(prefixes.size(), 3u);
    EXPECT_EQ(s.distinct_prompts, 100u);
    // Each group's first use is a miss.
    EXPECT_DOUBLE_EQ(s.implied_hit_rate, 97 * 64 / (100 * 96.0));
    if (!tokenizer)
      expect_implied_hits(s, 16);
  }
}

// Case 45: prefix and body lengths add.
TEST(Sharing, Case45PrefixAndBodyAdd) {
  const Schedule s = make(grouped(2, 32'000, 32'000), {.requests = 3, .max_model_len = Tokens(64'004)});
  EXPECT_EQ(s.requests[0].prompt.size(), 64'000u);
  EXPECT_NE(refusal(grouped(2, 32'000, 32'000), {.requests = 3, .max_model_len = Tokens(64'003)})
                .find("together 64004, exceed max_model_len 64003"),
            std::string::npos);
}

// Case 44: the same seed at every step of a sweep; with a salt of its own no step finds another's prompts in the cache.
TEST(Sharing, Case44SaltsKeepStepsApart) {
  WorkloadSpec w = default_workload();
  w.classes.push_back(grouped(2, 64, 32).classes[0]);
  const ToyTokenizer toy;
  for (const Tokenizer* tokenizer : {static_cast<const Tokenizer*>(nullptr), static_cast<const Tokenizer*>(&toy)}) {
    const Schedule a = make(w, {.seed = 1, .requests = 300}, tokenizer);
    const Schedule b = make(w, {.seed = 1, .salt = 7, .requests = 300}, tokenizer);
    EXPECT_EQ(make(w, {.seed = 1, .salt = 7, .requests = 300}, tokenizer).hash, b.hash);
    EXPECT_NE(a.hash, b.hash);
    EXPECT_EQ(a.implied_hit_rate, b.implied_hit_rate);
    std::set<std::vector<TokenId>> blocks;
    for (const auto* list : {&a.requests, &a.priming})
      for (const auto& r : *list)
        blocks.insert({r.prompt.begin(), r.prompt.begin() + 16});
    for (const auto* list : {&b.requests, &b.priming})
      for (const auto& r : *list)
        EXPECT_FALSE(blocks.contains({r.prompt.begin(), r.prompt.begin() + 16}));
    for (size_t i = 0; i < 300; ++i) {
      EXPECT_EQ(a.requests[i].at, b.requests[i].at);
      EXPECT_EQ(a.requests[i].prompt.size(), b.requests[i].prompt.size());
      EXPECT_EQ(a.requests[i].output, b.requests[i].output);
    }
  }
}

std::string mooncake_row(int at, int length, const std::vector<int>& ids) {
  return fmt::format("{{\"timestamp\":{},\"input_length\":{},\"output_length\":9,\"hash_ids\":[{}]}}\n", at, length,
                     fmt::join(ids, ","));
}

TEST(Sharing, EqualBlocksAreEqualTokens) {
  const Trace trace(mooncake_row(0, 1500, {1, 2, 3}) + mooncake_row(10, 1400, {1, 2, 4}) +
                    mooncake_row(20, 1024, {1, 5}) + mooncake_row(30, 1500, {1, 2, 3}) + mooncake_row(40, 600, {6, 2}));
  const ToyTokenizer toy, eos({.adds_eos = true}), own_blank({.adds_blank = false});
  for (const Tokenizer* tokenizer : {static_cast<const Tokenizer*>(nullptr), static_cast<const Tokenizer*>(&toy),
                                     static_cast<const Tokenizer*>(&eos), static_cast<const Tokenizer*>(&own_blank)}) {
    const Schedule s = make(trace.workload(), {}, tokenizer);
    ASSERT_EQ(s.requests.size(), 5u);
    const auto common = [&](size_t a, size_t b) {
      return std::ranges::mismatch(s.requests[a].prompt, s.requests[b].prompt).in1 - s.requests[a].prompt.begin();
    };
    // Block 3's words differ from block 4's from their first on, or by chance a word later.
    EXPECT_NEAR(static_cast<double>(common(0, 1)), 1024, 3);
    EXPECT_NEAR(static_cast<double>(common(0, 2)), 512, 3);
    EXPECT_EQ(s.requests[0].prompt, s.requests[3].prompt);
    EXPECT_LE(common(0, 4), 4);
    // The same id at the same position after another first block.
    EXPECT_TRUE(std::equal(s.requests[0].prompt.begin() + 512, s.requests[0].prompt.begin() + 599,
                           s.requests[4].prompt.begin() + 512));
    expect_implied_hits(s, 16);
    EXPECT_TRUE(s.trace->has_prefixes);
    for (const auto& r : s.requests) {
      if (tokenizer) {
        EXPECT_EQ(tokenizer->tokenize(r.text, true, false), r.prompt);
      }
    }
  }
  const ToyTokenizer merging({.merges_words = true});
  EXPECT_NE(refusal(trace.workload(), {}, &merging).find("merges words"), std::string::npos);
}

TEST(Sharing, BlocksScaleWithLengths) {
  const Trace trace(mooncake_row(0, 1500, {1, 2, 3}) + mooncake_row(10, 1400, {1, 2, 4}));
  WorkloadSpec w = trace.workload();
  w.trace->length_factor = 0.125;  // blocks of 64
  const Schedule s = make(w, {});
  EXPECT_EQ(s.requests[0].prompt.size(), 128u + 60);  // 476 ÷ 8, rounded
  EXPECT_EQ(s.requests[1].prompt.size(), 128u + 47);
  EXPECT_EQ(s.requests[1].shared, Tokens(128));
  w.trace->max_prompt = Tokens(100);
  EXPECT_EQ(make(w, {}).requests[1].shared, Tokens(96));
}

TEST(Sharing, AnyBlocksImplyTheHitsThatComparisonFinds) {
  log::set_level(log::Level::kError);
  EXPECT_TRUE(rc::check("implied hits", [] {
    std::string text;
    for (int i = *rc::gen::inRange(1, 25); i > 0; --i) {
      const auto ids =
          *rc::gen::container<std::vector<int>>(static_cast<size_t>(*rc::gen::inRange(1, 6)), rc::gen::inRange(0, 3));
      const int n = static_cast<int>(ids.size());
      text += mooncake_row(1000 - i, *rc::gen::inRange((n - 1) * 32 + 2, n * 32 + 1), ids);
    }
    const Trace trace(text);
    WorkloadSpec w = trace.workload();
    w.trace->block_tokens = Tokens(32);
    w.trace->length_factor = *rc::gen::element(1.0, 0.5, 2.0, 0.3);
    const int block = *rc::gen::element(1, 4, 16, 32);
    const auto s = make_schedule(w, {.block_size = Tokens(block)}, nullptr);
    if (!s)
      RC_FAIL(describe(s.error()));
    RC_ASSERT(s->implied_hit_rate ==
              static_cast<double>(hits_by_comparison(*s, block)) / static_cast<double>(prompt_total(*s)));
  }));
  log::set_level(log::Level::kWarn);
}

TEST(Sharing, ConversationsGrowByAnswerAndQuestion) {
  const ToyTokenizer toy;
  for (const Tokenizer* tokenizer : {static_cast<const Tokenizer*>(nullptr), static_cast<const Tokenizer*>(&toy)}) {
    const Schedule s = make(talking(3, 20, 12), {.seed = 2, .requests = 30}, tokenizer);
    ASSERT_EQ(s.requests.size(), 30u);
    for (const auto& r : s.requests) {
      ASSERT_TRUE(r.turn);
      EXPECT_EQ(r.turn->session, r.index / 3);
      EXPECT_EQ(r.turn->number, r.index % 3);
      EXPECT_EQ(r.prompt.size(), 20 + 32 * (r.index % 3));
      EXPECT_EQ(r.turn->added, Tokens(20));
      if (r.turn->number == 0) {
        EXPECT_FALSE(r.turn->after || r.turn->continues);
        continue;
      }
      EXPECT_EQ(r.turn->after, r.index - 1);
      EXPECT_TRUE(r.turn->continues);
      EXPECT_GE(r.turn->think, seconds(1));
      EXPECT_LE(r.turn->think, seconds(3));
      // All before this turn's words but the answer's last token, in whole blocks.
      EXPECT_EQ(r.shared, Tokens((32 * (static_cast<int>(r.index) % 3) - 1) / 16 * 16));
    }
    const auto parts = prompt_parts(s, s.requests[5]);
    ASSERT_EQ(parts.size(), 5u);
    EXPECT_EQ(parts[0].text, s.requests[3].text);
    EXPECT_EQ(parts[1].answer_of, 3u);
    EXPECT_EQ(parts[3].answer_of, 4u);
    EXPECT_EQ(parts[4].text, s.requests[5].text);
    if (tokenizer) {
      // After any answer: here one word.
      const auto alone = toy.tokenize("bal", true, false), with = toy.tokenize("bal" + s.requests[5].text, true, false);
      EXPECT_EQ(with.size() - alone.size(), 20u);
    }
  }
}

TEST(Sharing, ConversationsShareTheirPrefixGroupAndEndWithTheSchedule) {
  WorkloadSpec w = talking(4, 16, 8);
  w.classes[0].prefix_groups = 1;
  w.classes[0].prefix_len = Tokens(64);
  const Schedule s = make(w, {.seed = 2, .requests = 10});
  ASSERT_EQ(s.requests.size(), 10u);
  EXPECT_EQ(s.requests[4].prompt.size(), 80u);
  EXPECT_EQ(s.requests[4].shared, Tokens(64));
  EXPECT_EQ(s.requests[9].turn->number, 1u);
  EXPECT_EQ(s.requests[7].prompt.size(), 80u + 3 * 24);
  w.arrivals = ArrivalKind::kClosed;
  EXPECT_EQ(make(w, {.requests = 10}).requests.size(), 10u);
  w.classes[0].turns = fixed(200);
  EXPECT_NE(refusal(w, {.requests = 10}).find("200 turns"), std::string::npos);
}

TEST(Sharing, APlainScheduleHasNoTurns) {
  for (const auto& r : make(default_workload(), {.requests = 100}).requests)
    EXPECT_FALSE(r.turn);
}

constexpr std::string_view kShareGpt =
    R"([{"id":"a","conversations":[{"from":"human","value":"bal bel"},{"from":"gpt","value":"bil bol bul"},{"from":"human","value":" dal"},{"from":"gpt","value":"del"}]},
{"id":"b","conversations":[{"from":"human","value":"fal"},{"from":"gpt","value":"fel"}]}])";

TEST(Sharing, ShareGptWithATokenizer) {
  const Trace trace(kShareGpt);
  const ToyTokenizer toy;
  const Schedule s = make(trace.paced(ArrivalKind::kConstant), {.requests = 10}, &toy);
  ASSERT_EQ(s.requests.size(), 3u);
  EXPECT_EQ(s.requests[0].text, "bal bel");
  EXPECT_EQ(s.requests[0].prompt, toy.tokenize("bal bel", true, false));
  EXPECT_EQ(s.requests[0].output, Tokens(3));
  // BOS, two words, the recorded answer as stand-in, one more word.
  EXPECT_EQ(s.requests[1].prompt.size(), 3u + 3 + toy.tokenize(" dal", false, false).size());
  EXPECT_TRUE(s.requests[1].turn->continues);
  EXPECT_EQ(s.requests[1].at, s.requests[0].at);
  EXPECT_EQ(s.requests[2].at, seconds(1));
  EXPECT_EQ(s.requests[2].turn->session, 1u);
  EXPECT_EQ(s.unknown_lengths, 0u);
  // A second turn that does not fit is left out.
  const Schedule cut = make(trace.paced(ArrivalKind::kConstant), {.requests = 10, .max_model_len = Tokens(6)}, &toy);
  EXPECT_EQ(cut.requests.size(), 2u);
  EXPECT_EQ(cut.trace->cut_turns, 1u);
}

TEST(Sharing, TextsWithoutATokenizerHaveUnknownLengths) {
  const Trace trace(kShareGpt);
  WorkloadSpec w = trace.paced(ArrivalKind::kPoisson);
  const Schedule s = make(w, {.seed = 1, .requests = 10});
  ASSERT_EQ(s.requests.size(), 3u);
  EXPECT_EQ(s.unknown_lengths, 3u);
  for (const auto& r : s.requests) {
    EXPECT_FALSE(prompt_tokens(r));
    EXPECT_EQ(r.output, Tokens(7));  // the class's
  }
  EXPECT_EQ(s.distinct_prompts, 3u);
  EXPECT_EQ(prompt_parts(s, s.requests[1]).size(), 3u);
  EXPECT_NE(s.hash, make(w, {.seed = 1, .salt = 3, .requests = 10}).hash);
  const Schedule salted = make(w, {.seed = 1, .salt = 3, .requests = 10});
  EXPECT_TRUE(salted.requests[0].text.ends_with(" bal bel"));
  EXPECT_EQ(salted.requests[1].text, " dal");
  w = trace.workload();
  EXPECT_NE(refusal(w, {}).find("has no time: set requests_only"), std::string::npos);
}

TEST(Sharing, BailianTurnsAreLinkedAndKeepTheirBlocks) {
  const Trace trace(
      R"({"chat_id":1,"parent_chat_id":-1,"timestamp":1.0,"input_length":33,"output_length":4,"hash_ids":[7,8,9]})"
      "\n"
      R"({"chat_id":2,"parent_chat_id":-1,"timestamp":1.5,"input_length":16,"output_length":4,"hash_ids":[7]})"
      "\n"
      R"({"chat_id":3,"parent_chat_id":1,"timestamp":9.25,"input_length":64,"output_length":4,"hash_ids":[7,8,10,11]})"
      "\n");
  const Schedule s = make(trace.workload(), {});
  ASSERT_EQ(s.requests.size(), 3u);
  EXPECT_EQ(s.requests[2].turn->after, 0u);
  EXPECT_EQ(s.requests[2].turn->number, 1u);
  EXPECT_FALSE(s.requests[2].turn->continues);
  EXPECT_EQ(s.requests[2].at, milliseconds(8250));
  EXPECT_EQ(s.requests[2].shared, Tokens(32));
  EXPECT_EQ(s.requests[1].shared, Tokens(0));  // its last token is always computed
  EXPECT_EQ(s.requests[1].turn->session, 1u);
  EXPECT_EQ(prompt_parts(s, s.requests[2]).size(), 1u);
  // A window that begins after the first turn makes the second a first one.
  WorkloadSpec w = trace.workload();
  w.trace->from = seconds(5);
  EXPECT_FALSE(make(w, {}).requests[0].turn->after);
}

// Case 51: rows without output are skipped and counted, and a slow slice is told.
TEST(Sharing, Case51BurstGptSlice) {
  std::string text = "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n";
  const auto rows = [&](double from, double to, double rate) {
    for (double t = from; t < to; t += 1 / rate)
      text += fmt::format("{:.3f},ChatGPT,10,2,12,API log\n", t);
  };
  rows(0, 72'000, 0.0343);
  text += "72000,ChatGPT,472,0,472,Conversation log\n";
  rows(72'000, 75'600, 3.1713);
  const Trace trace(text);
  WorkloadSpec w = trace.workload();
  log::set_level(log::Level::kError);
  w.trace->length = seconds(72'000);
  const Schedule head = make(w, {});
  EXPECT_NEAR(*head.trace->rate, 0.0343, 0.0001);
  EXPECT_NEAR(*head.trace->peak_rate, 3.1713, 0.02);
  ASSERT_FALSE(head.trace->notes.empty());
  EXPECT_NE(head.trace->notes[0].find("under a tenth of the 3.17"), std::string::npos) << head.trace->notes[0];
  EXPECT_LE(head.trace->profile.size(), 64u);

  w.trace->from = seconds(72'000);
  const Schedule steady = make(w, {});
  log::set_level(log::Level::kWarn);
  EXPECT_EQ(steady.trace->failed, 1u);
  EXPECT_NE(steady.trace->notes[0].find("1 rows without prompt or output tokens were skipped"), std::string::npos);
  for (const auto& note : steady.trace->notes)
    EXPECT_EQ(note.find("tenth"), std::string::npos);
}

// Case 52: lengths alone say nothing about reuse; an assumed share is a run of its own, and called an assumption.
TEST(Sharing, Case52AssumedPrefixShare) {
  const Trace trace(
      "TIMESTAMP,ContextTokens,GeneratedTokens\n2024-05-10 00:00:00.009930,2000,5\n"
      "2024-05-10 00:00:01,1000,5\n2024-05-10 00:00:02,1000,5\n");
  WorkloadSpec w = trace.workload();
  const Schedule honest = make(w, {});
  EXPECT_EQ(honest.implied_hit_rate, 0);
  EXPECT_FALSE(honest.trace->has_prefixes);
  EXPECT_NE(honest.trace->notes.at(0).find("prompts share nothing"), std::string::npos);
  w.trace->assumed_prefix_share = 0.48;
  const Schedule assumed = make(w, {});
  EXPECT_DOUBLE_EQ(assumed.implied_hit_rate, 2 * 480 / 4000.0);
  expect_implied_hits(assumed, 16);
  EXPECT_NE(assumed.trace->notes.at(0).find("48 % of every prompt are assumed"), std::string::npos);
}

// Case 46: what was asked for stands in the schedule, request by request, for a report to compare with.
TEST(Sharing, Case46TheTargetOfEveryOutputIsKept) {
  const Trace trace(
      "{\"prompt\":\"a\",\"output_tokens\":512}\n{\"prompt\":\"b\",\"output_tokens\":43}\n{\"prompt\":\"c\"}\n");
  const Schedule s = make(trace.paced(ArrivalKind::kClosed), {});
  ASSERT_EQ(s.requests.size(), 3u);
  EXPECT_EQ(s.requests[0].output, Tokens(512));
  EXPECT_EQ(s.requests[1].output, Tokens(43));
  EXPECT_EQ(s.requests[2].output, Tokens(7));
}

// Case 49's row 4: without time and output length, usable at a rate of the user's with the class's output.
TEST(Sharing, Case49RowsWithoutTimesAreUsableInRateMode) {
  const Trace trace("{\"input_length\":100,\"hash_ids\":[3]}\n{\"input_length\":100,\"hash_ids\":[3]}\n");
  const Schedule s = make(trace.paced(ArrivalKind::kConstant), {.duration = seconds(60)});
  ASSERT_EQ(s.requests.size(), 2u);
  EXPECT_EQ(s.requests[1].at, seconds(1));
  EXPECT_EQ(s.requests[0].output, Tokens(7));
  EXPECT_EQ(s.requests[1].shared, Tokens(96));
  EXPECT_NE(refusal(trace.workload(), {}).find("row 1 has no time"), std::string::npos);
}

// Exact lengths where characters cost three tokens (the toy tokenizer knows no Chinese) and where pieces merge.
TEST(Sharing, ChineseAndCodeHaveExactLengths) {
  const ToyTokenizer toy, cjk({.adds_eos = true, .merges_words = true, .has_chinese = true});
  for (const ToyTokenizer* tokenizer : {&toy, &cjk})
    for (const TextKind kind : {TextKind::kChinese, TextKind::kCode}) {
      WorkloadSpec w = one_class(1, 4);
      ClassSpec rag = w.classes[0];
      w.classes[0].text = rag.text = kind;
      w.classes[0].prompt = {LengthSpec::Kind::kUniform, Tokens(8), Tokens(120)};
      rag.name = "rag";
      rag.prompt = fixed(90);
      rag.shared_documents = 2;
      rag.question = Tokens(20);
      w.classes.push_back(rag);
      const Schedule s = make(w, {.seed = 3, .requests = 200}, tokenizer);
      ASSERT_EQ(s.requests.size(), 200u);
      std::set<std::string> texts;
      for (const auto& r : s.requests) {
        EXPECT_EQ(tokenizer->tokenize(r.text, true, false), r.prompt);
        texts.insert(r.text);
      }
      EXPECT_GT(texts.size(), 198u);
      const auto ids = make(w, {.seed = 3, .requests = 200});
      for (size_t i = 0; i < 200; ++i)
        EXPECT_EQ(ids.requests[i].prompt.size(), s.requests[i].prompt.size());
    }
  WorkloadSpec chinese = talking(3, 24, 8);
  chinese.classes[0].text = TextKind::kChinese;
  EXPECT_EQ(make(chinese, {.requests = 9}, &cjk).requests.size(), 9u);
}

}  // namespace
}  // namespace goodput
