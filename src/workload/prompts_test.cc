// Exact lengths against tokenizers with every habit that disturbs them.
#include "workload/prompts.h"

#include <set>

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "workload/toy_tokenizer.h"

namespace goodput {
namespace {

const std::pair<const char*, ToyTokenizerOptions> kTokenizers[] = {
    {"adds a blank and BOS", {}},
    {"adds no blank", {.adds_blank = false}},
    {"adds EOS", {.adds_eos = true}},
    {"adds nothing", {.adds_blank = false, .adds_bos = false}},
    {"merges words", {.merges_words = true}},
    {"merges words, adds EOS and no blank", {.adds_blank = false, .adds_eos = true, .merges_words = true}},
};

TEST(Prompts, EveryLengthIsExactWithEveryTokenizer) {
  for (const auto& [what, options] : kTokenizers) {
    const ToyTokenizer tokenizer(options);
    const auto maker = make_text_prompts(tokenizer, 7, 0);
    ASSERT_TRUE(maker) << what << ": " << describe(maker.error());
    const int shortest = 1 + options.adds_bos + options.adds_eos;
    for (int length = shortest; length < 300; ++length) {
      Random random(static_cast<uint64_t>(length), "test");
      const auto p = (*maker)->unique(static_cast<uint64_t>(length), Tokens(length), random);
      ASSERT_TRUE(p) << what << ": " << describe(p.error());
      EXPECT_EQ(std::ssize(p->tokens), length) << what;
      EXPECT_EQ(tokenizer.tokenize(p->text, true, false), p->tokens) << what;
    }
  }
}

TEST(Prompts, TooShortForTheSpecialTokensIsSaid) {
  const ToyTokenizer tokenizer({.adds_eos = true});
  const auto maker = make_text_prompts(tokenizer, 7, 0);
  Random random(1, "test");
  const auto p = (*maker)->unique(0, Tokens(2), random);
  ASSERT_FALSE(p);
  EXPECT_NE(p.error().message.find("the shortest has 3"), std::string::npos) << p.error().message;
}

TEST(Prompts, QuestionsFollowTheirDocumentExactly) {
  for (const auto& [what, options] : kTokenizers) {
    const ToyTokenizer tokenizer(options);
    const auto maker = make_text_prompts(tokenizer, 7, 2);
    ASSERT_TRUE(maker);
    for (const int document_length : {2, 5, 200}) {
      Random random(3, "document");
      const auto d = (*maker)->document(1, Tokens(document_length), random);
      ASSERT_TRUE(d) << what << ": " << describe(d.error());
      EXPECT_EQ(std::ssize(d->tokens), document_length) << what;
      for (int question = 1; question < 40; ++question) {
        const int length = document_length + question + (options.adds_eos ? 1 : 0);
        const auto p = (*maker)->with_question(*d, Tokens(length), random);
        ASSERT_TRUE(p) << what << ": " << describe(p.error());
        EXPECT_EQ(std::ssize(p->tokens), length) << what;
        // The whole text, tokenized as the server does, although the maker may have verified less.
        EXPECT_EQ(tokenizer.tokenize(p->text, true, false), p->tokens) << what;
        EXPECT_TRUE(std::equal(d->tokens.begin(), d->tokens.end(), p->tokens.begin())) << what;
      }
    }
  }
}

TEST(Prompts, FirstTokensDifferInTurn) {
  const ToyTokenizer tokenizer;
  const auto text = make_text_prompts(tokenizer, 7, 3);
  const auto ids = make_id_prompts(7, 3);
  for (const PromptMaker* maker : {text->get(), ids.get()}) {
    std::set<TokenId> first;
    for (uint64_t number = 0; number < 3; ++number) {
      Random random(number, "document");
      first.insert(maker->document(number, Tokens(50), random)->tokens[1]);
    }
    for (uint64_t ordinal = 0; ordinal < 200; ++ordinal) {
      Random random(ordinal, "test");
      first.insert(maker->unique(ordinal, Tokens(20), random)->tokens[1]);
    }
    EXPECT_EQ(first.size(), 203u);
  }
}

TEST(Prompts, NoWordsIsAClearError) {
  const ToyTokenizer tokenizer({.has_words = false});
  const auto maker = make_text_prompts(tokenizer, 7, 0);
  ASSERT_FALSE(maker);
  EXPECT_NE(maker.error().message.find("no whole words"), std::string::npos);
}

// Counts that never come right: tokenizing repeats every token.
class Doubling final : public Tokenizer {
 public:
  std::vector<TokenId> tokenize(std::string_view text, bool add_special, bool parse_special) const override {
    auto tokens = toy_.tokenize(text, add_special, parse_special);
    if (tokens.size() < 3)
      return tokens;
    const auto once = tokens;
    tokens.insert(tokens.end(), once.begin(), once.end());
    return tokens;
  }
  std::string detokenize(std::span<const TokenId> tokens) const override { return toy_.detokenize(tokens); }
  std::string piece(TokenId id) const override { return toy_.piece(id); }
  int vocabulary_size() const override { return toy_.vocabulary_size(); }
  bool is_special(TokenId id) const override { return toy_.is_special(id); }

 private:
  ToyTokenizer toy_;
};

TEST(Prompts, AnImpossibleLengthEndsWithAnError) {
  const Doubling tokenizer;
  const auto maker = make_text_prompts(tokenizer, 7, 1);
  ASSERT_TRUE(maker) << describe(maker.error());
  Random random(1, "test");
  const auto p = (*maker)->unique(0, Tokens(21), random);  // odd
  ASSERT_FALSE(p);
  EXPECT_EQ(p.error().code, ErrorCode::kFailed);
  const auto q = (*maker)->with_question({{1, 2, 3}, "ba ba", {}, {}}, Tokens(9), random);
  EXPECT_FALSE(q);
}

TEST(Prompts, IdsHaveTheLengthAndShareTheDocument) {
  const auto maker = make_id_prompts(5, 1);
  EXPECT_TRUE(rc::check("lengths", [&] {
    const int length = *rc::gen::inRange(1, 3000);
    Random random(*rc::gen::arbitrary<uint64_t>(), "test");
    RC_ASSERT(std::ssize(maker->unique(3, Tokens(length), random)->tokens) == length);
    const auto d = *maker->document(0, Tokens(length), random);
    RC_ASSERT(std::ssize(d.tokens) == length);
    const auto p = *maker->with_question(d, Tokens(length + 9), random);
    RC_ASSERT(std::ssize(p.tokens) == length + 9);
    RC_ASSERT(std::equal(d.tokens.begin(), d.tokens.end(), p.tokens.begin()));
    RC_ASSERT(p.text.empty());
  }));
}

}  // namespace
}  // namespace goodput
