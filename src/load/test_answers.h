// For tests: feeds an answer read by read, with times of its own, through the receiver and the interpreter. No socket,
// no waiting.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

#include "load/interpret.h"

namespace goodput {

struct Read {
  double ms;  // after the request was scheduled
  std::string bytes;
};

struct Seen {
  RequestRecord record;
  std::string message;
  Ending ending;
};

struct Reception {
  Api api = Api::kChat;
  Ending last = Ending::kClosed;  // how the connection ended, unless HTTP framing ended the answer
  size_t slice = 1;               // events per call of the interpreter
  bool stream = true;             // as asked for
  Tokens asked_prompt{0};
};

// The kernel saw each read 5 µs before the client.
inline Seen receive_as(const Reception& how, const std::vector<Read>& reads) {
  const Protocol& protocol = protocol_of(how.api);
  Receiver receiver;
  receiver.reset(how.stream ? protocol.framing : Framing::kWhole);
  Seen out;
  out.record.scheduled = TimePoint(seconds(1));
  out.record.asked_output = Tokens(4);
  out.record.streamed = how.stream;
  std::optional<Ending> ended;
  uint32_t n = 0;
  TimePoint now = out.record.scheduled;
  for (const Read& r : reads) {
    now = out.record.scheduled + from_ms(r.ms);
    ended = receiver.feed(r.bytes, {now, now - microseconds(5), n++});
    if (ended)
      break;
  }
  if (!ended)
    ended = how.last == Ending::kClosed ? receiver.closed() : how.last;
  out.ending = *ended;
  out.record.closed = now;
  Interpreter interpreter;
  interpreter.begin(protocol, receiver.capture(), *ended, how.asked_prompt, out.record);
  while (!interpreter.advance(how.slice)) {
  }
  out.message = interpreter.message();
  return out;
}

// Milliseconds since the request was scheduled; -1: absent.
inline double since(const RequestRecord& r, std::optional<TimePoint> t) {
  return t ? to_ms(*t - r.scheduled) + 0.005 : -1;
}

// One of tests/data/{answers,handmade}/NAME.http.
inline std::string answer_file(const std::string& name) {
  for (const char* folder : {"answers", "handmade"}) {
    const auto path = std::filesystem::path(GOODPUT_SOURCE_DIR) / "tests/data" / folder / (name + ".http");
    std::ifstream in(path, std::ios::binary);
    if (in)
      return {std::istreambuf_iterator<char>(in), {}};
  }
  ADD_FAILURE() << "no such answer: " << name;
  return {};
}

// The names of all of them, sorted.
inline std::vector<std::string> answer_names() {
  std::vector<std::string> out;
  for (const char* folder : {"answers", "handmade"}) {
    for (const auto& entry :
         std::filesystem::directory_iterator(std::filesystem::path(GOODPUT_SOURCE_DIR) / "tests/data" / folder))
      if (entry.path().extension() == ".http")
        out.push_back(entry.path().stem());
  }
  std::sort(out.begin(), out.end());
  return out;
}

// The protocol whose name the file's begins with.
inline std::optional<Api> api_of_answer(const std::string& name) {
  for (const Protocol& p : protocols())
    if (name.starts_with(std::string(p.name) + "_"))
      return p.api;
  return std::nullopt;
}

}  // namespace goodput
