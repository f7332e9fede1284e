// Rows of a trace become requests of the first class. What a trace does not say is not invented: without hash ids or
// texts prompts share nothing, unless an assumed share asks for it by name.
#include <algorithm>
#include <cmath>
#include <unordered_map>

#include <fmt/format.h>

#include "base/limits.h"
#include "base/log.h"
#include "base/text.h"
#include "workload/arrivals.h"
#include "workload/length.h"
#include "workload/plan.h"
#include "workload/trace.h"

namespace goodput {
namespace {

// Rows per second over equal spans of time; the spans double when there would be too many, so memory is constant.
class RateWatch {
 public:
  RateWatch(Nanos span, size_t most) : span_(span), most_(most) {}
  void add(Nanos at) {
    while (static_cast<size_t>(at / span_) >= most_)
      widen();
    const auto i = static_cast<size_t>(at / span_);
    if (i >= counts_.size())
      counts_.resize(i + 1);
    ++counts_[i];
    ++total_;
  }
  uint64_t total() const { return total_; }
  Nanos span() const { return span_; }
  std::vector<double> rates() const {
    std::vector<double> out;
    for (const uint64_t n : counts_)
      out.push_back(static_cast<double>(n) / to_seconds(span_));
    return out;
  }

 private:
  void widen() {
    for (size_t i = 0; i < counts_.size(); ++i)
      if (i % 2 == 0)
        counts_[i / 2] = counts_[i] + (i + 1 < counts_.size() ? counts_[i + 1] : 0);
    counts_.resize((counts_.size() + 1) / 2);
    span_ = span_ * 2;
  }

  Nanos span_;
  size_t most_;
  std::vector<uint64_t> counts_;
  uint64_t total_ = 0;
};

Tokens scaled(Tokens n, double factor, Tokens least, Tokens most) {
  const double wanted = std::min(std::round(n.count() * factor), static_cast<double>(limits::kMaxModelLen.count()));
  Tokens out = std::max(Tokens(static_cast<int64_t>(wanted)), least);
  return most > Tokens(0) ? std::max(std::min(out, most), least) : out;
}

// A key for the words of a block; the prompts' own seed is mixed in where they are written.
uint64_t block_key(uint64_t id) { return mix64(id, fnv1a("block")); }

class TracePlanner {
 public:
  TracePlanner(const WorkloadSpec& spec, const ScheduleOptions& o, const Tokenizer* tokenizer, Plan& plan)
      : spec_(spec), t_(*spec.trace), class_(spec.classes[0]), o_(o), tokenizer_(tokenizer), plan_(plan) {}

  Result<void> prepare() {
    if (spec_.arrivals != ArrivalKind::kTrace && spec_.arrivals != ArrivalKind::kClosed)
      arrivals_ = TRY(Arrivals::create(spec_, o_.seed, o_.duration, o_.requests));
    return {};
  }

  // The first problem ends the work; the reader reads on, for the summary.
  void add(const TraceRow& row) {
    ++summary_.rows;
    if (row.at) {
      last_ = *row.at;
      file_rate_.add(*row.at);
    }
    if (problem_ || full_ || !in_window(row))
      return;
    if (row.at)
      window_rate_.add(*row.at - t_.from);
    if (o_.requests && plan_.requests.size() >= *o_.requests) {
      return;
    }
    if (auto done = take(row); !done)
      problem_ = std::move(done.error());
  }

  Result<TraceSummary> finish(const TraceFacts& facts) {
    if (problem_)
      return tl::unexpected(std::move(*problem_));
    summary_.format = facts.format;
    summary_.moved = facts.moved;
    summary_.skipped = facts.skipped;
    summary_.used = plan_.requests.size();
    summary_.span = last_;
    if (plan_.requests.empty())
      return fail(ErrorCode::kUsage,
                  fmt::format("no request in the window: the trace has {} rows over {:.3f} s", summary_.rows,
                              to_seconds(last_)),
                  t_.file);
    add_rates();
    add_notes();
    return std::move(summary_);
  }

 private:
  bool in_window(const TraceRow& row) const {
    if (!row.at)
      return true;
    return *row.at >= t_.from && (t_.length == Nanos(0) || *row.at < t_.from + t_.length);
  }

  Error at_row(const TraceRow& row, std::string message) const {
    return {ErrorCode::kUsage, fmt::format("row {} {}", summary_.rows, message),
            fmt::format("{}:{}", t_.file, row.line)};
  }

  // When the row's request comes; nullopt: after the end.
  Result<std::optional<Nanos>> time_of(const TraceRow& row, const Planned* parent) {
    if (spec_.arrivals == ArrivalKind::kTrace) {
      if (!row.at)
        return tl::unexpected(at_row(row,
                                     "has no time: set requests_only = true and `arrivals` to how requests shall "
                                     "come, for example \"poisson\""));
      const Nanos since = *row.at - t_.from;
      return t_.rate_factor == 1 ? since : arrival_time(to_seconds(since) / t_.rate_factor);  // 1: to the nanosecond
    }
    if (spec_.arrivals == ArrivalKind::kClosed)
      return Nanos(0);
    // A conversation arrives once. Turns that a trace recorded among others' arrive each, but not before the answer.
    if (parent && !row.at)
      return parent->at;
    return arrivals_->next();
  }

