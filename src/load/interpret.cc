#include "load/interpret.h"

#include <simdjson.h>

#include <algorithm>
#include <array>

#include "base/limits.h"
#include "base/text.h"

namespace goodput {
namespace {

using simdjson::dom::array;
using simdjson::dom::element;
using simdjson::dom::object;

TimePoint best(const ReadStamp& s) { return s.kernel.value_or(s.user); }

std::string_view text_at(const object& o, std::string_view key) {
  std::string_view text;
  return o[key].get(text) == simdjson::SUCCESS ? text : std::string_view();
}

std::optional<int64_t> number_at(const object& o, std::string_view key) {
  int64_t value = 0;
  if (o[key].get(value) != simdjson::SUCCESS)
    return std::nullopt;
  return value;
}

// A count of tokens that can be believed.
std::optional<Tokens> tokens_at(const object& o, std::string_view key) {
  const auto n = number_at(o, key);
  if (!n || *n < 0 || *n > INT32_MAX)
    return std::nullopt;
  return Tokens(*n);
}

bool calls_a_tool(const object& part) {
  array calls;
  if (part["tool_calls"].get(calls) == simdjson::SUCCESS) {
    for (const element call : calls) {
      object function;
      if (call["function"].get(function) != simdjson::SUCCESS)
        continue;
      if (!text_at(function, "name").empty() || !text_at(function, "arguments").empty())
        return true;
    }
  }
  object legacy;
  return part["function_call"].get(legacy) == simdjson::SUCCESS &&
         (!text_at(legacy, "name").empty() || !text_at(legacy, "arguments").empty());
}

// On which channel a choice carries generated text; nullopt: it carries none (role, finish, progress).
std::optional<Channel> channel_of(const object& choice) {
  object part;
  if (choice["delta"].get(part) != simdjson::SUCCESS && choice["message"].get(part) != simdjson::SUCCESS)
    part = choice;
  if (!text_at(part, "content").empty() || !text_at(part, "text").empty())
    return Channel::kContent;
  array pieces;
  if (part["content"].get(pieces) == simdjson::SUCCESS && pieces.size() > 0)
    return Channel::kContent;
  if (!text_at(part, "refusal").empty())
    return Channel::kRefusal;
  if (calls_a_tool(part))
    return Channel::kToolCall;
  if (!text_at(part, "reasoning_content").empty() || !text_at(part, "reasoning").empty())
    return Channel::kReasoning;
  return std::nullopt;
}

FinishReason finish_reason(std::string_view word) {
  if (word == "length" || word == "max_tokens")
    return FinishReason::kLength;
  if (word == "tool_calls" || word == "function_call")
    return FinishReason::kToolCalls;
  if (word == "abort" || word == "cancelled")
    return FinishReason::kAbort;
  if (word == "error")
    return FinishReason::kError;
  return FinishReason::kStop;
}

// Whether an error object says that the request was never admitted: the server is full, or refused it on sight.
bool says_not_admitted(std::string_view type, std::string_view message, std::optional<int64_t> code) {
  if (code == 429 || code == 503)
    return true;
  static constexpr std::string_view kTypes[] = {"validation",  "overloaded",          "overloaded_error",
                                                "queue_full",  "rate_limit_exceeded", "rate_limit_error",
                                                "server_busy", "unavailable_error",   "service_unavailable"};
  if (std::find(std::begin(kTypes), std::end(kTypes), type) != std::end(kTypes))
    return true;
  std::string low(message.substr(0, 256));
  for (char& c : low)
    c = c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  static constexpr std::string_view kPhrases[] = {"queue is full", "queue full",   "overloaded", "too many requests",
                                                  "rate limit",    "not admitted", "server busy"};
  return std::any_of(std::begin(kPhrases), std::end(kPhrases),
                     [&](std::string_view p) { return low.find(p) != low.npos; });
}

std::optional<TimePoint> time_at(const object& o, std::string_view key) {
  const auto ns = number_at(o, key);
  return ns ? std::optional(TimePoint(Nanos(*ns))) : std::nullopt;
}

ServerTimes server_times(const object& o) {
  ServerTimes t;
  t.arrived = time_at(o, "arrived_ns");
  t.queued = time_at(o, "queued_ns");
  t.scheduled = time_at(o, "scheduled_ns");
  t.first_token = time_at(o, "first_token_ns");
  t.last_token = time_at(o, "last_token_ns");
  t.preempted_in_prefill =
      static_cast<int>(std::clamp<int64_t>(number_at(o, "preempted_in_prefill").value_or(0), 0, INT32_MAX));
  t.preempted_in_decode =
      static_cast<int>(std::clamp<int64_t>(number_at(o, "preempted_in_decode").value_or(0), 0, INT32_MAX));
  return t;
}

}  // namespace

struct Interpreter::State {
  simdjson::dom::parser parser;
  Capture* capture = nullptr;
  RequestRecord* record = nullptr;
  Ending ending = Ending::kComplete;
  size_t next = 0;
  bool finish_seen = false, error_object = false, not_admitted = false, malformed = false;
  bool usage_is_final = false, every_event_counted = true;
  uint32_t last_read = UINT32_MAX;
  int64_t counted = 0;  // completion tokens of the last running usage
  Tokens reasoning{0};  // as the last usage says
  std::string message;

