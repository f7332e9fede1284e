// The receive path: what a token event costs the load generator, and how far its stamps are off. Server and client are
// processes of their own, pinned to one processor each; the server notes the time of each token before its send().
//   bench_streams streams       10,000 streams, 25,000 tokens/s in bursts of 256, then evenly spaced
//   bench_streams stamp-error   the same, scored on stamps; then a known delay of 5 ms
//   bench_streams serve STREAMS TOKENS RATE BURST LOG   the server alone, for another client
//   bench_streams row           1,000 streams, 20,000 tokens/s in bursts of 256: the client-cost row, as JSON
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/file.h"
#include "base/process.h"
#include "base/progress.h"
#include "load/load.h"
#include "load/words.h"
#include "paced_server.h"
#include "store/study.h"
#include "workload/schedule.h"

namespace goodput {
namespace {

[[noreturn]] void die(const std::string& why) {
  std::fprintf(stderr, "streams: %s\n", why.c_str());
  std::exit(1);
}

template <class T>
T must(Result<T> result) {
  if (!result)
    die(describe(result.error()));
  return std::move(*result);
}

double process_cpu_seconds() {
  timespec t{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

// What the client's process hands back beside its records.
struct ClientCost {
  double cpu_seconds;         // at the end of the run, JSON and records included
  uint64_t rss_before_bytes;  // before the first connection
  uint64_t rss_peak_bytes;
  double busy_share;
};

// The client: a child that plays one request on each of `streams` connections, all at once.
void run_client(int port, const paced::Pace& pace, const std::string& folder) {
  WorkloadSpec spec;
  spec.arrivals = ArrivalKind::kClosed;
  spec.concurrency = pace.streams;
  ClassSpec c;
  c.name = "stream";
  c.prompt = {.kind = LengthSpec::Kind::kFixed, .low = Tokens(8), .high = Tokens(8)};
  c.output = {.kind = LengthSpec::Kind::kFixed, .low = Tokens(pace.tokens), .high = Tokens(pace.tokens)};
  spec.classes = {c};
  ScheduleOptions options;
  options.requests = static_cast<uint64_t>(pace.streams);
  Schedule schedule = must(make_schedule(spec, options, nullptr));
  fill_with_words(schedule);
  LoadOptions load;
  load.base_url = "http://127.0.0.1:" + std::to_string(port);
  load.concurrency = pace.streams;
  load.request_timeout = seconds(300);
  NoProgress progress;
  const std::atomic<bool> stop = false;
  ClientCost cost{};
  cost.rss_before_bytes = rss_bytes(::getpid()).value_or(0);
  const LoadResult result = must(run_load(schedule, load, nullptr, progress, stop));
  cost.cpu_seconds = process_cpu_seconds();
  cost.rss_peak_bytes = peak_rss_bytes(::getpid()).value_or(0);
  cost.busy_share = result.audit.loop_busy_share;
  if (!write_file_atomically(folder + "/records", encode_records(result.records)))
    die("cannot write the records");
  std::FILE* out = std::fopen((folder + "/cost").c_str(), "wb");
  std::fwrite(&cost, sizeof cost, 1, out);
  std::fclose(out);
}

struct Row {
  uint64_t events = 0, expected = 0, with_kernel_stamp = 0, coalesced = 0;
  double seconds = 0;
  double cpu_us_per_event = 0, kb_per_stream = 0, busy_share = 0;
  std::vector<double> kernel_us, user_us, delayed_kernel_us;  // stamp − send
};

double at(std::vector<double>& sorted, double p) {
  return sorted.empty()
             ? -1
             : sorted[std::min(sorted.size() - 1, static_cast<size_t>(p * static_cast<double>(sorted.size())))];
}

void score(Row& row, const std::vector<RequestRecord>& records, const std::vector<paced::Sent>& log) {
  std::vector<const RequestRecord*> by_request;
  for (const RequestRecord& r : records) {
    if (by_request.size() <= r.index)
      by_request.resize(r.index + 1);
    by_request[r.index] = &r;
    row.events += r.events.size();
  }
  for (const paced::Sent& sent : log) {
    if (sent.request >= by_request.size() || by_request[sent.request] == nullptr)
      continue;
    const RequestRecord& r = *by_request[sent.request];
    if (sent.token >= r.events.size())
      continue;
    const TokenEvent& e = r.events[sent.token];
    const auto off = [&](Nanos since_scheduled) {
      return static_cast<double>((r.scheduled + since_scheduled).since_zero().count() - sent.at_ns) * 1e-3;
    };
    row.coalesced += e.coalesced;
    row.with_kernel_stamp += e.kernel.has_value();
    if (sent.delayed && e.kernel) {
      row.delayed_kernel_us.push_back(off(*e.kernel));
      continue;
    }
    row.user_us.push_back(off(e.user));
    if (e.kernel)
      row.kernel_us.push_back(off(*e.kernel));
  }
  for (auto* v : {&row.kernel_us, &row.user_us, &row.delayed_kernel_us})
    std::ranges::sort(*v);
}

Row measure(const paced::Pace& pace) {
  const auto cpus = allowed_cpus();
  if (cpus.size() < 2)
    die("two processors are needed: one for the server, one for the client");
  char folder[] = "/tmp/goodput-streams-XXXXXX";
  if (::mkdtemp(folder) == nullptr)
    die("cannot make a scratch folder");
  // This process is the server: its log needs no way out. The client is the child.
  paced::Server server(pace);
  const pid_t client = ::fork();
  if (client == 0) {
    if (!pin_to_cpus({cpus.front()}))
      die("cannot pin the client");
    run_client(server.port(), pace, folder);
    std::_Exit(0);
  }
  if (!pin_to_cpus({cpus.back()}))
    die("cannot pin the server");
  server.gather();
  ::usleep(1'000'000);  // the client is idle by then: what it has used so far was for connecting
  const double connected_cpu = to_seconds(thread_times(client, client).value_or(ThreadTimes{}).running);
  Row row;
  row.seconds = server.play();
  server.linger(60'000'000'000);
  int status = 0;
  ::waitpid(client, &status, 0);
  if (status != 0)
    die("the client failed");
  if (!pin_to_cpus(cpus))
    die("cannot undo the pinning");
  ClientCost cost{};
  std::FILE* in = std::fopen((std::string(folder) + "/cost").c_str(), "rb");
  if (in == nullptr || std::fread(&cost, sizeof cost, 1, in) != 1)
    die("the client left no result");
  std::fclose(in);
  const auto records = must(decode_records(must(read_file(std::string(folder) + "/records", 4ull << 30))));
  row.expected = server.log().size();
  score(row, records, server.log());
  row.cpu_us_per_event = (cost.cpu_seconds - connected_cpu) * 1e6 / static_cast<double>(row.expected);
  row.kb_per_stream =
      static_cast<double>(cost.rss_peak_bytes - cost.rss_before_bytes) / 1024 / static_cast<double>(pace.streams);
  row.busy_share = cost.busy_share;
  for (const char* name : {"/records", "/cost"})
    ::unlink((std::string(folder) + name).c_str());
  ::rmdir(folder);
  return row;
}

void print(const char* what, Row& r) {
  std::fprintf(
      stderr,
      "%-22s %8llu of %llu events in %.1f s, %.2f us CPU/event, %.1f KB/stream, kernel stamps %.2f %%, coalesced "
      "%.2f %%\n%22s stamp − send, us: kernel p50 %.1f p99 %.1f p99.9 %.1f; user p50 %.1f p99 %.1f p99.9 %.1f\n",
      what, static_cast<unsigned long long>(r.events), static_cast<unsigned long long>(r.expected), r.seconds,
      r.cpu_us_per_event, r.kb_per_stream,
      100.0 * static_cast<double>(r.with_kernel_stamp) / static_cast<double>(std::max<uint64_t>(r.expected, 1)),
      100.0 * static_cast<double>(r.coalesced) / static_cast<double>(std::max<uint64_t>(r.expected, 1)), "",
      at(r.kernel_us, .5), at(r.kernel_us, .99), at(r.kernel_us, .999), at(r.user_us, .5), at(r.user_us, .99),
      at(r.user_us, .999));
}

int streams() {
  Row burst = measure({});
  print("bursts of 256", burst);
  Row even = measure({.burst = 1});
  print("evenly spaced", even);
  const bool whole = burst.events == burst.expected && even.events == even.expected;
  const bool ok = whole && burst.cpu_us_per_event <= 8 && burst.kb_per_stream <= 20;
  std::printf(
      "{\"name\":\"streams\",\"value\":%.3f,\"unit\":\"us CPU per token "
      "event\",\"bar\":8,\"better\":\"lower\",\"ok\":%s,"
      "\"lost_events\":%lld,\"kb_per_stream\":%.2f,\"kb_per_stream_bar\":20,\"evenly_spaced_us\":%.3f}\n",
      burst.cpu_us_per_event, ok ? "true" : "false",
      static_cast<long long>(burst.expected + even.expected) - static_cast<long long>(burst.events + even.events),
      burst.kb_per_stream, even.cpu_us_per_event);
  return 0;
}

int stamp_error() {
  Row plain = measure({});
  print("bursts of 256", plain);
  Row delayed = measure({.streams = 200, .tokens = 100, .rate = 2000, .burst = 20, .delay_every = 50});
  print("held back by 5 ms", delayed);
  const double worst_delay_us = delayed.delayed_kernel_us.empty()
                                    ? 1e9
                                    : std::max(std::abs(at(delayed.delayed_kernel_us, .01) - 5000),
                                               std::abs(at(delayed.delayed_kernel_us, .99) - 5000));
  const double share = static_cast<double>(plain.with_kernel_stamp) / static_cast<double>(plain.expected);
  const double p99 = at(plain.kernel_us, .99);
  std::printf(
      "{\"name\":\"stamp-error\",\"value\":%.2f,\"unit\":\"us, p99 of kernel stamp - send\",\"bar\":50,\"better\":"
      "\"lower\",\"ok\":%s,\"with_kernel_stamp\":%.4f,\"user_p50_us\":%.1f,\"user_p99_us\":%.1f,"
      "\"user_p999_us\":%.1f,\"delay_error_us\":%.1f,\"delay_error_bar_us\":100,\"delayed_events\":%zu}\n",
      p99, p99 <= 50 && share >= 0.99 && worst_delay_us <= 100 ? "true" : "false", share, at(plain.user_us, .5),
      at(plain.user_us, .99), at(plain.user_us, .999), worst_delay_us, delayed.delayed_kernel_us.size());
  return 0;
}

// For a client that is no program of ours: one line with the port, one when all streams are open, and the log at the
// end.
int serve(char** arguments) {
  const auto cpus = allowed_cpus();
  if (!pin_to_cpus({cpus.back()}))
    die("cannot pin the server");
  paced::Server server({.streams = std::atoi(arguments[0]),
                        .tokens = std::atoi(arguments[1]),
                        .rate = std::atof(arguments[2]),
                        .burst = std::atoi(arguments[3])});
  std::printf("%d\n", server.port());
  std::fflush(stdout);
  server.gather();
  std::printf("open\n");
  std::fflush(stdout);
  ::usleep(1'000'000);
  server.play();
  server.linger(60'000'000'000);
  std::FILE* out = std::fopen(arguments[4], "wb");
  if (out == nullptr ||
      std::fwrite(server.log().data(), sizeof(paced::Sent), server.log().size(), out) != server.log().size())
    die("cannot write the log");
  std::fclose(out);
  return 0;
}

int row() {
  Row r = measure({.streams = 1000, .tokens = 200, .rate = 20'000});
  print("1,000 streams", r);
  std::printf(
      "{\"events\":%llu,\"expected\":%llu,\"cpu_us_per_event\":%.4f,\"kernel_p50_us\":%.2f,\"kernel_p99_us\":%.2f,"
      "\"user_p50_us\":%.2f,\"user_p99_us\":%.2f}\n",
      static_cast<unsigned long long>(r.events), static_cast<unsigned long long>(r.expected), r.cpu_us_per_event,
      at(r.kernel_us, .5), at(r.kernel_us, .99), at(r.user_us, .5), at(r.user_us, .99));
  return 0;
}

}  // namespace
}  // namespace goodput

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  if (what == "streams")
    return goodput::streams();
  if (what == "stamp-error")
    return goodput::stamp_error();
  if (what == "row")
    return goodput::row();
  if (what == "serve" && argc == 7)
    return goodput::serve(argv + 2);
  std::fprintf(stderr, "bench_streams streams | stamp-error | row | serve STREAMS TOKENS RATE BURST LOG\n");
  return 2;
}
