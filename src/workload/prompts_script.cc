// Prompts in Chinese and in code. Their pieces (characters, words, operators) cost whatever the vocabulary makes of
// them, alone and next to each other, so a text is built by its pieces' costs, tokenized, and repaired until the count
// is right; what is promised is verified. One piece in twenty is rare and mostly costs several tokens.
//
// Const after construction; any thread.
#include <algorithm>
#include <map>
#include <optional>
#include <span>

#include <fmt/format.h>

#include "base/limits.h"
#include "workload/prompts.h"

namespace goodput {
namespace {

// What texts are made of. `fill` costs little and ends what is left; `bound` parts a question from what it follows.
struct Script {
  std::vector<std::string_view> common, rare, fill;
  std::string_view bound;
};

Script script_of(TextKind kind) {
  if (kind == TextKind::kChinese)
    return {
        {"时间", "我们", "他们", "可以", "一个", "没有", "问题", "工作", "社会", "发展", "国家", "经济", "系统", "服务",
         "中国", "世界", "研究", "技术", "生活", "方法", "学生", "老师", "城市", "历史", "文化", "科学", "的",   "是",
         "在",   "了",   "和",   "有",   "人",   "这",   "中",   "大",   "为",   "上",   "个",   "国",   "我",   "以",
         "要",   "他",   "来",   "用",   "们",   "生",   "到",   "作",   "地",   "于",   "出",   "就",   "分",   "对",
         "成",   "会",   "可",   "主",   "发",   "年",   "动",   "同",   "工",   "也",   "能",   "下",   "过",   "子",
         "说",   "产",   "种",   "面",   "而",   "方",   "后",   "多",   "定",   "行",   "学",   "法",   "所",   "民"},
        {"龘", "爨", "饕餮", "魑魅", "氤氲", "彳亍", "踟蹰", "囹圄", "耄耋", "貔貅", "蹀躞", "龃龉", "懿", "麤", "鬱",
         "𠮷"},
        {"，", "。", "不", "一", "3", "7"},
        "。"};
  return {{"int",     "return",   "for",     "while",  "const",   "auto",   "if",     "void",  "class",
           "struct",  "template", "static",  "public", "private", "import", "def",    "let",   "func",
           "using",   "else",     "string",  "bool",   "switch",  "try",    "throw",  "new",   " value",
           " size",   " index",   " result", " data",  " node",   " list",  " begin", " end",  " count",
           " buffer", " length",  " return", " if",    " for",    " const", " true",  " null", " = ",
           " + ",     " - ",      " * ",     "(",      ")",       "[i]",    " {\n  ", ";\n",   ";\n  ",
           ";\n    ", "}\n",      ", ",      "->next", ".size()", "::",     " == ",   " != ",  " < ",
           " && ",    " += 1",    " // ",    " 0",     " 42",     " in ",   "()",     "[0]"},
          {"xmlHttpRequest", "__attribute__", "0xDEADBEEF", "std::unordered_map<K, V>", "Ünïcode", "λ", "≤", "kMaxΔt"},
          {"x", "y", "i", ";", "0", "1"},
          "\n"};
}

class ScriptPrompts final : public PromptMaker {
 public:
  ScriptPrompts(Script script, const Tokenizer& tokenizer, uint64_t seed, uint64_t documents)
      : tokenizer_(tokenizer), script_(std::move(script)), leads_(lead_count(), seed, documents) {
    const std::string probe(script_.common[0]);
    const size_t bare = tokenizer.tokenize(probe, false, false).size();
    body_ = lead_count() < script_.common.size() ? static_cast<int64_t>(lead_count()) : 0;
    special_ = tokenizer.tokenize(probe, true, false).size() - bare;
    after_ = trailing(probe);
    for (const auto* list : {&script_.common, &script_.rare, &script_.fill})
      for (const auto piece : *list)
        costs_[list].push_back(cost(probe, bare, piece));
  }

  Result<Prompt> unique(uint64_t ordinal, Tokens length, Random& random) const override {
    return line(script_.common[leads_.of_request(ordinal)], static_cast<size_t>(length.count()), random);
  }

  Result<Document> document(uint64_t number, Tokens length, Random& random) const override {
    auto made =
        TRY(line(script_.common[leads_.of_document(number)], static_cast<size_t>(length.count()) + after_, random));
    Document d{std::move(made.tokens), std::move(made.text), {}, {}};
    d.tokens.resize(d.tokens.size() - after_);
    return d;
  }

  Result<Prompt> with_question(const Document& d, Tokens length, Random& random) const override {
    const auto total = static_cast<size_t>(length.count());
    const auto shares = [&](const std::vector<TokenId>& tokens) {
      return tokens.size() >= d.tokens.size() && std::equal(d.tokens.begin(), d.tokens.end(), tokens.begin());
    };
    for (int attempt = 0; attempt < limits::kMaxPromptRepairs; ++attempt) {
      // A mark between the two keeps their letters from merging; where marks merge too, one does without.
      std::vector<std::string_view> pieces;
      if (attempt % 2 == 0)
        pieces.push_back(script_.bound);
      if (auto made = repair(d.text, std::move(pieces), d.tokens.size() + after_, total, random);
          made && shares(made->tokens))
        return std::move(*made);
    }
    return inexact(total);
  }