  Result<void> take(const TraceRow& row) {
    const auto link = row.parent ? by_id_.find(*row.parent) : by_id_.end();
    const bool follows = link != by_id_.end();
    if (row.parent && dropped_parent_ && *row.parent == *dropped_parent_) {
      ++summary_.cut_turns;
      dropped_parent_ = row.id;
      return {};
    }
    if (row.prompt == Tokens(0) || row.output == Tokens(0)) {
      ++summary_.failed;
      return {};
    }
    Planned p;
    const Planned* parent = follows ? &plan_.requests[link->second] : nullptr;
    Random random = stream(o_.seed, plan_.requests.size(), "trace");
    TRY(set_lengths(row, parent, random, p));
    if (p.prompt + p.output > o_.max_model_len) {
      // As every tool does with data sets of conversations; of a trace of lengths a silent gap would change the load.
      if (row.answer) {
        ++summary_.cut_turns;
        dropped_parent_ = row.id;
        return {};
      }
      return tl::unexpected(
          at_row(row, fmt::format("asks for {} + {} tokens, more than max_model_len {}: lower length_factor, or clip "
                                  "with max_prompt and max_output",
                                  p.prompt.count(), p.output.count(), o_.max_model_len.count())));
    }
    const auto at = TRY(time_of(row, parent));
    if (!at || (o_.duration && *at >= *o_.duration)) {
      full_ = true;
      return {};
    }
    if (*at > limits::kMaxWorkloadTime)
      return tl::unexpected(at_row(row, fmt::format("would arrive after {}: raise rate_factor or narrow the window",
                                                    format_duration(limits::kMaxWorkloadTime))));
    p.at = *at;
    if (row.id)
      link_turn(row, parent, follows ? link->second : 0, random, p);
    plan_.requests.push_back(std::move(p));
    return check_count(static_cast<double>(plan_.requests.size()));
  }

  Result<void> set_lengths(const TraceRow& row, const Planned* parent, Random& random, Planned& p) {
    if (row.output)
      p.output = *row.output;
    if (row.text)
      return set_text(row, parent, random, p);
    if (!row.output)
      p.output = draw(class_.output, random);
    else
      p.output = scaled(p.output, t_.length_factor, Tokens(1), t_.max_output);
    if (row.blocks.empty())
      set_plain(row, p);
    else
      set_blocks(row, p);
    return {};
  }

  // A prompt of a length. An assumed share is one stretch for all prompts.
  void set_plain(const TraceRow& row, Planned& p) {
    p.prompt = scaled(*row.prompt, t_.length_factor, Tokens(2), t_.max_prompt);  // BOS and a word
    const Tokens common(static_cast<int64_t>(std::floor(p.prompt.count() * t_.assumed_prefix_share)));
    if (common > Tokens(0))
      p.words = std::make_unique<PlannedWords>(PlannedWords{{{block_key(fnv1a("assumed")), common}}, {}, {}, {}, {}});
  }

  // Scaled by the block, so that equal ids still stand for equal tokens at equal positions.
  void set_blocks(const TraceRow& row, Planned& p) {
    summary_.has_prefixes = true;
    const int64_t from = row.block.count(), count = std::ssize(row.blocks), length = row.prompt->count();
    const int64_t block = scaled(row.block, t_.length_factor, Tokens(1), Tokens(0)).count();
    const int64_t whole = std::min(count, length / from), rest = length - whole * from;
    const int64_t scaled_rest =
        rest == 0 ? 0 : std::clamp<int64_t>(std::llround(static_cast<double>(rest) * t_.length_factor), 1, block);
    p.prompt = Tokens(std::clamp<int64_t>(whole * block + scaled_rest, 2, limits::kMaxModelLen.count()));
    if (t_.max_prompt > Tokens(0))
      p.prompt = std::max(Tokens(2), std::min(p.prompt, t_.max_prompt));
    p.words = std::make_unique<PlannedWords>();
    Tokens left = p.prompt;
    for (const uint64_t id : row.blocks) {
      const Tokens n = std::min(left, Tokens(block));
      if (n > Tokens(0))
        p.words->stretches.push_back({block_key(id), n});
      left -= n;
    }
  }

