#include "workload/plan.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/check.h"
#include "base/limits.h"
#include "base/text.h"
#include "workload/arrivals.h"
#include "workload/length.h"

namespace goodput {
namespace {

bool talks(const ClassSpec& c) { return longest(c.turns) > Tokens(1); }

Result<void> check_options(const WorkloadSpec& spec, const ScheduleOptions& o) {
  if (o.duration && o.requests)
    return fail(ErrorCode::kUsage, "a schedule takes a duration or a number of requests, not both");
  const bool from_trace = spec.arrivals == ArrivalKind::kTrace || (spec.trace && spec.trace->requests_only);
  if (spec.arrivals == ArrivalKind::kClosed && !o.requests && !from_trace)
    return fail(ErrorCode::kUsage, "a closed loop needs a number of requests: its times follow from the answers");
  if (!from_trace && spec.stages.empty() && !o.duration && !o.requests)
    return fail(ErrorCode::kUsage, "a schedule needs a duration or a number of requests");
  if (o.duration && (*o.duration <= Nanos(0) || *o.duration > limits::kMaxWorkloadTime))
    return fail(ErrorCode::kUsage, fmt::format("a duration of {} is outside (0, {}]", format_duration(*o.duration),
                                               format_duration(limits::kMaxWorkloadTime)));
  if (o.requests == 0)
    return fail(ErrorCode::kUsage, "a schedule of 0 requests measures nothing");
  if (o.block_size < Tokens(1))
    return fail(ErrorCode::kUsage, "the block size must be at least 1 token");
  const bool by_request = spec.rescale || (spec.ramp && spec.ramp->by == RampSpec::By::kIndex);
  if (by_request && has_rate_profile(spec) + spec.rescale > 0 && std::ranges::any_of(spec.classes, talks))
    return fail(
        ErrorCode::kUsage,
        "a ramp by index and rescaled arrivals count requests, but of conversations only the first turns arrive");
  return {};
}

// The longest that a request of the class can be, prompt and output together.
int64_t longest_request(const ClassSpec& c) {
  const int64_t prompt = longest(c.prompt).count(), output = longest(c.output).count();
  const int64_t question = c.question.count() + c.question.count() / 2;
  const int64_t later = (c.shared_documents > 0 ? question : prompt) + output;
  return (c.prefix_groups > 0 ? c.prefix_len.count() : 0) + prompt + output + (longest(c.turns).count() - 1) * later;
}

// Before drawing, so that whether a schedule can be made does not depend on its seed.
Result<void> check_lengths(const WorkloadSpec& spec, Tokens max_model_len) {
  for (const ClassSpec& c : spec.classes) {
    const int64_t request = longest_request(c);
    if (request <= max_model_len.count())
      continue;
    const Tokens prompt = longest(c.prompt), output = longest(c.output);
    const std::string what =
        request == prompt.count() + output.count()
            ? fmt::format("a prompt of up to {} tokens and an output of up to {}", prompt.count(), output.count())
            : fmt::format("a prefix of {} tokens and {} turns of up to {} and {} tokens, together {},",
                          c.prefix_groups > 0 ? c.prefix_len.count() : 0, longest(c.turns).count(), prompt.count(),
                          output.count(), request);
    return fail(ErrorCode::kUsage,
                fmt::format("{} exceed max_model_len {}: shorten the class's lengths or raise max_model_len", what,
                            max_model_len.count()),
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
  for (size_t c = 0; c < spec.classes.size(); ++c) {
    const ClassSpec& cls = spec.classes[c];
    for (int k = 0; k < cls.shared_documents; ++k)
      documents.push_back(
          {static_cast<uint16_t>(c), quantile(cls.prompt, (k + 0.5) / cls.shared_documents) - cls.question});
    for (int k = 0; k < cls.prefix_groups; ++k)
      documents.push_back({static_cast<uint16_t>(c), cls.prefix_len, false});
  }
  return documents;
}

// Draws what arrival `ordinal` is; its time comes from elsewhere.
class Drawer {
 public:
  Drawer(const WorkloadSpec& spec, uint64_t seed, const std::vector<PlannedDocument>& documents)
      : spec_(spec), seed_(seed), documents_(documents), mix_(spec.classes) {
    for (uint32_t number = static_cast<uint32_t>(documents.size()); number > 0; --number)
      if (number == 1 || documents[number - 2].cls != documents[number - 1].cls)
        first_.emplace_back(documents[number - 1].cls, number - 1);
  }

  Planned draw(uint64_t ordinal) const {
    Planned p;
    Random cls = stream(seed_, ordinal, "class"), lengths = stream(seed_, ordinal, "lengths");
    p.cls = mix_.draw(cls);
    const ClassSpec& c = spec_.classes[p.cls];
    p.output = goodput::draw(c.output, lengths);
    if (c.prefix_groups > 0) {
      p.document = first_document(p.cls) + static_cast<uint32_t>(lengths.uniform_int(0, c.prefix_groups - 1));
      p.prompt = c.prefix_len + goodput::draw(c.prompt, lengths);
    } else if (c.shared_documents == 0) {
      p.prompt = goodput::draw(c.prompt, lengths);
    } else {
      p.document = first_document(p.cls) + static_cast<uint32_t>(lengths.uniform_int(0, c.shared_documents - 1));
      p.prompt =
          std::clamp(documents_[*p.document].length + question(c, lengths), shortest(c.prompt), longest(c.prompt));
    }
    return p;
  }

  uint32_t turns(uint64_t ordinal, const ClassSpec& c) const {
    Random random = stream(seed_, ordinal, "turns");
    return static_cast<uint32_t>(goodput::draw(c.turns, random).count());
  }

  // Turn `number` of arrival `ordinal`, after the turn that is request `after` of the plan.
  Planned follow_up(uint64_t ordinal, uint32_t number, uint64_t after, const Planned& before) const {
    const ClassSpec& c = spec_.classes[before.cls];
    Random random = stream(seed_, mix64(ordinal, number), "later turn");
    Planned p;
    p.at = before.at;
    p.cls = before.cls;
    p.output = goodput::draw(c.output, random);
    const Tokens added = c.shared_documents > 0 ? question(c, random) : goodput::draw(c.prompt, random);
    const Nanos think = goodput::draw(c.think_time, random);
    p.prompt = before.prompt + before.output + added;
    p.turn = std::make_unique<PlannedTurn>(PlannedTurn{ordinal, number, after, think, added});
    return p;
  }

 private:
  static Tokens question(const ClassSpec& c, Random& random) {
    const int q = c.question.count();
    return Tokens(random.uniform_int((q + 1) / 2, q + q / 2));
  }

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

// Takes times from `next` until the options say enough. The turns of a conversation follow each other; that of the last
// one may end early.
template <class Next>
Result<std::vector<Planned>> plan_times(const WorkloadSpec& spec, const ScheduleOptions& o, const Drawer& drawer,
                                        Next next) {
  std::vector<Planned> plan;
  const auto enough = [&] { return o.requests && plan.size() >= *o.requests; };
  for (uint64_t ordinal = 0; !enough(); ++ordinal) {
    const std::optional<Nanos> at = next();
    if (!at || (o.duration && *at >= *o.duration))
      break;
    if (*at > limits::kMaxWorkloadTime)
      return fail(ErrorCode::kUsage, fmt::format("{} requests at this rate take longer than {}", o.requests.value_or(0),
                                                 format_duration(limits::kMaxWorkloadTime)));
    TRY(check_count(static_cast<double>(plan.size() + 1)));
    plan.push_back(drawer.draw(ordinal));
    plan.back().at = *at;
    const ClassSpec& c = spec.classes[plan.back().cls];
    const uint32_t turns = talks(c) ? drawer.turns(ordinal, c) : 1;
    if (turns > 1)
      plan.back().turn = std::make_unique<PlannedTurn>(PlannedTurn{ordinal, 0, {}, Nanos(0), plan.back().prompt});
    for (uint32_t turn = 1; turn < turns && !enough(); ++turn)
      plan.push_back(drawer.follow_up(ordinal, turn, plan.size() - 1, plan.back()));
  }
  return plan;
}

Result<void> plan_drawn(const WorkloadSpec& spec, const ScheduleOptions& o, Plan& plan) {
  TRY(check_lengths(spec, o.max_model_len));
  plan.documents = plan_documents(spec);
  const Drawer drawer(spec, o.seed, plan.documents);
  if (spec.arrivals == ArrivalKind::kClosed) {
    TRY(check_count(static_cast<double>(*o.requests)));
    plan.requests = TRY(plan_times(spec, o, drawer, [] { return std::optional(Nanos(0)); }));
    return {};
  }
  auto arrivals = TRY(Arrivals::create(spec, o.seed, o.duration, o.requests));
  TRY(check_count(o.requests ? static_cast<double>(*o.requests)
                             : arrivals.expected_by(o.duration.value_or(limits::kMaxWorkloadTime))));
  plan.requests = TRY(plan_times(spec, o, drawer, [&arrivals] { return arrivals.next(); }));
  return {};
}

}  // namespace

Result<void> check_count(double requests) {
  if (requests <= static_cast<double>(limits::kMaxScheduledRequests))
    return {};
  return fail(ErrorCode::kUsage,
              fmt::format("the schedule would hold about {:.0f} requests, the limit is {}: shorten it "
                          "or lower the rate",
                          requests, limits::kMaxScheduledRequests));
}

Result<Plan> make_plan(const WorkloadSpec& spec, const ScheduleOptions& o, const Tokenizer* tokenizer) {
  TRY(check_options(spec, o));
  Plan plan;
  if (spec.arrivals == ArrivalKind::kTrace || (spec.trace && spec.trace->requests_only))
    TRY(plan_trace(spec, o, tokenizer, plan));
  else
    TRY(plan_drawn(spec, o, plan));
  return plan;
}

}  // namespace goodput