  Result<Prompt> continuation(Tokens length, Random& random) const override {
    Document d;
    d.text = script_.common[0];
    d.tokens = tokenizer_.tokenize(d.text, true, false);
    d.tokens.resize(d.tokens.size() - after_);
    const Tokens known(static_cast<int64_t>(d.tokens.size() + after_));
    Prompt p = TRY(with_question(d, known + length, random));
    p.text.erase(0, d.text.size());
    p.tokens.erase(p.tokens.begin(), p.tokens.begin() + std::ssize(d.tokens));
    p.tokens.resize(static_cast<size_t>(length.count()));
    return p;
  }

  Result<Prompt> of_stretches(std::span<const Stretch>) const override {
    return fail(ErrorCode::kFailed, "blocks of a trace are written in English");
  }

 private:
  using List = std::vector<std::string_view>;

  // Pieces that can stand first: chat templates trim what is blank at a prompt's ends.
  size_t lead_count() const {
    return static_cast<size_t>(std::ranges::find_if(script_.common, [](std::string_view s) { return s[0] == ' '; }) -
                               script_.common.begin());
  }

  size_t trailing(const std::string& probe) const {
    const auto bare = tokenizer_.tokenize(probe, false, false), full = tokenizer_.tokenize(probe, true, false);
    const auto at = std::ranges::search(full, bare);
    return at.empty() ? 0 : static_cast<size_t>(full.end() - at.end());
  }

  size_t cost(const std::string& probe, size_t bare, std::string_view piece) const {
    const size_t both = tokenizer_.tokenize(probe + std::string(piece), false, false).size();
    return std::max<size_t>(1, both > bare ? both - bare : 1);
  }

  static tl::unexpected<Error> inexact(size_t length) {
    return fail(ErrorCode::kFailed,
                fmt::format("no text of exactly {} tokens was found in {} attempts: the model's vocabulary merges "
                            "pieces unpredictably",
                            length, limits::kMaxPromptRepairs));
  }

  // A piece that costs at most `most` alone, else one of the fill.
  std::pair<std::string_view, size_t> draw(size_t most, Random& random) const {
    for (int i = 0; i < 4; ++i) {
      const List& list = random.uniform_int(0, 19) == 0 ? script_.rare : script_.common;
      const int64_t first = &list == &script_.common ? body_ : 0;
      const auto at = static_cast<size_t>(random.uniform_int(first, std::ssize(list) - 1));
      if (const size_t c = costs_.at(&list)[at]; c <= most)
        return {list[at], c};
    }
    const auto at = static_cast<size_t>(random.uniform_int(0, std::ssize(script_.fill) - 1));
    return {script_.fill[at], costs_.at(&script_.fill)[at]};
  }

  // `start`, `pieces` and as many more as make `total` tokens with the special ones; `known`: about what start costs.
  std::optional<Prompt> repair(std::string_view start, List pieces, size_t known, size_t total, Random& random) const {
    const size_t keep = pieces.size();
    for (size_t estimate = known + keep; estimate < total;) {
      const auto [piece, c] = draw(total - estimate, random);
      pieces.push_back(piece);
      estimate += c;
    }
    for (int round = 0; round < 4 * limits::kMaxPromptRepairs; ++round) {
      std::string text(start);
      for (const auto piece : pieces)
        text += piece;
      auto tokens = tokenizer_.tokenize(text, true, false);
      const bool trims = text.empty() || text.back() == ' ' || text.back() == '\n';
      if (tokens.size() == total && (!trims || pieces.size() == keep))
        return Prompt{std::move(tokens), std::move(text)};
      // Too many, or a blank at the end: take some away. The next rounds add other ones.
      const size_t excess = tokens.size() > total ? tokens.size() - total : 0;
      if (tokens.size() >= total) {
        const size_t drop =
            std::min(pieces.size() - keep, 1 + excess / 2 + static_cast<size_t>(random.uniform_int(0, 2)));
        if (drop == 0)
          return std::nullopt;
        pieces.resize(pieces.size() - drop);
        continue;
      }
      for (size_t missing = total - tokens.size(); missing > 0;) {
        const auto [piece, c] = draw(missing, random);
        pieces.push_back(piece);
        missing -= std::min(c, missing);
      }
    }
    return std::nullopt;
  }

  Result<Prompt> line(std::string_view lead, size_t length, Random& random) const {
    if (length < special_ + 1)
      return fail(ErrorCode::kUsage,
                  fmt::format("a prompt of {} tokens is too short: this model adds {} special tokens "
                              "to every prompt, so the shortest has {}",
                              length, special_, special_ + 1));
    for (int attempt = 0; attempt < limits::kMaxPromptRepairs; ++attempt) {
      // Where the lead alone is too long, any piece may stand first.
      const std::string_view start = attempt < 4 ? lead : std::string_view();
      if (auto made = repair(start, {}, special_ + (start.empty() ? 0 : 1), length, random))
        return std::move(*made);
    }
    return inexact(length);
  }

  const Tokenizer& tokenizer_;
  Script script_;
  Leads leads_;
  std::map<const List*, std::vector<size_t>> costs_;  // of each list's pieces, next to another
  size_t special_ = 0, after_ = 0;
  int64_t body_ = 0;  // the first common piece that does not only stand first
};

}  // namespace

Result<std::unique_ptr<PromptMaker>> make_script_prompts(TextKind kind, const Tokenizer& tokenizer, uint64_t seed,
                                                         uint64_t documents) {
  return std::make_unique<ScriptPrompts>(script_of(kind), tokenizer, seed, documents);
}

}  // namespace goodput
