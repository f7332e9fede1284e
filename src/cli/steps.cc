// goodput steps: a step log, readable. What the engine computed in each iteration, and where its time went.
#include <memory>

#include <fmt/format.h>

#include "base/file.h"
#include "cli/verb.h"
#include "store/study.h"

namespace goodput {
namespace {

constexpr uint64_t kMostBytes = 4ull << 30;

void print_json(const std::vector<StepRecord>& steps) {
  fmt::print("[");
  for (size_t i = 0; i < steps.size(); ++i) {
    const StepRecord& s = steps[i];
    fmt::print(
        "{}\n{{\"start_ns\":{},\"duration_ns\":{},\"decode_ns\":{},\"sampling_ns\":{},\"tokenization_ns\":{},\"host_"
        "ns\":{},"
        "\"prefill\":{},\"decodes\":{},\"kv_read\":{},\"kv_tiled\":{},\"kv_scanned\":{},\"kv_dense\":{},\"passes\":{},"
        "\"running\":{},\"waiting\":{},\"preempted\":{},"
        "\"blocks_used\":{},\"blocks_retained\":{}}}",
        i ? "," : "", s.start.since_zero().count(), s.duration.count(), s.decode.count(), s.sampling.count(),
        s.tokenization.count(), s.host.count(), s.shape.prefill.count(), s.shape.decodes, s.shape.kv_read.count(),
        s.shape.kv_tiled.count(), s.shape.kv_scanned.count(), s.shape.kv_dense.count(), s.shape.passes, s.running,
        s.waiting, s.preempted, s.used.count(), s.retained.count());
  }
  fmt::print("\n]\n");
}

void print_table(const std::vector<StepRecord>& steps) {
  fmt::print("{:>12} {:>9} {:>9} {:>9} {:>9} {:>8} {:>8} {:>8} {:>8} {:>9}\n", "start ms", "step ms", "decode",
             "sampling", "host", "prefill", "decodes", "running", "waiting", "preempted");
  for (const StepRecord& s : steps)
    fmt::print("{:>12.3f} {:>9.3f} {:>9.3f} {:>9.3f} {:>9.3f} {:>8} {:>8} {:>8} {:>8} {:>9}\n",
               to_ms(s.start - steps.front().start), to_ms(s.duration), to_ms(s.decode), to_ms(s.sampling),
               to_ms(s.host), s.shape.prefill.count(), s.shape.decodes, s.running, s.waiting, s.preempted);
}

std::function<Exit()> declare(CLI::App& app) {
  struct Flags {
    std::string file;
    bool json = false;
  };
  auto flags = std::make_shared<Flags>();
  app.add_option("file", flags->file, "written by goodput serve --step-log")->required();
  app.add_flag("--json", flags->json, "one JSON array on stdout");
  return [flags] {
    const auto bytes = read_file(flags->file, kMostBytes);
    if (!bytes)
      return report_error(bytes.error());
    const auto steps = decode_steps(*bytes);
    if (!steps)
      return report_error({steps.error().code, steps.error().message, flags->file});
    flags->json ? print_json(*steps) : print_table(*steps);
    return Exit::kOk;
  };
}

}  // namespace

extern const Verb kStepsVerb;
const Verb kStepsVerb{"steps", "prints a step log: what each iteration computed and where its time went",
                      "  goodput serve --step-log steps.bin …\n  goodput steps steps.bin\n", declare};

}  // namespace goodput
