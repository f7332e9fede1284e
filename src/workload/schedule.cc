// Makes a schedule in three passes: when and how long (plan), what is said (prompts), and what it implies (hash, hit
// rate). Every draw comes from a stream named by the seed, the request's index and a purpose, so that no draw can shift
// another. One thread per call, no state.
#include "workload/schedule.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <memory>
#include <unordered_set>

#include <fmt/format.h>

#include "base/check.h"
#include "base/hash.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/random.h"
#include "base/text.h"
#include "workload/arrivals.h"
#include "workload/length.h"
#include "workload/prompts.h"
#include "workload/trace.h"

namespace goodput {
namespace {

// One request before it has words.
struct Planned {
  Nanos at;
  uint16_t cls = 0;
  Tokens prompt{0}, output{0};
  std::optional<uint32_t> document;  // over all classes' documents
};

// A shared document before it has words.
struct PlannedDocument {
  uint16_t cls = 0;
  Tokens length{0};
};

Random stream(uint64_t seed, uint64_t index, std::string_view purpose) { return Random(mix64(seed, index), purpose); }

Result<void> check_options(const WorkloadSpec& spec, const ScheduleOptions& o) {
  if (o.duration && o.requests)
    return fail(ErrorCode::kUsage, "a schedule takes a duration or a number of requests, not both");
  if (spec.arrivals == ArrivalKind::kClosed && !o.requests)
    return fail(ErrorCode::kUsage, "a closed loop needs a number of requests: its times follow from the answers");
  if (spec.arrivals != ArrivalKind::kTrace && spec.stages.empty() && !o.duration && !o.requests)
    return fail(ErrorCode::kUsage, "a schedule needs a duration or a number of requests");
  if (o.duration && (*o.duration <= Nanos(0) || *o.duration > limits::kMaxWorkloadTime))
    return fail(ErrorCode::kUsage, fmt::format("a duration of {} is outside (0, {}]", format_duration(*o.duration),
                                               format_duration(limits::kMaxWorkloadTime)));
  if (o.requests == 0)
    return fail(ErrorCode::kUsage, "a schedule of 0 requests measures nothing");
  if (o.block_size < Tokens(1))
    return fail(ErrorCode::kUsage, "the block size must be at least 1 token");
  return {};
}

Result<void> check_count(double requests) {
  if (requests <= static_cast<double>(limits::kMaxScheduledRequests))
    return {};
  return fail(ErrorCode::kUsage,
              fmt::format("the schedule would hold about {:.0f} requests, the limit is {}: shorten it "
                          "or lower the rate",
                          requests, limits::kMaxScheduledRequests));
}

// Before drawing, so that whether a schedule can be made does not depend on its seed.
Result<void> check_lengths(const WorkloadSpec& spec, Tokens max_model_len) {
  if (spec.arrivals == ArrivalKind::kTrace)
    return {};
  for (const ClassSpec& c : spec.classes) {
    const Tokens prompt = longest(c.prompt), output = longest(c.output);
    if (prompt + output > max_model_len)
      return fail(
          ErrorCode::kUsage,
          fmt::format("a prompt of up to {} tokens and an output of up to {} exceed max_model_len {}: shorten the "
                      "class's lengths or raise max_model_len",
                      prompt.count(), output.count(), max_model_len.count()),
          fmt::format("class '{}'", c.name));
  }
  return {};
}

// Chooses classes by share.
class Mix {
 public:
  explicit Mix(const std::vector<ClassSpec>& classes) {
    double sum = 0;
    for (const auto& c : classes)
      bounds_.push_back(sum += c.share);
  }
  uint16_t draw(Random& random) const {
    const double at = random.uniform() * bounds_.back();
    const auto it = std::ranges::upper_bound(bounds_, at);
    return static_cast<uint16_t>(std::min<std::ptrdiff_t>(it - bounds_.begin(), std::ssize(bounds_) - 1));
  }

