// A prompt is a line of whole words of the vocabulary, one token each. Whole words, because a tokenizer splits text at
// blanks first or merges nothing across them, so that the number of words is the number of tokens; short ones, because
// tokenizing to verify costs by the letter. Where a vocabulary does merge across words, the count comes out different
// and words are added or taken away until it is right: what is promised is verified, never assumed.
//
// Const after construction; any thread.
#include "workload/prompts.h"

#include <algorithm>
#include <numeric>
#include <span>

#include <fmt/format.h>

#include "base/check.h"
#include "base/limits.h"

namespace goodput {
namespace {

// Which of so many words is the i-th of a stretch.
size_t word_at(const Stretch& s, int i, size_t words) { return mix64(s.key, static_cast<uint64_t>(i)) % words; }

class IdPrompts final : public PromptMaker {
 public:
  IdPrompts(uint64_t seed, uint64_t documents) : leads_(kWords, seed, documents) {}

  Result<Prompt> unique(uint64_t ordinal, Tokens length, Random& random) const override {
    return Prompt{line(leads_.of_request(ordinal), length, random), {}};
  }
  Result<Document> document(uint64_t number, Tokens length, Random& random) const override {
    return Document{line(leads_.of_document(number), length, random), {}, {}, {}};
  }
  Result<Prompt> with_question(const Document& d, Tokens length, Random& random) const override {
    Prompt p{d.tokens, {}};
    extend(p.tokens, length, random);
    return p;
  }
  Result<Prompt> continuation(Tokens length, Random& random) const override {
    Prompt p;
    extend(p.tokens, length, random);
    return p;
  }
  Result<Prompt> of_stretches(std::span<const Stretch> stretches) const override {
    Prompt p;
    for (const Stretch& s : stretches)
      for (int i = 0; i < s.length.count(); ++i)
        p.tokens.push_back(p.tokens.empty() ? kBos : kFirst + static_cast<TokenId>(word_at(s, i, kWords)));
    return p;
  }

 private:
  static constexpr TokenId kBos = 1, kFirst = 3, kWords = 4096;

  static void extend(std::vector<TokenId>& tokens, Tokens length, Random& random) {
    tokens.reserve(static_cast<size_t>(length.count()));
    while (std::ssize(tokens) < length.count())
      tokens.push_back(kFirst + static_cast<TokenId>(random.uniform_int(0, kWords - 1)));
  }
  static std::vector<TokenId> line(size_t lead, Tokens length, Random& random) {
    std::vector<TokenId> tokens{kBos};
    if (length > Tokens(1))
      tokens.push_back(kFirst + static_cast<TokenId>(lead));
    extend(tokens, length, random);
    return tokens;
  }

  Leads leads_;
};

// The words of a vocabulary that tokenize as themselves, and what tokenizing puts around a text.
struct Words {
  std::vector<std::string> text;  // " word"
  std::vector<TokenId> ids;
  bool leading_blank = false;    // whether a prompt's first word keeps its blank
  size_t before = 0, after = 0;  // special tokens around a text (BOS, EOS)
};

// " word" in lower-case ASCII: the same letters in every encoding of pieces, and never part of a special token's text.
bool is_word(std::string_view piece) {
  return piece.size() >= 3 && piece[0] == ' ' &&
         std::ranges::all_of(piece.substr(1), [](char c) { return c >= 'a' && c <= 'z'; });
}

// Candidates by length, shortest first, then by id.
std::vector<std::pair<std::string, TokenId>> candidate_words(const Tokenizer& tokenizer) {
  std::vector<std::pair<std::string, TokenId>> words;
  for (TokenId id = 0; id < tokenizer.vocabulary_size(); ++id) {
    if (tokenizer.is_special(id))
      continue;
    std::string piece = tokenizer.piece(id);
    if (is_word(piece))
      words.emplace_back(std::move(piece), id);
  }
  std::ranges::stable_sort(words, {}, [](const auto& w) { return w.first.size(); });
  return words;
}

Result<Words> find_words(const Tokenizer& tokenizer) {
  constexpr size_t kTries = 256;
  Words words;
  const auto candidates = candidate_words(tokenizer);
  // Some tokenizers put a blank before a text themselves: then the first word must not bring its own. In doubt (a
  // vocabulary that takes neither), the words that survive are too few and the error below says so.
  for (const bool leading_blank : {false, true}) {
    words.text.clear();
    words.ids.clear();
    words.leading_blank = leading_blank;
    size_t tried = 0;
    for (const auto& [piece, id] : candidates) {
      // None of the first few: the other habit. Some tokenizers take a millisecond a call, and there may be 10^5 words.
      if (tried++ == kTries && words.text.empty())
        break;
      const auto tokens = tokenizer.tokenize(std::string_view(piece).substr(leading_blank ? 0 : 1), false, false);
      if (tokens.size() == 1 && tokens[0] == id) {
        words.text.push_back(piece);
        words.ids.push_back(id);
      }
      if (words.text.size() == limits::kMaxPromptWords)
        break;
    }
    if (words.text.size() >= 2)
      break;
  }
  if (words.text.size() < 2)
    return fail(
        ErrorCode::kFailed,
        "the model's vocabulary has no whole words (a blank and lower-case letters) that tokenize as one token, so "
        "prompts of exact length cannot be written with it");
  const std::string_view probe = std::string_view(words.text[0]).substr(words.leading_blank ? 0 : 1);
  const auto bare = tokenizer.tokenize(probe, false, false), full = tokenizer.tokenize(probe, true, false);
  const auto at = std::ranges::search(full, bare);
  if (at.empty())
    return fail(ErrorCode::kFailed,
                "the tokenizer gives other tokens for a word when it adds special tokens around it");
  words.before = static_cast<size_t>(at.begin() - full.begin());
  words.after = static_cast<size_t>(full.end() - at.end());
  return words;
}

class TextPrompts final : public PromptMaker {
 public:
  TextPrompts(const Tokenizer& tokenizer, Words words, uint64_t seed, uint64_t documents)
      : tokenizer_(tokenizer), words_(std::move(words)), leads_(words_.text.size(), seed, documents) {}