  void read_events(size_t limit);
  void read_event(std::string_view json, const ReadStamp& stamp);
  bool read_error(const object& o);
  void read_usage(const object& o, bool is_final);
  void add_token_event(Channel channel, const ReadStamp& stamp, std::optional<Tokens> running);
  void read_timings(const object& o);
  void read_raw();
  void count_tokens();
  void decide();
  void decide_http_status();
  void decide_success();
  void stamp_end();
  void fail(Outcome outcome, ErrorKind kind, std::string_view why);
};

Interpreter::Interpreter() : state_(std::make_unique<State>()) {
  const auto allocated = state_->parser.allocate(64 * 1024, limits::kMaxJsonDepth);
  static_cast<void>(allocated);  // without the memory, parse() fails and says so
}
Interpreter::~Interpreter() = default;

const std::string& Interpreter::message() const { return state_->message; }

void Interpreter::begin(Capture& capture, Ending ending, RequestRecord& record) {
  State& s = *state_;
  s.capture = &capture;
  s.record = &record;
  s.ending = ending;
  s.next = 0;
  s.finish_seen = s.error_object = s.not_admitted = s.malformed = s.usage_is_final = false;
  s.every_event_counted = true;
  s.last_read = UINT32_MAX;
  s.counted = 0;
  s.reasoning = Tokens(0);
  s.message.clear();
  capture.bytes.resize(capture.bytes.size() +
                       simdjson::SIMDJSON_PADDING);  // what simdjson may read beyond the last event
  record.http_status = capture.status;
  record.chunks = static_cast<uint32_t>(capture.marks.size());
  if (capture.any_bytes && !capture.event_stream && capture.status / 100 == 2)
    record.streamed = false;
  if (record.streamed && !capture.marks.empty())
    record.first_chunk = best(capture.marks.front().stamp);
  if (!record.streamed && capture.first_body.user != TimePoint())
    record.first_chunk = best(capture.first_body);
}

bool Interpreter::advance(size_t events) {
  State& s = *state_;
  s.read_events(events);
  if (s.next < s.capture->marks.size())
    return false;
  s.read_raw();
  s.count_tokens();
  s.decide();
  s.stamp_end();
  return true;
}

void Interpreter::State::read_events(size_t limit) {
  for (size_t i = 0; i < limit && next < capture->marks.size(); ++i, ++next) {
    const Capture::Mark& mark = capture->marks[next];
    read_event(std::string_view(capture->bytes).substr(mark.offset, mark.length), mark.stamp);
  }
}

void Interpreter::State::read_event(std::string_view json, const ReadStamp& stamp) {
  if (trim(json).empty())
    return;
  object o;
  if (parser.parse(json.data(), json.size(), false).get(o) != simdjson::SUCCESS) {
    malformed = true;
    if (message.empty())
      message = "not JSON: " + std::string(json.substr(0, 120));
    return;
  }
  if (read_error(o))
    return;
  std::optional<Channel> channel;
  bool finished_here = false;
  array choices;
  const bool has_choices = o["choices"].get(choices) == simdjson::SUCCESS && choices.size() > 0;
  if (has_choices) {
    for (const element e : choices) {
      object choice;
      if (e.get(choice) != simdjson::SUCCESS)
        continue;
      const auto carried = channel_of(choice);
      if (carried && (!channel || *channel == Channel::kReasoning))
        channel = carried;
      if (const std::string_view reason = text_at(choice, "finish_reason"); !reason.empty()) {
        record->finish = finish_reason(reason);
        finish_seen = finished_here = true;
      }
    }
  }
  object usage;
  std::optional<Tokens> running;
  if (o["usage"].get(usage) == simdjson::SUCCESS) {
    read_usage(usage, !has_choices || finished_here || !record->streamed);
    if (has_choices)
      running = tokens_at(usage, "completion_tokens");
  }
  if (channel)
    add_token_event(*channel, stamp, running);
  if (!channel && running)
    counted = running->count();
  read_timings(o);
  object times;
  if (o["goodput"].get(times) == simdjson::SUCCESS)
    record->server = server_times(times);
}

// {"error": {…}}, {"error": "…"} and the older {"object": "error", "message": …}.
bool Interpreter::State::read_error(const object& o) {
  element error;
  object details;
  std::string_view text, type;
  if (o["error"].get(error) == simdjson::SUCCESS && !error.is_null()) {
    if (error.get(details) == simdjson::SUCCESS) {
      text = text_at(details, "message");
      type = text_at(details, "type");
    } else {
      if (error.get(text) != simdjson::SUCCESS)
        text = {};
      type = text_at(o, "error_type");
      details = o;
    }
  } else if (text_at(o, "object") == "error") {
    text = text_at(o, "message");
    type = text_at(o, "type");
    details = o;
  } else {
    return false;
  }
  error_object = true;
  // What had begun to answer had been admitted.
  not_admitted = record->events.empty() && says_not_admitted(type, text, number_at(details, "code"));
  message = std::string(text.substr(0, 300));
  if (message.empty())
    message = type.empty() ? "an error object without a message" : std::string(type.substr(0, 100));
  // A prompt beyond the context: the numbers that say what to change.
  const auto prompt = number_at(details, "n_prompt_tokens"), context = number_at(details, "n_ctx");
  if (prompt && context) {
    message += " (prompt " + std::to_string(*prompt) + " tokens, context " + std::to_string(*context) + ")";
  }
  return true;
}

void Interpreter::State::read_usage(const object& usage, bool is_final) {
  if (const auto n = tokens_at(usage, "prompt_tokens"))
    record->prompt_tokens = n;
  if (const auto n = tokens_at(usage, "completion_tokens")) {
    record->output_tokens = n;
    usage_is_final = is_final;
    record->token_source = is_final ? TokenSource::kUsage : TokenSource::kRunningUsage;
  }
  object details;
  if (usage["completion_tokens_details"].get(details) == simdjson::SUCCESS) {
    reasoning = tokens_at(details, "reasoning_tokens").value_or(Tokens(0));
  }
  if (usage["prompt_tokens_details"].get(details) == simdjson::SUCCESS) {
    if (const auto n = tokens_at(details, "cached_tokens"))
      record->cached_tokens = n;
  }
}

// llama-server's own counters, where its usage does not tell.
void Interpreter::State::read_timings(const object& o) {
  object timings;
  if (o["timings"].get(timings) != simdjson::SUCCESS)
    return;
  const auto cached = tokens_at(timings, "cache_n"), computed = tokens_at(timings, "prompt_n");
  if (!record->cached_tokens)
    record->cached_tokens = cached;
  if (!record->prompt_tokens && computed)
    record->prompt_tokens = *computed + cached.value_or(Tokens(0));
}

void Interpreter::State::add_token_event(Channel channel, const ReadStamp& stamp, std::optional<Tokens> running) {
  if (!record->streamed)
    return;
  TokenEvent event;
  event.user = stamp.user - record->scheduled;
  if (stamp.kernel)
    event.kernel = *stamp.kernel - record->scheduled;
  event.channel = channel;
  if (running) {
    event.tokens = static_cast<uint16_t>(std::clamp<int64_t>(running->count() - counted, 0, UINT16_MAX));
    counted = running->count();
  } else {
    every_event_counted = false;
  }
  if (!record->events.empty() && last_read == stamp.read)
    event.coalesced = record->events.back().coalesced = true;
  last_read = stamp.read;
  if (record->events.empty())
    record->first_token = best(stamp);
  if (channel != Channel::kReasoning && !record->first_answer)
    record->first_answer = best(stamp);
  record->events.push_back(event);
}

// Case 20: an error that was sent as an event stream but not framed as one.
void Interpreter::State::read_raw() {
  if (!capture->event_stream || !capture->marks.empty() || trim(capture->raw).empty())
    return;
  const simdjson::padded_string padded(capture->raw);
  object o;
  if (parser.parse(padded).get(o) == simdjson::SUCCESS) {
    read_error(o);
  } else if (capture->raw.front() != ':' && capture->raw.find("data:") == std::string::npos &&
             !capture->done_sentinel) {
    malformed = true;
    message = "an event stream without events: " + capture->raw.substr(0, 120);
  }
}

void Interpreter::State::count_tokens() {
  auto& events = record->events;
  const bool shown =
      std::any_of(events.begin(), events.end(), [](const TokenEvent& e) { return e.channel == Channel::kReasoning; });
  if (!shown)
    record->hidden_tokens = reasoning;
  if (!record->output_tokens && !events.empty()) {
    record->output_tokens = Tokens(events.size());
    record->token_source = TokenSource::kChunks;
    for (TokenEvent& e : events)
      e.tokens = 0;
    return;
  }
  if (every_event_counted)
    return;
  const bool one_each = record->output_tokens && record->output_tokens->count() == static_cast<int64_t>(events.size());
  for (TokenEvent& e : events)
    e.tokens = one_each ? 1 : 0;
}

void Interpreter::State::fail(Outcome outcome, ErrorKind kind, std::string_view why) {
  record->outcome = outcome;
  record->error = kind;
  if (message.empty())
    message = why;
}

void Interpreter::State::decide() {
  switch (ending) {
    case Ending::kConnectFailed:
      return fail(Outcome::kError, ErrorKind::kConnect, "cannot connect");
    case Ending::kNotSent:
      return fail(Outcome::kNotSent, ErrorKind::kNone, "not sent: this side is out of descriptors or ports");
    case Ending::kTimeout:
      return fail(Outcome::kTimeout, ErrorKind::kNone, "no end within the request's time limit");
    case Ending::kRunEnded:
      return fail(Outcome::kUnfinished, ErrorKind::kNone, "still open when the run ended");
    case Ending::kMalformed:
      return fail(Outcome::kError, ErrorKind::kMalformed, "the answer is not HTTP");
    case Ending::kLimit:
      return fail(Outcome::kError, ErrorKind::kLimit, "the answer is beyond a bound of this client");
    default:
      break;
  }
  if (capture->status == 0)
    return fail(Outcome::kReset, ErrorKind::kNone, "the connection closed before an answer");
  if (capture->status / 100 != 2)
    return decide_http_status();
  if (error_object)
    return fail(not_admitted ? Outcome::kRejected : Outcome::kError, ErrorKind::kErrorObject, "");
  if (malformed)
    return fail(Outcome::kError, ErrorKind::kMalformed, "");
  decide_success();
}

void Interpreter::State::decide_http_status() {
  const int status = capture->status;
  const bool rejected = status == 429 || status == 503 || not_admitted;
  const std::string told = error_object ? message : std::string(trim(std::string_view(capture->raw).substr(0, 200)));
  message = "HTTP " + std::to_string(status) + (told.empty() ? "" : ": " + told);
  fail(rejected ? Outcome::kRejected : Outcome::kError, ErrorKind::kHttpStatus, "");
}

void Interpreter::State::decide_success() {
  const bool terminal = capture->done_sentinel || finish_seen;
  if (ending == Ending::kReset && !terminal) {
    return fail(Outcome::kReset, ErrorKind::kNone, "the connection was reset in the middle of the answer");
  }
  const bool whole_body = !record->streamed && ending == Ending::kComplete;
  const bool nothing = capture->marks.empty() && trim(capture->raw).empty() && ending == Ending::kComplete;
  if (!terminal && !whole_body && !nothing) {
    return fail(Outcome::kError, ErrorKind::kTruncated, "the stream ended without finish_reason or [DONE]");
  }
  if (record->finish == FinishReason::kError || record->finish == FinishReason::kAbort) {
    return fail(Outcome::kError, ErrorKind::kErrorObject, "the server ended it with finish_reason error or abort");
  }
  const bool told_tokens = record->output_tokens && record->output_tokens->count() > 0;
  if (record->events.empty() && !told_tokens)
    return fail(Outcome::kError, ErrorKind::kEmpty, "an answer without any token");
  record->outcome = Outcome::kOk;
  record->error = ErrorKind::kNone;
}

void Interpreter::State::stamp_end() {
  if (record->outcome != Outcome::kOk) {
    if (record->outcome != Outcome::kNotSent)
      record->done = record->closed;  // when the failure was known
    return;
  }
  if (!record->streamed) {
    record->done = best(capture->last);
  } else if (record->events.empty()) {
    record->done = record->closed;
  } else {
    const TokenEvent& last = record->events.back();
    record->done = record->scheduled + last.kernel.value_or(last.user);
  }
}

}  // namespace goodput
