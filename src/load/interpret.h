// From the bytes and stamps of an answer to its record: reads the JSON of OpenAI's completions and chat answers
// (streamed or not, with the dialects seen in vLLM, SGLang, llama-server, TGI and gateways) and decides the outcome.
// Runs behind the receive path, in slices, so that a long answer never holds up a send. Definitions: docs/method.md.
#pragma once

#include <memory>
#include <string>

#include "load/receiver.h"
#include "metrics/record.h"

namespace goodput {

// Keeps its JSON parser's memory from answer to answer. Not thread-safe.
class Interpreter {
 public:
  Interpreter();
  ~Interpreter();

  // Begins with `capture` (must stay until finished) of the request in `record`, which has its identity, its stamps up
  // to `sent`, and `closed`, the moment the end was known.
  void begin(Capture& capture, Ending ending, RequestRecord& record);
  // Reads up to `events` more; true when the record is complete.
  bool advance(size_t events);
  // Once complete: why it failed, in the server's words where it had any; empty if it did not fail.
  const std::string& message() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace goodput
