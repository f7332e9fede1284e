// Makes a schedule in three passes: when and how long (plan.h), what is said (prompts.h), and what it implies (hash,
// hit rate). Every draw comes from a stream named by the seed, the request's index and a purpose, so that no draw can
// shift another. One thread per call, no state.
#include "workload/schedule.h"

#include <algorithm>
#include <array>
#include <bit>
#include <functional>
#include <memory>
#include <span>
#include <unordered_set>

#include <fmt/format.h>

#include "base/check.h"
#include "base/hash.h"
#include "base/limits.h"
#include "base/random.h"
#include "workload/plan.h"
#include "workload/prompts.h"

namespace goodput {
namespace {

Result<void> check_tokens(const std::vector<Planned>& plan) {
  uint64_t tokens = 0;
  for (const Planned& p : plan)
    tokens += static_cast<uint64_t>(p.prompt.count());
  if (tokens <= limits::kMaxScheduledTokens)
    return {};
  return fail(ErrorCode::kUsage, fmt::format("the schedule's prompts would hold {} tokens, the limit is {}: shorten it",
                                             tokens, limits::kMaxScheduledTokens));
}

// The makers that a schedule needs, made when they are.
class Makers {
 public:
  Makers(const Tokenizer* tokenizer, uint64_t seed, uint64_t documents)
      : tokenizer_(tokenizer), seed_(seed), documents_(documents) {}

  Result<std::reference_wrapper<const PromptMaker>> of(TextKind kind) {
    if (!tokenizer_)
      kind = TextKind::kEnglish;  // ids are ids
    auto& maker = made_[static_cast<size_t>(kind)];
    if (!maker && !tokenizer_)
      maker = make_id_prompts(seed_, documents_);
    else if (!maker && kind == TextKind::kEnglish)
      maker = TRY(make_text_prompts(*tokenizer_, seed_, documents_));
    else if (!maker)
      maker = TRY(make_script_prompts(kind, *tokenizer_, seed_, documents_));
    return *maker;
  }

 private:
  const Tokenizer* tokenizer_;
  uint64_t seed_, documents_;
  std::array<std::unique_ptr<PromptMaker>, 3> made_;
};

Result<std::vector<Document>> write_documents(const WorkloadSpec& spec, const std::vector<PlannedDocument>& planned,
                                              uint64_t seed, Makers& makers) {
  std::vector<Document> documents;
  for (uint64_t number = 0; number < planned.size(); ++number) {
    Random random = stream(seed, number, "document");
    const PromptMaker& maker = TRY(makers.of(spec.classes[planned[number].cls].text));
    documents.push_back(TRY(maker.document(number, planned[number].length, random)));
  }
  return documents;
}

Result<std::vector<ScheduledRequest>> write_priming(const WorkloadSpec& spec,
                                                    const std::vector<PlannedDocument>& planned,
                                                    const std::vector<Document>& documents, uint64_t seed,
                                                    Makers& makers) {
  std::vector<ScheduledRequest> priming;
  for (uint64_t number = 0; number < documents.size(); ++number) {
    if (!planned[number].primed)
      continue;
    Random random = stream(seed, number, "priming");
    const ClassSpec& c = spec.classes[planned[number].cls];
    const PromptMaker& maker = TRY(makers.of(c.text));
    Prompt prompt = TRY(maker.with_question(documents[number], planned[number].length + c.question, random));
    priming.push_back({priming.size(), planned[number].cls, Nanos(0), c.priority, Tokens(1), std::move(prompt.tokens),
                       std::move(prompt.text), Tokens(0), nullptr});
  }
  return priming;
}

// A cache of whole blocks that forgets nothing: which prefixes it has seen.
class PrefixIndex {
 public:
  explicit PrefixIndex(Tokens block) : block_(static_cast<size_t>(block.count())) {}

  void insert(std::span<const TokenId> tokens) {
    walk(tokens, [this](uint64_t chain) {
      seen_.insert(chain);
      return true;
    });
  }
  // Tokens of the whole blocks at the start that it holds; the last token is always computed.
  Tokens match(std::span<const TokenId> tokens) const {
    size_t blocks = 0;
    walk(tokens.first(tokens.size() - !tokens.empty()), [&](uint64_t chain) {
      const bool hit = seen_.contains(chain);
      blocks += hit;
      return hit;
    });
    return Tokens(static_cast<int64_t>(blocks * block_));
  }

 private:
  template <class Visit>
  void walk(std::span<const TokenId> tokens, Visit visit) const {
    uint64_t chain = 0;
    for (size_t i = 0; i + block_ <= tokens.size(); i += block_) {
      for (size_t k = i; k < i + block_; ++k)
        chain = mix64(chain ^ static_cast<uint32_t>(tokens[k]));
      if (!visit(chain))
        return;
    }
  }

