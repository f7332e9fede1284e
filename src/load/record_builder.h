// From the facts of an answer's events, their stamps and how the wire ended to the record: token times and counts, the
// outcome and why. The only place that decides these, for every protocol. Definitions: docs/method.md. Not
// thread-safe; reused from answer to answer.
#pragma once

#include <string>
#include <string_view>

#include "load/event_facts.h"
#include "load/protocol.h"
#include "load/receiver.h"
#include "metrics/record.h"

namespace goodput {

class RecordBuilder {
 public:
  // `record` has its identity, its stamps up to `sent`, and `closed`. `asked_prompt`: tokens of the prompt as the
  // schedule counted them; 0: unknown.
  void begin(const Protocol&, const Capture&, Tokens asked_prompt, RequestRecord& record);
  void add(const EventFacts&, const ReadStamp&);
  // An event, or a whole body, that is not what the protocol allows.
  void malformed(std::string why);
  // Once every event was added.
  void finish(Ending);

  // Once finished: why it failed, in the server's words where it had any; empty if it did not fail.
  const std::string& message() const { return message_; }

 private:
  void take_counts(const EventFacts&);
  void take_prompt(const EventFacts&);
  void take_error(const EventError&);
  void add_token_event(const EventFacts&, const ReadStamp&);
  void count_tokens();
  void decide(Ending);
  void decide_http_status();
  void decide_success(Ending);
  void stamp_end();
  void place_server_times();
  bool terminal() const;
  void fail(Outcome, ErrorKind, std::string_view why);

  const Protocol* protocol_ = nullptr;
  const Capture* capture_ = nullptr;
  RequestRecord* record_ = nullptr;
  Tokens asked_prompt_{0};
  bool end_seen_ = false, error_object_ = false, not_admitted_ = false, malformed_ = false;
  bool every_event_counted_ = true, hides_tokens_ = false;
  uint32_t last_read_ = UINT32_MAX;
  int64_t counted_ = 0;  // tokens of the events so far, as running usage or token ids say
  Tokens reasoning_{0};  // as the last usage says
  ServerDurations durations_;
  std::string message_;
};

}  // namespace goodput
