// Any bytes, fed whole and byte by byte, give the same events. libFuzzer.
#include <cstdlib>
#include <string>

#include "net/sse.h"

namespace {

std::string transcript(std::string_view bytes, size_t step_size) {
  goodput::SseParser parser;
  std::string out;
  while (!bytes.empty()) {
    std::string_view piece = bytes.substr(0, step_size);
    bytes.remove_prefix(piece.size());
    while (true) {
      const auto step = parser.next(piece, {});
      if (step.event == goodput::SseParser::Event::kNeedMore)
        break;
      if (step.event == goodput::SseParser::Event::kTooLong)
        return out + "[too long]";
      out += "[" + std::string(step.data) + "]";
    }
  }
  return out + std::string(parser.unfinished());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const std::string whole = transcript(bytes, size + 1);
  if (transcript(bytes, 1) != whole || transcript(bytes, 5) != whole)
    std::abort();
  return 0;
}
