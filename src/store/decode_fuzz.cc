// libFuzzer: bytes that another process or a damaged disk hands over. The decoders refuse them or read a value whose
// encoding is those bytes; a point's JSON that reads once reads back the same.
//
// Mutation alone seldom gets past the magics, the canonical numbers and a point's hundred fields, so one mutation in a
// few starts afresh from the encoding of an arbitrary value. Kept seeds would do the same, until the format changes.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "store/arbitrary.h"
#include "store/point.h"
#include "store/study.h"

using namespace goodput;

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

namespace {

std::string arbitrary_encoding(Random& random) {
  switch (random.uniform_int(0, 2)) {
    case 0:
      return encode_records(arbitrary::records(random, 4));
    case 1:
      return encode_steps(arbitrary::steps(random, 4));
    default:
      return to_json(arbitrary::point(random));
  }
}

}  // namespace

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned seed) {
  Random random(seed, "mutator");
  if (random.uniform_int(0, 63) == 0) {
    const std::string fresh = arbitrary_encoding(random);
    size = std::min(fresh.size(), max_size);
    std::memcpy(data, fresh.data(), size);
    if (random.uniform_int(0, 1) == 0)
      return size;
  }
  return LLVMFuzzerMutate(data, size, max_size);
}

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