  Result<Prompt> unique(uint64_t ordinal, Tokens length, Random& random) const override {
    return line(leads_.of_request(ordinal), count(length), random);
  }

  Result<Document> document(uint64_t number, Tokens length, Random& random) const override {
    auto made = TRY(line(leads_.of_document(number), count(length) + words_.after, random));
    Document d{std::move(made.tokens), std::move(made.text), {}, {}};
    d.tokens.resize(d.tokens.size() - words_.after);
    find_tail(d);
    return d;
  }

  Result<Prompt> with_question(const Document& d, Tokens length, Random& random) const override {
    const size_t total = count(length);
    CHECK(total > d.tokens.size() + words_.after, "a question has at least one token");
    const std::span<const TokenId> known = d.tail.empty() ? d.tokens : d.tail_tokens;
    // What tokenizing the verified text must give: the known tokens, then exactly this many more.
    const size_t asked = total - d.tokens.size() - words_.after;
    for (int attempt = 0; attempt < limits::kMaxPromptRepairs; ++attempt) {
      std::vector<size_t> question = draw(asked, random);
      for (int repair = 0; repair < limits::kMaxPromptRepairs; ++repair) {
        const std::string asked_text = join(question);
        const bool special = d.tail.empty();
        const auto tokens = tokenizer_.tokenize((special ? d.text : d.tail) + asked_text, special, false);
        const size_t wanted = known.size() + asked + (special ? words_.after : 0);
        const bool shared = tokens.size() >= known.size() && std::equal(known.begin(), known.end(), tokens.begin());
        if (!shared)
          break;
        if (tokens.size() == wanted)
          return joined(d, asked_text, std::span(tokens).subspan(known.size()));
        if (!adjust(question, 1, wanted, tokens.size(), random))
          break;
      }
    }
    return inexact(total);
  }

  Result<Prompt> continuation(Tokens length, Random& random) const override {
    // After any one word: words do not look further back.
    Document d;
    d.text = words_.text[0].substr(words_.leading_blank ? 0 : 1);
    d.tokens = tokenizer_.tokenize(d.text, true, false);
    d.tokens.resize(d.tokens.size() - words_.after);
    const Tokens special(static_cast<int64_t>(d.tokens.size() + words_.after));
    Prompt p = TRY(with_question(d, special + length, random));
    p.text.erase(0, d.text.size());
    p.tokens.erase(p.tokens.begin(), p.tokens.begin() + std::ssize(d.tokens));
    p.tokens.resize(count(length));
    return p;
  }

  Result<Prompt> of_stretches(std::span<const Stretch> stretches) const override {
    size_t total = 0;
    for (const Stretch& s : stretches)
      total += count(s.length);
    if (total < words_.before + words_.after + 1)
      return too_short(total);
    std::vector<size_t> line;
    std::vector<TokenId> wanted;
    size_t place = 0;
    for (const Stretch& s : stretches)
      for (int i = 0; i < s.length.count(); ++i, ++place)
        if (place >= words_.before && place < total - words_.after) {
          line.push_back(word_at(s, i, words_.text.size()));
          wanted.push_back(words_.ids[line.back()]);
        }
    Prompt p;
    p.text = join(line);
    if (!words_.leading_blank)
      p.text.erase(0, 1);
    p.tokens = tokenizer_.tokenize(p.text, true, false);
    if (p.tokens.size() == total &&
        std::equal(wanted.begin(), wanted.end(),
                   p.tokens.begin() + std::ssize(p.tokens) - std::ssize(wanted) - static_cast<int64_t>(words_.after)))
      return p;
    return fail(
        ErrorCode::kFailed,
        "the model's vocabulary merges words, so blocks of exactly the trace's tokens cannot be written with it");
  }