  size_t block_;
  std::unordered_set<uint64_t> seen_;
};

// Writes the words of one plan's requests, in order.
class RequestWriter {
 public:
  RequestWriter(const WorkloadSpec& spec, const ScheduleOptions& o, uint64_t words_seed, Plan& plan, Makers& makers,
                const std::vector<Document>& documents, std::vector<ScheduledRequest>& out)
      : spec_(spec),
        o_(o),
        words_seed_(words_seed),
        plan_(plan),
        makers_(makers),
        documents_(documents),
        index_(o.block_size),
        seen_(documents.size()),
        out_(out) {}

  Result<void> add(uint64_t index) {
    Planned& p = plan_.requests[index];
    const ClassSpec& c = spec_.classes[p.cls];
    Random random = stream(words_seed_, index, "prompt");
    Prompt prompt = TRY(write(index, p, random));
    CHECK(std::ssize(prompt.tokens) == p.prompt.count(), "a prompt has the length that was drawn");
    out_.push_back({index, p.cls, p.at, c.priority, p.output, std::move(prompt.tokens), std::move(prompt.text),
                    Tokens(0), nullptr});
    if (p.turn)
      out_.back().turn = std::make_shared<const Turn>(
          Turn{p.turn->session, p.turn->turn, p.turn->after, p.turn->think, p.turn->added, continues(p)});
    out_.back().shared = shared(p, out_.back());
    return {};
  }

 private:
  static bool continues(const Planned& p) {
    return p.turn && p.turn->after && (!p.words || p.words->stretches.empty());
  }

  Result<Prompt> write(uint64_t index, Planned& p, Random& random) {
    if (continues(p))
      return next_turn(p, random);
    if (p.words && p.words->text)
      return Prompt{std::move(p.words->tokens), std::move(*p.words->text)};
    const PromptMaker& maker = TRY(makers_.of(p.words ? TextKind::kEnglish : spec_.classes[p.cls].text));
    if (p.words)
      return maker.of_stretches(all_stretches(index, p));
    return p.document ? maker.with_question(documents_[*p.document], p.prompt, random)
                      : maker.unique(index, p.prompt, random);
  }

  // The trace's stretches, and one of the request's own for what they leave.
  std::vector<Stretch> all_stretches(uint64_t index, const Planned& p) const {
    std::vector<Stretch> all;
    Tokens left = p.prompt;
    for (const Stretch& s : p.words->stretches) {
      all.push_back({mix64(s.key, words_seed_), s.length});
      left -= s.length;
    }
    if (left > Tokens(0))
      all.push_back({mix64(mix64(index, fnv1a("own")), words_seed_), left});
    return all;
  }

  // What was said before, the answer's stand-in and what the user adds; the text is the latter alone.
  Result<Prompt> next_turn(Planned& p, Random& random) {
    const Planned& before = plan_.requests[*p.turn->after];
    Prompt prompt;
    Prompt added;
    if (p.words) {
      added = {std::move(p.words->tokens), std::move(*p.words->text)};
      if (p.prompt == Tokens(0))
        return added;  // of unknown length
    }
    const PromptMaker& maker = TRY(makers_.of(spec_.classes[p.cls].text));
    if (!p.words)
      added = TRY(maker.continuation(p.turn->added, random));
    std::vector<TokenId> answer = before.words ? before.words->answered : std::vector<TokenId>();
    if (std::ssize(answer) < before.output.count()) {
      Random stand_in = stream(words_seed_, *p.turn->after, "answer");
      const Tokens missing = before.output - Tokens(std::ssize(answer));
      const auto more = TRY(maker.continuation(missing, stand_in)).tokens;
      answer.insert(answer.end(), more.begin(), more.end());
    }
    answer.resize(static_cast<size_t>(before.output.count()));
    const auto& said = out_[*p.turn->after].prompt;
    prompt.tokens.reserve(said.size() + answer.size() + added.tokens.size());
    for (const std::vector<TokenId>* part : {&said, static_cast<const std::vector<TokenId>*>(&answer),
                                             static_cast<const std::vector<TokenId>*>(&added.tokens)})
      prompt.tokens.insert(prompt.tokens.end(), part->begin(), part->end());
    prompt.text = std::move(added.text);
    return prompt;
  }

  Tokens shared(const Planned& p, const ScheduledRequest& r) {
    const bool later = p.turn && p.turn->after;
    if (p.document && !later && plan_.documents[*p.document].primed && !p.turn)
      return of_document(p);
    if (!p.document && !p.turn && !p.words)
      return Tokens(0);
    Tokens found(0);
    if (p.document && !later) {
      found = seen_[*p.document] || plan_.documents[*p.document].primed ? of_document(p) : Tokens(0);
      seen_[*p.document] = true;
      if (!p.turn)
        return found;
    }
    if (later) {
      // The cache has what stands before this turn's words, but for the answer's last token, which was never computed.
      const Planned& before = plan_.requests[*p.turn->after];
      const int64_t known = before.prompt.count() + before.output.count() - 1;
      if (continues(p) && known <= std::ssize(r.prompt))
        index_.insert(std::span(r.prompt).first(static_cast<size_t>(std::max<int64_t>(0, known))));
    }
    found = std::max(found, index_.match(r.prompt));
    index_.insert(r.prompt);
    return found;
  }

