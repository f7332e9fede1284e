// libFuzzer: bytes that another process or a damaged disk hands over. The decoders refuse them or read a value whose
// encoding is those bytes; a point's JSON that reads once reads back the same.
#include <cstdlib>
#include <string_view>

#include "store/point.h"
#include "store/study.h"

using namespace goodput;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  if (const auto records = decode_records(bytes); records && encode_records(*records) != bytes)
    std::abort();
  if (const auto steps = decode_steps(bytes); steps && encode_steps(*steps) != bytes)
    std::abort();
  if (const auto point = point_from_json(bytes)) {
    const std::string json = to_json(*point);
    const auto again = point_from_json(json);
    if (!again || to_json(*again) != json)
      std::abort();
  }
  return 0;
}
