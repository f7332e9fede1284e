#include "load/interpret.h"

#include <algorithm>

#include "base/text.h"
#include "load/event_facts.h"
#include "load/json_object.h"
#include "load/record_builder.h"

namespace goodput {
namespace {

// Whether this could be the beginning of an event stream whose first event has not ended.
bool may_be_events(std::string_view raw) {
  for (const std::string_view field : {":", "data", "event", "id", "retry"})
    if (raw.starts_with(field) || field.starts_with(raw))
      return true;
  return raw.find("data:") != raw.npos;
}

}  // namespace

struct Interpreter::State {
  JsonParser parser;
  RecordBuilder builder;
  const Protocol* protocol = nullptr;
  Capture* capture = nullptr;
  Ending ending = Ending::kComplete;
  size_t next = 0;

  void read_events(size_t limit);
  void read_event(std::string_view json, const ReadStamp& stamp, bool may_be_cut);
  void read_raw();
};

Interpreter::Interpreter() : state_(std::make_unique<State>()) {}
Interpreter::~Interpreter() = default;

const std::string& Interpreter::message() const { return state_->builder.message(); }

void Interpreter::begin(const Protocol& protocol, Capture& capture, Ending ending, Tokens asked_prompt,
                        RequestRecord& record) {
  State& s = *state_;
  s.capture = &capture;
  s.protocol = &protocol;
  s.ending = ending;
  s.next = 0;
  capture.bytes.resize(capture.bytes.size() + JsonParser::kPadding);
  s.builder.begin(protocol, capture, asked_prompt, record);
}

bool Interpreter::advance(size_t events) {
  State& s = *state_;
  s.read_events(events);
  if (s.next < s.capture->marks.size())
    return false;
  s.read_raw();
  s.builder.finish(s.ending);
  return true;
}

void Interpreter::State::read_events(size_t limit) {
  for (size_t i = 0; i < limit && next < capture->marks.size(); ++i, ++next) {
    const Capture::Mark& mark = capture->marks[next];
    const bool may_be_cut = capture->unterminated && next + 1 == capture->marks.size();
    read_event(std::string_view(capture->bytes).substr(mark.offset, mark.length), mark.stamp, may_be_cut);
  }
}

void Interpreter::State::read_event(std::string_view json, const ReadStamp& stamp, bool may_be_cut) {
  if (trim(json).empty())
    return;
  const auto event = parser.parse(json);
  if (!event) {
    if (!may_be_cut)
      builder.malformed("not JSON: " + std::string(json.substr(0, 120)));
    return;
  }
  EventFacts facts;
  facts.error = error_in(*event);
  if (!facts.error)
    protocol->read_event(*event, facts);
  builder.add(facts, stamp);
}

// Case 20: an error that was sent as an event stream but not framed as one.
void Interpreter::State::read_raw() {
  if (capture->framing != Framing::kSse || !capture->marks.empty() || trim(capture->raw).empty())
    return;
  if (const auto body = parser.parse_copy(capture->raw)) {
    EventFacts facts;
    facts.error = error_in(*body);
    builder.add(facts, capture->last);
  } else if (ending != Ending::kReset && !may_be_events(trim(capture->raw)) && !capture->done_sentinel) {
    builder.malformed("an event stream without events: " + capture->raw.substr(0, 120));
  }
}

}  // namespace goodput
