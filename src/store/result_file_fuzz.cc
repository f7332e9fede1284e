// libFuzzer: results that somebody hands to `compare`, ours and other tools'. Whatever the bytes, there is an error
// with a file in it, or runs whose every figure is a finite number that is not negative.
#include <cmath>
#include <cstdlib>
#include <string_view>

#include "store/result_file.h"

using namespace goodput;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto file = parse_result({reinterpret_cast<const char*>(data), size}, "fuzz");
  if (!file) {
    if (file.error().context != "fuzz" || file.error().message.empty())
      std::abort();
    return 0;
  }
  for (const ResultRun& run : file->runs) {
    for (const ResultFigure& f : run.figures)
      if (!std::isfinite(f.value) || f.value < 0 || f.name.empty() || f.definition.empty())
        std::abort();
    for (const ResultSamples& s : run.samples)
      for (const double v : s.values)
        if (!std::isnan(v) && (!std::isfinite(v) || v < 0))
          std::abort();
  }
  return 0;
}
