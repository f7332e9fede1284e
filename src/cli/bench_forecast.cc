// --dry-run of bench: what would be sent, how long it takes as far as that is known, and whether this process may hold
// it.
#include <sys/resource.h>

#include <fmt/format.h>
#include <boost/json.hpp>

#include "base/limits.h"
#include "base/text.h"
#include "cli/bench_run.h"

namespace goodput {
namespace {

constexpr uint64_t kOwnDescriptors = 64;  // files, pipes, the epoll set, beside the connections
constexpr uint64_t kBytesPerWord = 8;     // of a prompt's text
constexpr uint64_t kBytesPerOpenStream = 20'000;

uint64_t descriptor_limit() {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  return std::min<uint64_t>(limit.rlim_max, limits::kMaxConnections);
}

struct Needs {
  uint64_t prompt_tokens = 0, output_tokens = 0, in_flight = 0, memory = 0;
  std::optional<uint64_t> descriptors;  // absent: as many as are in flight at once
  std::optional<Nanos> arrivals;        // how long requests arrive; absent: as the server answers
};

Needs needs_of(const BenchPlan& p, const Schedule& s) {
  Needs n;
  for (const ScheduledRequest& r : s.requests) {
    n.prompt_tokens += static_cast<uint64_t>(prompt_tokens(r).value_or(Tokens(r.text.size() / 4)).count());
    n.output_tokens += static_cast<uint64_t>(r.output.count());
  }
  n.in_flight = static_cast<uint64_t>(std::max(p.load.concurrency, p.load.max_in_flight));
  if (n.in_flight > 0)
    n.descriptors = n.in_flight + kOwnDescriptors;
  if (p.load.window > Nanos(0))
    n.arrivals = p.load.warm_up + p.load.window;
  else if (p.load.concurrency == 0 && !s.requests.empty())
    n.arrivals = s.requests.back().at;
  // A prompt is held as ids, as text and inside its request; an answer as one event for each token.
  n.memory = n.prompt_tokens * (sizeof(TokenId) + 2 * kBytesPerWord) + n.output_tokens * sizeof(TokenEvent) +
             s.requests.size() * (sizeof(RequestRecord) + sizeof(ScheduledRequest) + 512) +
             n.in_flight * kBytesPerOpenStream;
  return n;
}

std::string arrivals_text(const BenchPlan& p) {
  if (p.spec.arrivals == ArrivalKind::kTrace)
    return "as the trace says";
  if (p.report.ramp)
    return fmt::format("{} ramp from {} to {} requests/s", p.report.ramp->strategy, p.report.ramp->start_rps,
                       p.report.ramp->end_rps);
  if (p.report.rate)
    return fmt::format("{} at {} requests/s", to_string(p.spec.arrivals), *p.report.rate);
  return fmt::format("closed loop, {} in flight", p.load.concurrency);
}

std::string time_text(const BenchPlan& p, const Schedule& s, const Needs& n) {
  if (n.arrivals) {
    return fmt::format("{:.0f} s of arrivals, then the answers that are still out (at most {} s each)",
                       to_seconds(*n.arrivals), to_seconds(p.load.request_timeout));
  }
  const uint64_t rounds = (s.requests.size() + n.in_flight - 1) / std::max<uint64_t>(n.in_flight, 1);
  return fmt::format("as the server answers: {} rounds of {} requests (at most {} s each)", rounds, n.in_flight,
                     to_seconds(p.load.request_timeout));
}

}  // namespace

BenchForecast forecast(const BenchPlan& p, const Schedule& s) {
  const Needs n = needs_of(p, s);
  const uint64_t limit = descriptor_limit();
  BenchForecast f;
  f.possible = !n.descriptors || *n.descriptors <= limit;
  f.text = fmt::format("server       {}{} ({})\n", p.load.base_url, p.report.endpoint, p.report.backend);
  f.text += fmt::format("requests     {}{}, schedule {}, seed {}\n", s.requests.size(),
                        p.warmups > 0 ? fmt::format(" after {} to warm up", p.warmups) : "", s.hash.substr(0, 12),
                        p.schedule.seed);
  f.text += fmt::format("arrivals     {}\n", arrivals_text(p));
  f.text += fmt::format("tokens       {} in, {} out{}\n", n.prompt_tokens, n.output_tokens,
                        p.report.exact_prompts ? "" : " (in: words, about as many tokens)");
  f.text += fmt::format("time         {}\n", time_text(p, s, n));
  f.text += n.descriptors ? fmt::format("descriptors  {} of {}{}\n", *n.descriptors, limit,
                                        f.possible ? "" : ": too few, raise ulimit -n or lower --max-concurrency")
                          : fmt::format("descriptors  one for each request in flight, of {}\n", limit);
  f.text += fmt::format("memory       about {}\n", format_bytes(n.memory));
  for (const std::string& note : p.notes)
    f.text += fmt::format("note         {}\n", note);

  boost::json::object o{{"schema", "goodput.bench-plan/1"},
                        {"base_url", p.load.base_url},
                        {"endpoint", p.report.endpoint},
                        {"requests", s.requests.size()},
                        {"warmups", p.warmups},
                        {"schedule_hash", s.hash},
                        {"prompt_tokens", n.prompt_tokens},
                        {"output_tokens", n.output_tokens},
                        {"arrivals_s", nullptr},
                        {"descriptors", nullptr},
                        {"descriptor_limit", limit},
                        {"memory_bytes", n.memory},
                        {"possible", f.possible}};
  if (n.arrivals)
    o["arrivals_s"] = to_seconds(*n.arrivals);
  if (n.descriptors)
    o["descriptors"] = *n.descriptors;
  f.json = boost::json::serialize(o) + "\n";
  return f;
}

}  // namespace goodput
