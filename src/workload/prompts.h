// Prompts of an exact number of tokens. Internal to the room.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/random.h"
#include "base/result.h"
#include "base/units.h"
#include "workload/spec.h"
#include "workload/tokenizer.h"

namespace goodput {

struct Prompt {
  std::vector<TokenId> tokens;  // as a server that adds special tokens sees it
  std::string text;             // empty without a tokenizer
};

// What many prompts begin with. `tokens` carries the leading special tokens and no trailing ones.
struct Document {
  std::vector<TokenId> tokens;
  std::string text;
  // The document's last words, when their own tokens are how the document ends: then a question after it is verified by
  // tokenizing these and the question, not the whole document again. Empty: the whole.
  std::string tail;
  std::vector<TokenId> tail_tokens;  // without special tokens
};

// So many tokens that depend on the key alone, by their place in the stretch.
struct Stretch {
  uint64_t key = 0;
  Tokens length{0};
};

// Makes prompts for one schedule. `ordinal` (a request's index) chooses the first word in turn, so that prompts in
// flight together differ from their first token on and no prefix cache can hit by accident; `random` draws the rest.
class PromptMaker {
 public:
  virtual ~PromptMaker() = default;
  virtual Result<Prompt> unique(uint64_t ordinal, Tokens length, Random& random) const = 0;
  // `number` of the documents that were announced to the factory.
  virtual Result<Document> document(uint64_t number, Tokens length, Random& random) const = 0;
  // The document and a question; `length` is of both. Its tokens begin with the document's.
  virtual Result<Prompt> with_question(const Document&, Tokens length, Random& random) const = 0;
  // What follows anything that was said: tokens and text of this length, without special tokens.
  virtual Result<Prompt> continuation(Tokens length, Random& random) const = 0;
  // Stretch after stretch; the special tokens around stand in the first and last tokens' places, so that token i of a
  // prompt is the same in every prompt with the same stretches up to i. kFailed: words of this vocabulary merge.
  virtual Result<Prompt> of_stretches(std::span<const Stretch>) const = 0;
};

// Token ids only; the first stands for BOS.
std::unique_ptr<PromptMaker> make_id_prompts(uint64_t seed, uint64_t documents);
// Real text, every length verified. kFailed: the vocabulary has no words that tokenize as themselves. The tokenizer
// must outlive the maker.
Result<std::unique_ptr<PromptMaker>> make_text_prompts(const Tokenizer&, uint64_t seed, uint64_t documents);
// The same in Chinese or code, whose characters cost more or fewer tokens, rare ones several. Without of_stretches.
Result<std::unique_ptr<PromptMaker>> make_script_prompts(TextKind, const Tokenizer&, uint64_t seed, uint64_t documents);

// First words in turn: documents have one of their own each, requests share the rest.
class Leads {
 public:
  Leads(size_t words, uint64_t seed, uint64_t documents);
  size_t of_request(uint64_t ordinal) const { return order_[reserved_ + ordinal % (order_.size() - reserved_)]; }
  size_t of_document(uint64_t number) const { return order_[number % order_.size()]; }

 private:
  std::vector<size_t> order_;
  uint64_t reserved_ = 0;
};

}  // namespace goodput
