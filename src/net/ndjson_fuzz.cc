// Any bytes, fed whole and in pieces, give the same lines, each stamped with the read of its last payload byte.
// libFuzzer.
#include <cstdlib>
#include <string>
#include <vector>

#include "net/ndjson.h"

namespace {

struct Transcript {
  std::string text;
  std::vector<size_t> last_bytes;  // of each line, as the stamps say: position in the stream ÷ size of a read
};

Transcript transcript(std::string_view bytes, size_t step_size) {
  using Event = goodput::NdjsonParser::Event;
  goodput::NdjsonParser parser;
  Transcript out;
  uint32_t read = 0;
  while (!bytes.empty()) {
    std::string_view piece = bytes.substr(0, step_size);
    bytes.remove_prefix(piece.size());
    const goodput::ReadStamp stamp{{}, std::nullopt, read++};
    while (true) {
      const auto step = parser.next(piece, stamp);
      if (step.event == Event::kNeedMore)
        break;
      if (step.event == Event::kTooLong) {
        out.text += "[too long]";
        return out;
      }
      out.text += "[" + std::string(step.data) + "]";
      out.last_bytes.push_back(step.stamp.read);
    }
    if (!piece.empty())
      std::abort();
  }
  out.text += parser.unfinished();
  return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const Transcript whole = transcript(bytes, size + 1), single = transcript(bytes, 1), five = transcript(bytes, 5);
  if (single.text != whole.text || five.text != whole.text || single.last_bytes.size() != five.last_bytes.size())
    std::abort();
  for (size_t i = 0; i < single.last_bytes.size(); ++i) {
    if (single.last_bytes[i] / 5 != five.last_bytes[i])
      std::abort();
  }
  return 0;
}
