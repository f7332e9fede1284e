#include "load/record_builder.h"

#include <algorithm>

#include "base/text.h"

namespace goodput {
namespace {

// An old Ollama counts only what it computed of a prompt. A count this small against what was sent means a cached
// prompt; a prompt that was cut to the model's window is counted with at least this many tokens.
constexpr int64_t kLeastWindow = 1024;
constexpr int64_t kMuchLess = 8;

TimePoint best(const ReadStamp& s) { return s.kernel.value_or(s.user); }

}  // namespace

void RecordBuilder::begin(const Protocol& protocol, const Capture& capture, Tokens asked_prompt,
                          RequestRecord& record) {
  protocol_ = &protocol;
  capture_ = &capture;
  record_ = &record;
  asked_prompt_ = asked_prompt;
  end_seen_ = error_object_ = not_admitted_ = malformed_ = hides_tokens_ = false;
  every_event_counted_ = true;
  last_read_ = UINT32_MAX;
  counted_ = 0;
  reasoning_ = Tokens(0);
  durations_ = ServerDurations{};
  message_.clear();
  record.http_status = capture.status;
  record.chunks = static_cast<uint32_t>(capture.marks.size());
  if (capture.any_bytes && capture.framing == Framing::kWhole && capture.status / 100 == 2)
    record.streamed = false;
  if (record.streamed && !capture.marks.empty())
    record.first_chunk = best(capture.marks.front().stamp);
  if (!record.streamed && capture.first_body.user != TimePoint())
    record.first_chunk = best(capture.first_body);
}

void RecordBuilder::malformed(std::string why) {
  malformed_ = true;
  if (message_.empty())
    message_ = std::move(why);
}

void RecordBuilder::add(const EventFacts& facts, const ReadStamp& stamp) {
  if (facts.error)
    take_error(*facts.error);
  if (facts.finish)
    record_->finish = *facts.finish;
  end_seen_ = end_seen_ || facts.end;
  take_counts(facts);
  take_prompt(facts);
  if (facts.channel && record_->streamed) {
    add_token_event(facts, stamp);
  } else if (facts.running) {
    counted_ = facts.running->count();
  }
  if (facts.server)
    record_->server = facts.server;
  for (auto member : {&ServerDurations::load, &ServerDurations::prefill, &ServerDurations::decode})
    if (facts.durations.*member)
      durations_.*member = facts.durations.*member;
}

void RecordBuilder::take_error(const EventError& error) {
  error_object_ = true;
  // What had begun to answer had been admitted.
  not_admitted_ = error.not_admitted && record_->events.empty();
  message_ = error.message;
}

// The last count seen stands; a running one is the whole answer's where there is no stream.
void RecordBuilder::take_counts(const EventFacts& facts) {
  if (const auto n = facts.output ? facts.output : facts.running) {
    record_->output_tokens = n;
    const bool whole = facts.output || !record_->streamed;
    record_->token_source = whole ? TokenSource::kUsage : TokenSource::kRunningUsage;
  }
  if (facts.reasoning)
    reasoning_ = *facts.reasoning;
  hides_tokens_ = hides_tokens_ || facts.hides_tokens;
}

void RecordBuilder::take_prompt(const EventFacts& facts) {
  if (facts.cached)
    record_->cached_tokens = facts.cached;
  if (!facts.prompt)
    return;
  record_->prompt_tokens = facts.prompt;
  const int64_t computed = facts.prompt->count(), asked = asked_prompt_.count();
  if (facts.prompt_may_omit_cached && computed < kLeastWindow && computed * kMuchLess < asked) {
    record_->prompt_tokens = asked_prompt_;
    record_->cached_tokens = asked_prompt_ - *facts.prompt;
  }
}

void RecordBuilder::add_token_event(const EventFacts& facts, const ReadStamp& stamp) {
  TokenEvent event;
  event.user = stamp.user - record_->scheduled;
  if (stamp.kernel)
    event.kernel = *stamp.kernel - record_->scheduled;
  event.channel = *facts.channel;
  const int64_t before = counted_;
  if (facts.running) {
    counted_ = facts.running->count();
  } else if (facts.event_tokens) {
    counted_ += facts.event_tokens->count();
  } else {
    every_event_counted_ = false;
  }
  event.tokens = static_cast<uint16_t>(std::clamp<int64_t>(counted_ - before, 0, UINT16_MAX));
  if (!record_->events.empty() && last_read_ == stamp.read)
    event.coalesced = record_->events.back().coalesced = true;
  last_read_ = stamp.read;
  if (record_->events.empty())
    record_->first_token = best(stamp);
  if (event.channel != Channel::kReasoning && !record_->first_answer)
    record_->first_answer = best(stamp);
  record_->events.push_back(event);
}

void RecordBuilder::finish(Ending ending) {
  count_tokens();
  decide(ending);
  stamp_end();
  place_server_times();
}

void RecordBuilder::count_tokens() {
  auto& events = record_->events;
  const bool shown =
      std::any_of(events.begin(), events.end(), [](const TokenEvent& e) { return e.channel == Channel::kReasoning; });
  if (hides_tokens_) {
    record_->hidden_tokens.reset();
  } else if (!shown) {
    record_->hidden_tokens = reasoning_;
  }
  if (!record_->output_tokens && !events.empty() && every_event_counted_) {
    record_->output_tokens = Tokens(std::min<int64_t>(counted_, INT32_MAX));
    record_->token_source = TokenSource::kRunningUsage;
  }
  if (!record_->output_tokens && !events.empty()) {
    record_->output_tokens = Tokens(events.size());
    record_->token_source = TokenSource::kChunks;
    for (TokenEvent& e : events)
      e.tokens = 0;
    return;
  }
  if (every_event_counted_)
    return;
  const bool one_each =
      record_->output_tokens && record_->output_tokens->count() == static_cast<int64_t>(events.size());
  for (TokenEvent& e : events)
    e.tokens = one_each ? 1 : 0;
}

void RecordBuilder::fail(Outcome outcome, ErrorKind kind, std::string_view why) {
  record_->outcome = outcome;
  record_->error = kind;
  if (message_.empty())
    message_ = why;
}

bool RecordBuilder::terminal() const { return capture_->done_sentinel || end_seen_; }

void RecordBuilder::decide(Ending ending) {
  const bool whole = terminal() && !error_object_ && !malformed_;
  switch (ending) {
    case Ending::kConnectFailed:
      return fail(Outcome::kError, ErrorKind::kConnect, "cannot connect");
    case Ending::kNotSent:
      return fail(Outcome::kNotSent, ErrorKind::kNone, "not sent: this side is out of descriptors or ports");
    case Ending::kTimeout:
      if (whole)
        break;  // the answer was complete: only the connection stayed open
      return fail(Outcome::kTimeout, ErrorKind::kNone, "no end within the request's time limit");
    case Ending::kRunEnded:
      if (whole)
        break;
      return fail(Outcome::kUnfinished, ErrorKind::kNone, "still open when the run ended");
    case Ending::kMalformed:
      return fail(Outcome::kError, ErrorKind::kMalformed, "the answer is not HTTP");
    case Ending::kLimit:
      return fail(Outcome::kError, ErrorKind::kLimit, "the answer is beyond a bound of this client");
    default:
      break;
  }
  if (capture_->status == 0)
    return fail(Outcome::kReset, ErrorKind::kNone, "the connection closed before an answer");
  if (capture_->status / 100 != 2)
    return decide_http_status();
  if (error_object_)
    return fail(not_admitted_ ? Outcome::kRejected : Outcome::kError, ErrorKind::kErrorObject, "");
  if (malformed_)
    return fail(Outcome::kError, ErrorKind::kMalformed, "");
  decide_success(ending);
}

void RecordBuilder::decide_http_status() {
  const int status = capture_->status;
  const bool rejected = status == 429 || status == 503 || status == 529 || not_admitted_;
  const std::string told = error_object_ ? message_ : std::string(trim(std::string_view(capture_->raw).substr(0, 200)));
  message_ = "HTTP " + std::to_string(status) + (told.empty() ? "" : ": " + told);
  if (!capture_->retry_after.empty())
    message_ += " (Retry-After: " + capture_->retry_after + ")";
  fail(rejected ? Outcome::kRejected : Outcome::kError, ErrorKind::kHttpStatus, "");
}

void RecordBuilder::decide_success(Ending ending) {
  if (ending == Ending::kReset && !terminal()) {
    return fail(Outcome::kReset, ErrorKind::kNone, "the connection was reset in the middle of the answer");
  }
  const bool whole_body = !record_->streamed && ending == Ending::kComplete;
  const bool nothing = capture_->marks.empty() && trim(capture_->raw).empty() && ending == Ending::kComplete;
  if (!terminal() && !whole_body && !nothing) {
    return fail(Outcome::kError, ErrorKind::kTruncated,
                "the stream ended without " + std::string(protocol_->ends_with));
  }
  if (record_->finish == FinishReason::kError || record_->finish == FinishReason::kAbort) {
    return fail(Outcome::kError, ErrorKind::kErrorObject, "the server ended it with finish_reason error or abort");
  }
  const bool told_tokens = record_->output_tokens && record_->output_tokens->count() > 0;
  if (record_->events.empty() && !told_tokens)
    return fail(Outcome::kError, ErrorKind::kEmpty, "an answer without any token");
  record_->outcome = Outcome::kOk;
  record_->error = ErrorKind::kNone;
}

void RecordBuilder::stamp_end() {
  if (record_->outcome != Outcome::kOk) {
    if (record_->outcome != Outcome::kNotSent)
      record_->done = record_->closed;  // when the failure was known
    return;
  }
  if (!record_->streamed) {
    record_->done = best(capture_->last);
  } else if (record_->events.empty()) {
    record_->done = record_->closed;
  } else {
    const TokenEvent& last = record_->events.back();
    record_->done = record_->scheduled + last.kernel.value_or(last.user);
  }
}

// A server that tells durations only: they are put where the client saw the first token (without a stream: the end),
// so that they lie on our timeline, late by the way back. Their lengths are the server's own. Time that it says it
// spent loading the model stands as queueing: that is what it was for the request.
void RecordBuilder::place_server_times() {
  const ServerDurations& d = durations_;
  if (record_->server || record_->outcome != Outcome::kOk || (!d.load && !d.prefill && !d.decode))
    return;
  ServerTimes t;
  if (record_->first_token) {
    t.first_token = record_->first_token;
    if (d.decode)
      t.last_token = *t.first_token + *d.decode;
  } else if (record_->done && d.decode) {
    t.last_token = record_->done;
    t.first_token = *t.last_token - *d.decode;
  } else {
    return;
  }
  if (d.prefill)
    t.scheduled = *t.first_token - *d.prefill;
  if (d.prefill && d.load)
    t.queued = *t.scheduled - *d.load;
  record_->server = t;
}

}  // namespace goodput