  // Text as it is. Of a later turn the prompt is all that was said before and this.
  Result<void> set_text(const TraceRow& row, const Planned* parent, Random& random, Planned& p) {
    summary_.has_prefixes = true;
    p.words = std::make_unique<PlannedWords>();
    p.words->text = row.text;
    // So that no other run's prompts are in the server's cache; a later turn follows what is salted already.
    if (o_.salt != 0 && !parent)
      p.words->text->insert(0, fmt::format("{:016x} ", mix64(o_.seed, o_.salt)));
    p.words->answer = row.answer;
    if (tokenizer_) {
      const bool first = parent == nullptr;
      p.words->tokens = tokenizer_->tokenize(*p.words->text, first, false);
      if (row.answer)
        p.words->answered = tokenizer_->tokenize(*row.answer, false, false);
      const auto known = [](size_t n) {
        return std::min<int64_t>(static_cast<int64_t>(n), limits::kMaxModelLen.count());
      };
      p.prompt = Tokens(known(p.words->tokens.size()));
      if (parent)
        p.prompt += parent->prompt + parent->output;
      if (!row.output && row.answer)
        p.output = Tokens(std::max<int64_t>(1, known(p.words->answered.size())));
    }
    if (p.output == Tokens(0))
      p.output = draw(class_.output, random);
    if (t_.max_output > Tokens(0))
      p.output = std::min(p.output, t_.max_output);
    return {};
  }

  void link_turn(const TraceRow& row, const Planned* parent, uint64_t parent_index, Random& random, Planned& p) {
    const uint64_t index = plan_.requests.size();
    by_id_[*row.id] = index;
    if (!parent) {
      p.turn = std::make_unique<PlannedTurn>(PlannedTurn{sessions_++, 0, {}, Nanos(0), p.prompt});
      return;
    }
    const Tokens before = p.prompt > Tokens(0) ? parent->prompt + parent->output : Tokens(0);
    p.turn = std::make_unique<PlannedTurn>(PlannedTurn{parent->turn->session, parent->turn->turn + 1, parent_index,
                                                       draw(class_.think_time, random),
                                                       std::max(Tokens(0), p.prompt - before)});
  }

  void add_rates() {
    if (window_rate_.total() < 2 || last_ == Nanos(0))
      return;
    const Nanos length = t_.length > Nanos(0) ? std::min(t_.length, last_ - t_.from) : last_ - t_.from;
    if (length <= Nanos(0))
      return;
    summary_.rate = static_cast<double>(window_rate_.total()) / to_seconds(length);
    summary_.profile = window_rate_.rates();
    summary_.profile_step = window_rate_.span();
    std::vector<double> rates = file_rate_.rates();
    if (rates.size() > 1)
      rates.pop_back();  // not a whole one
    if (last_ >= file_rate_.span())
      summary_.peak_rate = *std::ranges::max_element(rates);
  }

  void note(std::string text, bool warn = false) {
    if (warn)
      log::warn(fmt::format("{}: {}", t_.file, text));
    summary_.notes.push_back(std::move(text));
  }

  void add_notes() {
    if (summary_.failed > 0)
      note(fmt::format("{} rows without prompt or output tokens were skipped", summary_.failed), true);
    if (summary_.skipped > 0)
      note(fmt::format("{} conversations without a question and its answer were skipped", summary_.skipped));
    if (summary_.cut_turns > 0)
      note(fmt::format("{} turns that do not fit max_model_len {} were left out", summary_.cut_turns,
                       o_.max_model_len.count()));
    if (summary_.rate && summary_.peak_rate && *summary_.rate < 0.1 * *summary_.peak_rate)
      note(
          fmt::format("the window has {:.4g} requests/s, under a tenth of the {:.4g} of the trace's fullest {}: choose "
                      "it with from and length",
                      *summary_.rate, *summary_.peak_rate, format_duration(file_rate_.span())),
          true);
    if (!summary_.has_prefixes)
      note(t_.assumed_prefix_share > 0
               ? fmt::format("{:.0f} % of every prompt are assumed to be the same for all; the trace cannot tell",
                             100 * t_.assumed_prefix_share)
               : "the trace has lengths only: prompts share nothing, whatever they shared in production");
  }

  const WorkloadSpec& spec_;
  const TraceSpec& t_;
  const ClassSpec& class_;
  const ScheduleOptions& o_;
  const Tokenizer* tokenizer_;
  Plan& plan_;
  std::optional<Arrivals> arrivals_;
  std::optional<Error> problem_;
  bool full_ = false;
  Nanos last_;
  std::unordered_map<int64_t, uint64_t> by_id_;  // of the window's rows: their requests
  std::optional<int64_t> dropped_parent_;        // a turn that was left out: so are the ones after it
  uint64_t sessions_ = 0;
  TraceSummary summary_;
  RateWatch file_rate_{seconds(180), 1 << 16}, window_rate_{seconds(1), 64};
};

}  // namespace

Result<void> plan_trace(const WorkloadSpec& spec, const ScheduleOptions& o, const Tokenizer* tokenizer, Plan& plan) {
  TracePlanner planner(spec, o, tokenizer, plan);
  TRY(planner.prepare());
  const TraceFacts facts = TRY(read_trace(*spec.trace, [&](const TraceRow& row) { planner.add(row); }));
  plan.trace = TRY(planner.finish(facts));
  return {};
}

}  // namespace goodput
