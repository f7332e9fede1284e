// Any bytes, fed whole and byte by byte, give the same events. libFuzzer.
#include <cstdlib>
#include <string>

#include "net/http_codec.h"

namespace {

std::string transcript(std::string_view bytes, size_t step_size) {
  using Event = goodput::HttpResponseParser::Event;
  goodput::HttpResponseParser parser;
  std::string out;
  while (!bytes.empty()) {
    std::string_view piece = bytes.substr(0, step_size);
    bytes.remove_prefix(piece.size());
    while (true) {
      const auto step = parser.next(piece);
      if (step.event == Event::kBody)
        out += step.body;
      if (step.event == Event::kHead)
        out += "[" + std::to_string(parser.status()) + "]";
      if (step.event == Event::kError)
        return out + "[error]";
      if (step.event == Event::kNeedMore)
        break;
      if (step.event == Event::kEnd) {
        if (piece.empty())
          break;
        out += "[end]";
        parser.reset();
      }
    }
  }
  return out + (parser.finish().event == Event::kEnd ? "[end]" : "[cut]");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const std::string whole = transcript(bytes, size + 1);
  if (transcript(bytes, 1) != whole || transcript(bytes, 7) != whole)
    std::abort();
  return 0;
}
