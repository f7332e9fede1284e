// A tokenizer for tests: a small vocabulary of invented words, longest match first, with the habits of real ones that
// matter to prompts of exact length. Test code only.
#pragma once

#include <algorithm>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "workload/tokenizer.h"

namespace goodput {

struct ToyTokenizerOptions {
  bool adds_blank = true;  // SentencePiece: a blank is put before the text
  bool adds_bos = true;
  bool adds_eos = false;
  bool merges_words = false;  // a third of neighbouring words are one token: the number of words says little
  bool has_words = true;      // else letters only
  bool has_chinese = false;   // a few characters, and some of their pairs; the others cost a token a byte
};

class ToyTokenizer final : public Tokenizer {
 public:
  static constexpr TokenId kUnknown = 0, kBos = 1, kEos = 2;

  explicit ToyTokenizer(ToyTokenizerOptions options = {}) : options_(options) {
    pieces_ = {"<unk>", "<s>", "</s>"};
    for (char c = 'a'; c <= 'z'; ++c)
      add(std::string(1, c));
    add(" ");
    std::vector<std::string> words;
    if (options_.has_words)
      for (const char first : std::string("bdfgklmnprstvz"))
        for (const char second : std::string("aeiou"))
          for (const std::string third : {"l", "n", "s"})
            words.push_back(std::string(" ") + first + second + third);
    for (const auto& word : words)
      add(word);
    const std::string_view chinese[] = {"时", "间", "我", "们", "的", "是", "在", "了", "，", "。", "不", "一"};
    if (options_.has_chinese)
      for (const auto first : chinese) {
        add(std::string(first));
        for (const auto second : chinese)
          if ((first[1] ^ second[2]) % 3 == 0)
            add(std::string(first) + std::string(second));
      }
    if (options_.merges_words)
      for (size_t i = 0; i < words.size(); ++i)
        for (size_t j = i % 3; j < words.size(); j += 3)
          add(words[i] + words[j]);
  }

  std::vector<TokenId> tokenize(std::string_view text, bool add_special, bool) const override {
    std::vector<TokenId> out;
    if (add_special && options_.adds_bos)
      out.push_back(kBos);
    const std::string whole = options_.adds_blank && !text.empty() ? " " + std::string(text) : std::string(text);
    for (size_t at = 0; at < whole.size();) {
      size_t length = std::min(longest_, whole.size() - at);
      while (length > 0 && !ids_.contains(whole.substr(at, length)))
        --length;
      out.push_back(length > 0 ? ids_.at(whole.substr(at, length)) : kUnknown);
      at += std::max<size_t>(length, 1);
    }
    if (add_special && options_.adds_eos)
      out.push_back(kEos);
    return out;
  }
  std::string detokenize(std::span<const TokenId> tokens) const override {
    std::string text;
    for (const TokenId token : tokens)
      text += piece(token);
    return text;
  }
  std::string piece(TokenId id) const override { return pieces_[static_cast<size_t>(id)]; }
  int vocabulary_size() const override { return static_cast<int>(pieces_.size()); }
  bool is_special(TokenId id) const override { return id <= kEos; }

 private:
  void add(const std::string& piece) {
    ids_.emplace(piece, static_cast<TokenId>(pieces_.size()));
    pieces_.push_back(piece);
    longest_ = std::max(longest_, piece.size());
  }

  ToyTokenizerOptions options_;
  std::vector<std::string> pieces_;
  std::unordered_map<std::string, TokenId> ids_;
  size_t longest_ = 0;
};

}  // namespace goodput
