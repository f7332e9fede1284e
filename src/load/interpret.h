// From the bytes and stamps of an answer to its record: parses each event's JSON, has the protocol's reader say what it
// means, and the record builder decide. Runs behind the receive path, in slices, so that a long answer never holds up a
// send.
#pragma once

#include <memory>
#include <string>

#include "load/protocol.h"
#include "load/receiver.h"
#include "metrics/record.h"

namespace goodput {

// Keeps its JSON parser's memory from answer to answer. Not thread-safe.
class Interpreter {
 public:
  Interpreter();
  ~Interpreter();

  // Begins with `capture` (must stay until finished) of the request in `record`, which has its identity, its stamps up
  // to `sent`, and `closed`, the moment the end was known. `asked_prompt`: the prompt's tokens as the schedule counted
  // them, for servers that do not count what they had cached; 0: unknown.
  void begin(const Protocol&, Capture& capture, Ending ending, Tokens asked_prompt, RequestRecord& record);
  // Reads up to `events` more; true when the record is complete.
  bool advance(size_t events);
  // Once complete: why it failed, in the server's words where it had any; empty if it did not fail.
  const std::string& message() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace goodput
