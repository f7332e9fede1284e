// How late the load generator sends: 2,000 requests per second of a Poisson process against a server that answers at
// once. The value is the p99 of dispatched − scheduled. Server and client are processes of their own on one processor
// each.
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "base/process.h"
#include "base/progress.h"
#include "load/load.h"
#include "load/words.h"
#include "paced_server.h"
#include "workload/schedule.h"

int main() {
  using namespace goodput;
  constexpr double kRate = 2000, kBarUs = 200;
  constexpr Nanos kWarmUp = seconds(2), kWindow = seconds(15);
  const auto cpus = allowed_cpus();
  paced::Server server({.streams = 1, .tokens = 2});
  const pid_t child = ::fork();
  if (child == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    static_cast<void>(pin_to_cpus({cpus.back()}));
    server.answer_at_once(paced::now_ns() + 120'000'000'000);
    std::_Exit(0);
  }
  static_cast<void>(pin_to_cpus({cpus.front()}));
  WorkloadSpec spec;
  spec.rate = kRate;
  ClassSpec c;
  c.name = "short";
  c.prompt = {.kind = LengthSpec::Kind::kFixed, .low = Tokens(8), .high = Tokens(8)};
  c.output = {.kind = LengthSpec::Kind::kFixed, .low = Tokens(2), .high = Tokens(2)};
  spec.classes = {c};
  ScheduleOptions options;
  options.duration = kWarmUp + kWindow;
  auto schedule = make_schedule(spec, options, nullptr);
  if (!schedule) {
    std::fprintf(stderr, "pacing: %s\n", describe(schedule.error()).c_str());
    return 1;
  }
  fill_with_words(*schedule);
  LoadOptions load;
  load.base_url = "http://127.0.0.1:" + std::to_string(server.port());
  load.warm_up = kWarmUp;
  load.window = kWindow;
  NoProgress progress;
  const std::atomic<bool> stop = false;
  const auto result = run_load(*schedule, load, nullptr, progress, stop);
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  if (!result) {
    std::fprintf(stderr, "pacing: %s\n", describe(result.error()).c_str());
    return 1;
  }
  std::vector<double> late_us;
  size_t failed = 0;
  for (const RequestRecord& r : result->records) {
    if (r.scheduled < result->window.start || r.scheduled >= result->window.end)
      continue;
    failed += r.outcome != Outcome::kOk;
    if (r.dispatched)
      late_us.push_back(static_cast<double>((*r.dispatched - r.scheduled).count()) * 1e-3);
  }
  std::ranges::sort(late_us);
  const auto at = [&](double p) {
    return late_us.at(static_cast<size_t>(p * static_cast<double>(late_us.size() - 1)));
  };
  std::fprintf(stderr,
               "%zu requests, %zu failed; dispatched late by p50 %.1f, p90 %.1f, p99 %.1f, p99.9 %.1f, max %.1f us\n",
               late_us.size(), failed, at(.5), at(.9), at(.99), at(.999), late_us.back());
  std::printf(
      "{\"name\":\"pacing\",\"value\":%.1f,\"unit\":\"us, p99 of dispatch delay\",\"bar\":%.0f,\"better\":\"lower\","
      "\"ok\":%s,\"requests\":%zu,\"failed\":%zu,\"p50_us\":%.1f,\"p999_us\":%.1f}\n",
      at(.99), kBarUs, at(.99) <= kBarUs && failed == 0 ? "true" : "false", late_us.size(), failed, at(.5), at(.999));
  return 0;
}