 private:
  static size_t count(Tokens length) { return static_cast<size_t>(std::max(0, length.count())); }

  static tl::unexpected<Error> inexact(size_t length) {
    return fail(ErrorCode::kFailed, fmt::format("no text of exactly {} tokens was found in {} attempts: the model's "
                                                "vocabulary merges words unpredictably",
                                                length, limits::kMaxPromptRepairs));
  }

  tl::unexpected<Error> too_short(size_t length) const {
    const size_t special = words_.before + words_.after;
    return fail(ErrorCode::kUsage, fmt::format("a prompt of {} tokens is too short: this model adds {} special tokens "
                                               "to every prompt, so the shortest has {}",
                                               length, special, special + 1));
  }

  std::vector<size_t> draw(size_t n, Random& random) const {
    std::vector<size_t> out(n);
    for (size_t& word : out)
      word = draw_word(random);
    return out;
  }
  size_t draw_word(Random& random) const {
    return static_cast<size_t>(random.uniform_int(0, std::ssize(words_.text) - 1));
  }

  // Every word with its blank.
  std::string join(std::span<const size_t> line) const {
    std::string text;
    text.reserve(line.size() * 5);
    for (const size_t word : line)
      text += words_.text[word];
    return text;
  }

  // Adds or takes words by the difference in tokens, keeping the first `keep`; false: it cannot.
  bool adjust(std::vector<size_t>& line, size_t keep, size_t wanted, size_t found, Random& random) const {
    for (; found < wanted; ++found)
      line.push_back(draw_word(random));
    const size_t excess = found - wanted;
    if (line.size() < keep + excess)
      return false;
    line.resize(line.size() - excess);
    return true;
  }

  Result<Prompt> line(size_t lead, size_t length, Random& random) const {
    const size_t special = words_.before + words_.after;
    if (length < special + 1)
      return too_short(length);
    for (int attempt = 0; attempt < limits::kMaxPromptRepairs; ++attempt) {
      std::vector<size_t> words = draw(length - special, random);
      words[0] = lead;
      for (int repair = 0; repair < limits::kMaxPromptRepairs; ++repair) {
        std::string text = join(words);
        if (!words_.leading_blank)
          text.erase(0, 1);
        auto tokens = tokenizer_.tokenize(text, true, false);
        if (tokens.size() == length)
          return Prompt{std::move(tokens), std::move(text)};
        if (!adjust(words, 1, length, tokens.size(), random))
          break;
      }
    }
    return inexact(length);
  }

  // The question's tokens (with trailing special ones, if verified with them) after the document's.
  Prompt joined(const Document& d, std::string_view question, std::span<const TokenId> tokens) const {
    Prompt p;
    p.tokens.reserve(d.tokens.size() + tokens.size() + words_.after);
    p.tokens = d.tokens;
    p.tokens.insert(p.tokens.end(), tokens.begin(), tokens.end());
    p.text = d.text + std::string(question);
    return p;
  }

  void find_tail(Document& d) const {
    if (words_.after > 0)
      return;  // trailing special tokens are only seen on the whole
    constexpr int kTailWords = 4;
    size_t at = d.text.size();
    for (int i = 0; i < kTailWords; ++i) {
      at = at == 0 ? d.text.npos : d.text.rfind(' ', at - 1);
      if (at == d.text.npos)
        return;  // a short document costs little as a whole
    }
    const std::string tail = d.text.substr(at + (words_.leading_blank ? 0 : 1));
    auto tokens = tokenizer_.tokenize(tail, false, false);
    if (tokens.size() > d.tokens.size() || !std::equal(tokens.rbegin(), tokens.rend(), d.tokens.rbegin()))
      return;
    d.tail = tail;
    d.tail_tokens = std::move(tokens);
  }

  const Tokenizer& tokenizer_;
  Words words_;
  Leads leads_;
};

}  // namespace

Leads::Leads(size_t words, uint64_t seed, uint64_t documents) : order_(words) {
  std::iota(order_.begin(), order_.end(), size_t{0});
  Random random(seed, "leads");
  for (size_t i = words; i > 1; --i)
    std::swap(order_[i - 1], order_[static_cast<size_t>(random.uniform_int(0, static_cast<int64_t>(i) - 1))]);
  reserved_ = documents < words ? documents : 0;
}

std::unique_ptr<PromptMaker> make_id_prompts(uint64_t seed, uint64_t documents) {
  return std::make_unique<IdPrompts>(seed, documents);
}

Result<std::unique_ptr<PromptMaker>> make_text_prompts(const Tokenizer& tokenizer, uint64_t seed, uint64_t documents) {
  return std::make_unique<TextPrompts>(tokenizer, TRY(find_words(tokenizer)), seed, documents);
}

}  // namespace goodput