 private:
  std::vector<double> bounds_;
};

std::vector<PlannedDocument> plan_documents(const WorkloadSpec& spec) {
  std::vector<PlannedDocument> documents;
  if (spec.arrivals == ArrivalKind::kTrace)
    return documents;
  for (size_t c = 0; c < spec.classes.size(); ++c) {
    const ClassSpec& cls = spec.classes[c];
    for (int k = 0; k < cls.shared_documents; ++k)
      documents.push_back(
          {static_cast<uint16_t>(c), quantile(cls.prompt, (k + 0.5) / cls.shared_documents) - cls.question});
  }
  return documents;
}

// Draws what request `index` is; its time comes from elsewhere.
class Drawer {
 public:
  Drawer(const WorkloadSpec& spec, uint64_t seed, const std::vector<PlannedDocument>& documents)
      : spec_(spec), seed_(seed), documents_(documents), mix_(spec.classes) {
    for (uint32_t number = static_cast<uint32_t>(documents.size()); number > 0; --number)
      if (number == 1 || documents[number - 2].cls != documents[number - 1].cls)
        first_.emplace_back(documents[number - 1].cls, number - 1);
  }

  Planned draw(uint64_t index) const {
    Planned p;
    Random cls = stream(seed_, index, "class"), lengths = stream(seed_, index, "lengths");
    p.cls = mix_.draw(cls);
    const ClassSpec& c = spec_.classes[p.cls];
    p.output = goodput::draw(c.output, lengths);
    if (c.shared_documents == 0) {
      p.prompt = goodput::draw(c.prompt, lengths);
    } else {
      p.document = first_document(p.cls) + static_cast<uint32_t>(lengths.uniform_int(0, c.shared_documents - 1));
      const int q = c.question.count();
      const Tokens question(lengths.uniform_int((q + 1) / 2, q + q / 2));
      p.prompt = std::clamp(documents_[*p.document].length + question, shortest(c.prompt), longest(c.prompt));
    }
    return p;
  }

 private:
  uint32_t first_document(uint16_t cls) const {
    const auto it = std::ranges::find(first_, cls, &std::pair<uint16_t, uint32_t>::first);
    CHECK(it != first_.end(), "every class with shared documents has them planned");
    return it->second;
  }