  Tokens of_document(const Planned& p) const {
    const Tokens common = std::min(plan_.documents[*p.document].length, p.prompt - Tokens(1));
    return Tokens(int64_t{common / o_.block_size} * o_.block_size.count());
  }

  const WorkloadSpec& spec_;
  const ScheduleOptions& o_;
  const uint64_t words_seed_;
  Plan& plan_;
  Makers& makers_;
  const std::vector<Document>& documents_;
  PrefixIndex index_;
  std::vector<bool> seen_;  // of the documents that are not primed
  std::vector<ScheduledRequest>& out_;
};

template <class T>
void append(std::string& out, T value) {
  static_assert(std::endian::native == std::endian::little, "the hash is over little-endian values");
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

void hash_requests(Sha256& hash, const std::vector<ScheduledRequest>& requests) {
  std::string head;
  append(head, uint64_t{requests.size()});
  hash.update(head);
  for (const ScheduledRequest& r : requests) {
    head.clear();
    append(head, r.at.count());
    append(head, r.cls);
    append(head, int32_t{r.priority});
    append(head, r.output.count());
    append(head, uint64_t{r.prompt.size()});
    hash.update(head);
    hash.update({reinterpret_cast<const char*>(r.prompt.data()), r.prompt.size() * sizeof(TokenId)});
  }
}

// What the fields above leave out: conversations, and texts of unknown tokens.
void hash_turns(Sha256& hash, const std::vector<ScheduledRequest>& requests) {
  for (const ScheduledRequest& r : requests) {
    std::string bytes;
    if (r.turn) {
      append(bytes, r.index);
      append(bytes, r.turn->session);
      append(bytes, r.turn->number);
      append(bytes, r.turn->after.value_or(~uint64_t{0}));
      append(bytes, r.turn->think.count());
      append(bytes, uint8_t{r.turn->continues});
    }
    if (!prompt_tokens(r))
      bytes += r.text;
    hash.update(bytes);
  }
}

uint64_t count_distinct(const std::vector<ScheduledRequest>& requests) {
  std::unordered_set<uint64_t> seen;
  seen.reserve(requests.size());
  for (const auto& r : requests) {
    uint64_t h = r.prompt.size();
    if (r.prompt.empty())
      h = mix64(fnv1a(r.text), r.turn && r.turn->after ? *r.turn->after : 0);
    for (const TokenId token : r.prompt)
      h = mix64(h ^ static_cast<uint32_t>(token));
    seen.insert(h);
  }
  return seen.size();
}

}  // namespace

std::optional<Tokens> prompt_tokens(const ScheduledRequest& r) {
  if (r.prompt.empty() && !r.text.empty())
    return std::nullopt;
  return Tokens(std::ssize(r.prompt));
}

std::vector<PromptPart> prompt_parts(const Schedule& schedule, const ScheduledRequest& request) {
  std::vector<PromptPart> parts{{request.text, {}}};
  for (const ScheduledRequest* r = &request; r->turn && r->turn->continues;) {
    parts.push_back({{}, *r->turn->after});
    r = &schedule.requests[*r->turn->after];
    parts.push_back({r->text, {}});
  }
  std::ranges::reverse(parts);
  return parts;
}

Result<Schedule> make_schedule(const WorkloadSpec& spec, const ScheduleOptions& o, const Tokenizer* tokenizer) {
  TRY(validate(spec));
  Plan plan = TRY(make_plan(spec, o, tokenizer));
  TRY(check_tokens(plan.requests));

  const uint64_t words_seed = o.salt == 0 ? o.seed : mix64(o.seed, o.salt);
  Makers makers(tokenizer, words_seed, plan.documents.size());
  const auto documents = TRY(write_documents(spec, plan.documents, words_seed, makers));

  Schedule s;
  s.seed = o.seed;
  s.trace = std::move(plan.trace);
  s.priming = TRY(write_priming(spec, plan.documents, documents, words_seed, makers));
  s.requests.reserve(plan.requests.size());
  RequestWriter writer(spec, o, words_seed, plan, makers, documents, s.requests);
  int64_t shared = 0, total = 0;
  bool more = false;
  for (uint64_t index = 0; index < plan.requests.size(); ++index) {
    TRY(writer.add(index));
    const ScheduledRequest& r = s.requests.back();
    const auto tokens = prompt_tokens(r);
    s.unknown_lengths += !tokens;
    more |= r.turn || !tokens;
    shared += r.shared.count();
    total += tokens.value_or(Tokens(0)).count();
  }
  s.implied_hit_rate = total > 0 ? static_cast<double>(shared) / static_cast<double>(total) : 0;
  s.distinct_prompts = count_distinct(s.requests);
  Sha256 hash;
  hash.update("goodput schedule 1\n");
  hash_requests(hash, s.requests);
  hash_requests(hash, s.priming);
  if (more)
    hash_turns(hash, s.requests);
  s.hash = hash.hex();
  return s;
}

}  // namespace goodput