  const WorkloadSpec& spec_;
  uint64_t seed_;
  const std::vector<PlannedDocument>& documents_;
  Mix mix_;
  std::vector<std::pair<uint16_t, uint32_t>> first_;  // class → its first document
};

// Takes times from `next` until the options say enough.
template <class Next>
Result<std::vector<Planned>> plan_times(const ScheduleOptions& o, const Drawer& drawer, Next next) {
  std::vector<Planned> plan;
  while (!o.requests || plan.size() < *o.requests) {
    const std::optional<Nanos> due = next();
    if (!due || (o.duration && *due >= *o.duration))
      break;
    const Nanos at = *due;
    if (at > limits::kMaxWorkloadTime)
      return fail(ErrorCode::kUsage, fmt::format("{} requests at this rate take longer than {}", o.requests.value_or(0),
                                                 format_duration(limits::kMaxWorkloadTime)));
    TRY(check_count(static_cast<double>(plan.size() + 1)));
    plan.push_back(drawer.draw(plan.size()));
    plan.back().at = at;
  }
  return plan;
}

Tokens scaled(Tokens n, double factor, Tokens least, Tokens most) {
  const double wanted = std::min(std::round(n.count() * factor), static_cast<double>(limits::kMaxModelLen.count()));
  Tokens out = std::max(Tokens(static_cast<int64_t>(wanted)), least);
  return most > Tokens(0) ? std::max(std::min(out, most), least) : out;
}

// Rows become requests of the first class with prompts that share nothing: a trace of lengths cannot tell what its
// requests had in common, so nothing is assumed.
Result<std::vector<Planned>> plan_trace(const TraceSpec& t, const ScheduleOptions& o) {
  std::vector<Planned> plan;
  uint64_t failed = 0, rows = 0;
  Nanos last;
  std::optional<Error> problem;
  TRY(read_azure_trace(t.file, [&](const TraceRow& row) {
    ++rows;
    last = row.at;
    if (problem || row.at < t.from || (t.length > Nanos(0) && row.at >= t.from + t.length))
      return;
    if (o.requests && plan.size() >= *o.requests)
      return;
    Planned p;
    p.at = arrival_time(to_seconds(row.at - t.from) / t.rate_factor);
    if (t.rate_factor == 1)
      p.at = row.at - t.from;  // to the nanosecond
    if (o.duration && p.at >= *o.duration)
      return;
    if (row.prompt == Tokens(0) || row.output == Tokens(0)) {
      ++failed;
      return;
    }
    p.prompt = scaled(row.prompt, t.length_factor, Tokens(2), t.max_prompt);  // BOS and a word
    p.output = scaled(row.output, t.length_factor, Tokens(1), t.max_output);
    if (p.prompt + p.output > o.max_model_len) {
      problem = Error{ErrorCode::kUsage,
                      fmt::format("row {} asks for {} + {} tokens, more than max_model_len {}: lower length_factor, or "
                                  "clip with max_prompt and max_output",
                                  rows, p.prompt.count(), p.output.count(), o.max_model_len.count()),
                      t.file};
      return;
    }
    if (p.at > limits::kMaxWorkloadTime) {
      problem = Error{ErrorCode::kUsage,
                      fmt::format("row {} would arrive after {}: raise rate_factor or narrow the window", rows,
                                  format_duration(limits::kMaxWorkloadTime)),
                      t.file};
      return;
    }
    plan.push_back(p);
    if (auto ok = check_count(static_cast<double>(plan.size())); !ok)
      problem = ok.error();
  }));
  if (problem)
    return tl::unexpected(std::move(*problem));
  if (failed > 0)
    log::warn(fmt::format("{}: {} rows without prompt or output tokens were skipped", t.file, failed));
  if (plan.empty())
    return fail(ErrorCode::kUsage,
                fmt::format("no request in the window: the trace has {} rows over {:.3f} s", rows, to_seconds(last)),
                t.file);
  return plan;
}

Result<std::vector<Planned>> plan_requests(const WorkloadSpec& spec, const ScheduleOptions& o, const Drawer& drawer) {
  if (spec.arrivals == ArrivalKind::kTrace)
    return plan_trace(*spec.trace, o);
  if (spec.arrivals == ArrivalKind::kClosed) {
    TRY(check_count(static_cast<double>(*o.requests)));
    return plan_times(o, drawer, [] { return std::optional(Nanos(0)); });
  }
  auto arrivals = TRY(Arrivals::create(spec, o.seed, o.duration, o.requests));
  TRY(check_count(o.requests ? static_cast<double>(*o.requests) : arrivals.expected_by(*o.duration)));
  return plan_times(o, drawer, [&arrivals] { return arrivals.next(); });
}

Result<void> check_tokens(const std::vector<Planned>& plan) {
  uint64_t tokens = 0;
  for (const Planned& p : plan)
    tokens += static_cast<uint64_t>(p.prompt.count());
  if (tokens <= limits::kMaxScheduledTokens)
    return {};
  return fail(ErrorCode::kUsage, fmt::format("the schedule's prompts would hold {} tokens, the limit is {}: shorten it",
                                             tokens, limits::kMaxScheduledTokens));
}

Result<std::vector<Document>> write_documents(const std::vector<PlannedDocument>& planned, uint64_t seed,
                                              const PromptMaker& maker) {
  std::vector<Document> documents;
  for (uint64_t number = 0; number < planned.size(); ++number) {
    Random random = stream(seed, number, "document");
    documents.push_back(TRY(maker.document(number, planned[number].length, random)));
  }
  return documents;
}

Result<std::vector<ScheduledRequest>> write_priming(const WorkloadSpec& spec,
                                                    const std::vector<PlannedDocument>& planned,
                                                    const std::vector<Document>& documents, uint64_t seed,
                                                    const PromptMaker& maker) {
  std::vector<ScheduledRequest> priming;
  for (uint64_t number = 0; number < documents.size(); ++number) {
    Random random = stream(seed, number, "priming");
    const ClassSpec& c = spec.classes[planned[number].cls];
    Prompt prompt = TRY(maker.with_question(documents[number], planned[number].length + c.question, random));
    priming.push_back({number, planned[number].cls, Nanos(0), c.priority, Tokens(1), std::move(prompt.tokens),
                       std::move(prompt.text)});
  }
  return priming;
}

// Tokens of the prompt that stand in whole blocks of the document; the last token of a prompt is always computed.
int64_t shared_tokens(const Planned& p, const std::vector<PlannedDocument>& documents, Tokens block_size) {
  if (!p.document)
    return 0;
  const Tokens shared = std::min(documents[*p.document].length, p.prompt - Tokens(1));
  return int64_t{shared / block_size} * block_size.count();
}

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

uint64_t count_distinct(const std::vector<ScheduledRequest>& requests) {
  std::unordered_set<uint64_t> seen;
  seen.reserve(requests.size());
  for (const auto& r : requests) {
    uint64_t h = r.prompt.size();
    for (const TokenId token : r.prompt)
      h = mix64(h ^ static_cast<uint32_t>(token));
    seen.insert(h);
  }
  return seen.size();
}

}  // namespace

Result<Schedule> make_schedule(const WorkloadSpec& spec, const ScheduleOptions& o, const Tokenizer* tokenizer) {
  TRY(validate(spec));
  TRY(check_options(spec, o));
  TRY(check_lengths(spec, o.max_model_len));
  const auto planned_documents = plan_documents(spec);
  const Drawer drawer(spec, o.seed, planned_documents);
  const auto plan = TRY(plan_requests(spec, o, drawer));
  TRY(check_tokens(plan));

  const std::unique_ptr<PromptMaker> maker = tokenizer
                                                 ? TRY(make_text_prompts(*tokenizer, o.seed, planned_documents.size()))
                                                 : make_id_prompts(o.seed, planned_documents.size());
  const auto documents = TRY(write_documents(planned_documents, o.seed, *maker));

  Schedule s;
  s.seed = o.seed;
  s.priming = TRY(write_priming(spec, planned_documents, documents, o.seed, *maker));
  s.requests.reserve(plan.size());
  int64_t shared = 0, total = 0;
  for (uint64_t index = 0; index < plan.size(); ++index) {
    const Planned& p = plan[index];
    Random random = stream(o.seed, index, "prompt");
    Prompt prompt = TRY(p.document ? maker->with_question(documents[*p.document], p.prompt, random)
                                   : maker->unique(index, p.prompt, random));
    CHECK(std::ssize(prompt.tokens) == p.prompt.count(), "a prompt has the length that was drawn");
    const Tokens of_document(shared_tokens(p, planned_documents, o.block_size));
    s.requests.push_back({index, p.cls, p.at, spec.classes[p.cls].priority, p.output, std::move(prompt.tokens),
                          std::move(prompt.text), of_document});
    shared += of_document.count();
    total += p.prompt.count();
  }
  s.implied_hit_rate = total > 0 ? static_cast<double>(shared) / static_cast<double>(total) : 0;
  s.distinct_prompts = count_distinct(s.requests);
  Sha256 hash;
  hash.update("goodput schedule 1\n");
  hash_requests(hash, s.requests);
  hash_requests(hash, s.priming);
  s.hash = hash.hex();
  return s;
}

}  // namespace goodput
