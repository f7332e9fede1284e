#include "map/target.h"

#include <algorithm>
#include <cerrno>
#include <csignal>

#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <fmt/format.h>
#include <simdjson.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/limits.h"
#include "base/text.h"
#include "net/http_fetch.h"
#include "store/study.h"

namespace goodput {
namespace {

constexpr Nanos kOwnStartLimit = seconds(60);      // loading a large model from a slow disk
constexpr Nanos kLaunchStartLimit = seconds(600);  // engines that compile kernels take minutes
constexpr Nanos kStopGrace = seconds(20);

// The last lines of a file, for an error message.
std::string tail_of(const std::string& path) {
  const auto text = read_file(path, 64u << 20);
  if (!text || trim(*text).empty())
    return "it printed nothing";
  std::string_view end = trim(*text);
  size_t from = end.size();
  for (int line = 0; line < 6 && from != std::string_view::npos && from > 0; ++line)
    from = end.rfind('\n', from - 1);
  return fmt::format("the end of its output:\n{}", from == std::string_view::npos ? end : end.substr(from + 1));
}

std::string cpu_list(const std::vector<int>& cpus) { return fmt::format("{}", fmt::join(cpus, ",")); }

// One line from a pipe, or nothing once `limit` has passed, the writer is gone, or `stop` is set.
std::optional<std::string> read_line(int fd, Nanos limit, const std::atomic<bool>& stop) {
  std::string line;
  const TimePoint until = monotonic_now() + limit;
  while (monotonic_now() < until && !stop) {
    pollfd ready{.fd = fd, .events = POLLIN, .revents = 0};
    if (::poll(&ready, 1, 50) <= 0)
      continue;
    char byte;
    const ssize_t n = ::read(fd, &byte, 1);
    if (n == 0 || (n < 0 && errno != EINTR))
      return std::nullopt;
    if (n < 0)
      continue;
    if (byte == '\n')
      return line;
    if (line.size() < 65536)
      line += byte;
  }
  return std::nullopt;
}

struct ServeReady {
  int port = 0;
  Capabilities capabilities;
};

Result<ServeReady> parse_ready(const std::string& line) {
  try {
    simdjson::dom::parser parser;
    const simdjson::dom::element doc = parser.parse(line);
    const auto number = [&](const char* pointer) { return int64_t{doc.at_pointer(pointer)}; };
    ServeReady ready;
    ready.port = static_cast<int>(number("/port"));
    Capabilities& c = ready.capabilities;
    c.kv.block_size = Tokens(number("/capabilities/block_size"));
    c.kv.total = Blocks(number("/capabilities/total_blocks"));
    c.kv.per_slot = Blocks(number("/capabilities/blocks_per_slot"));
    c.kv.slots = static_cast<int>(number("/capabilities/slots"));
    c.kv.share_copies = bool{doc.at_pointer("/capabilities/share_copies")};
    c.kv.can_truncate = bool{doc.at_pointer("/capabilities/can_truncate")};
    c.max_batch_tokens = Tokens(number("/capabilities/max_batch_tokens"));
    c.max_len = Tokens(number("/capabilities/max_len"));
    return ready;
  } catch (const simdjson::simdjson_error& e) {
    return fail(ErrorCode::kFailed, fmt::format("the server's first line is not as expected ({}): {}", e.what(), line));
  }
}

Result<RunningServer> start_own(const MapOptions& options, const Settings& settings, const std::string& scratch,
                                const std::atomic<bool>& stop) {
  RunningServer server;
  server.step_log = scratch + "/steps.bin";
  server.stderr_log = scratch + "/server.log";
  SpawnOptions spawn;
  spawn.arguments = {self_path(),     "serve",       "--json",
                     "--port",        "0",           "--step-log",
                     server.step_log, "--kv-tokens", std::to_string(options.kv_tokens.count()),
                     "--drain-limit", "1s"};
  if (!options.model.empty())
    spawn.arguments.insert(spawn.arguments.end(), {"--model", options.model.string()});
  if (options.simulate)
    spawn.arguments.push_back("--simulate");
  if (!options.engine_cpus.empty())
    spawn.arguments.insert(spawn.arguments.end(), {"--cpus", cpu_list(options.engine_cpus)});
  for (const SettingRow& row : setting_rows()) {
    std::string flag = "--" + std::string(row.name);
    std::ranges::replace(flag, '_', '-');
    spawn.arguments.insert(spawn.arguments.end(), {flag, setting_text(settings, row.name)});
  }
  spawn.cpus = options.engine_cpus;
  spawn.capture_stdout = true;
  spawn.stderr_file = server.stderr_log;
  std::error_code ignored;
  std::filesystem::remove(server.step_log, ignored);
  server.child = TRY(Child::spawn(spawn));
  const auto line = read_line(server.child->stdout_fd(), kOwnStartLimit, stop);
  if (stop)
    return fail(ErrorCode::kInterrupted, "interrupted");
  if (!line) {
    server.child->wait(seconds(1));
    if (auto dead = server.death())
      return tl::unexpected(*dead);
    return fail(ErrorCode::kFailed, fmt::format("the server did not get ready within {}; {}",
                                                format_duration(kOwnStartLimit), tail_of(server.stderr_log)));
  }
  const ServeReady ready = TRY(parse_ready(*line));
  server.base_url = fmt::format("http://127.0.0.1:{}", ready.port);
  server.capabilities = ready.capabilities;
  return server;
}

// A port that is free now. Another process could take it before the server does; then the server says so and dies.
Result<int> free_port() {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  const bool ok = fd >= 0 && ::bind(fd, reinterpret_cast<sockaddr*>(&address), size) == 0 &&
                  ::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) == 0;
  if (fd >= 0)
    ::close(fd);
  if (!ok)
    return fail(ErrorCode::kExhausted, "no free port on 127.0.0.1");
  return ntohs(address.sin_port);
}

Result<RunningServer> launch(const MapOptions& options, const Settings& settings, const std::string& scratch,
                             const std::atomic<bool>& stop) {
  const int port = TRY(free_port());
  const std::string command = TRY(render_launch(options.launch, port, settings));
  RunningServer server;
  server.base_url = fmt::format("http://127.0.0.1:{}", port);
  server.stderr_log = scratch + "/server.log";
  SpawnOptions spawn;
  spawn.arguments = {"/bin/sh", "-c", "exec 2>&1; " + command};
  spawn.cpus = options.engine_cpus;
  spawn.stdout_file = server.stderr_log;
  server.child = TRY(Child::spawn(spawn));
  const Route route{.address = TRY(resolve("127.0.0.1", static_cast<uint16_t>(port))).front()};
  const std::string question =
      fmt::format("GET /v1/models HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nConnection: close\r\n\r\n", port);
  const TimePoint until = monotonic_now() + kLaunchStartLimit;
  std::string last = "nothing answered";
  while (monotonic_now() < until) {
    if (stop)
      return fail(ErrorCode::kInterrupted, "interrupted");
    if (auto dead = server.death())
      return tl::unexpected(*dead);
    const auto answer = http_fetch(route, question, seconds(2));
    if (answer && answer->status == 200)
      return server;
    last = answer ? fmt::format("GET /v1/models answered {}", answer->status) : describe(answer.error());
    server.child->wait(milliseconds(100));
  }
  return fail(ErrorCode::kUnreachable,
              fmt::format("the launched server was not ready within {}: {}; {}", format_duration(kLaunchStartLimit),
                          last, tail_of(server.stderr_log)),
              command);
}

}  // namespace

std::optional<Error> RunningServer::death() {
  if (!child)
    return std::nullopt;
  const auto status = child->poll();
  if (!status)
    return std::nullopt;
  return Error{ErrorCode::kFailed, fmt::format("the server {}; {}", describe_wait_status(*status), tail_of(stderr_log)),
               "server"};
}

Result<std::vector<StepRecord>> RunningServer::stop() {
  if (!child)
    return std::vector<StepRecord>{};
  if (auto dead = death())
    return tl::unexpected(*dead);
  child->stop(kStopGrace);
  if (step_log.empty())
    return std::vector<StepRecord>{};
  const std::string bytes = TRY(read_file(step_log, 4ull << 30));
  return decode_steps(bytes);
}

Result<std::string> render_launch(std::string_view launch_template, int port, const Settings& settings) {
  std::vector<std::string_view> names{"port"};
  for (const SettingRow& row : setting_rows())
    names.push_back(row.name);
  std::string command;
  bool has_port = false;
  for (size_t i = 0; i < launch_template.size();) {
    const size_t open = launch_template.find('{', i);
    command += launch_template.substr(i, open - i);
    if (open == std::string_view::npos)
      break;
    const size_t close = launch_template.find('}', open);
    if (launch_template.substr(open).starts_with("{{")) {  // a literal brace, as in JSON arguments
      command += '{';
      i = open + 2;
      continue;
    }
    if (close == std::string_view::npos)
      return fail(ErrorCode::kUsage, fmt::format("'{{' without '}}' at character {}", open + 1), "--launch");
    const std::string_view name = launch_template.substr(open + 1, close - open - 1);
    if (name == "port") {
      command += std::to_string(port);
      has_port = true;
    } else if (std::ranges::find(names, name) != names.end()) {
      command += setting_text(settings, name);
    } else {
      const auto near = nearest(name, names);
      return fail(ErrorCode::kUsage,
                  fmt::format("unknown placeholder {{{}}}{}", name,
                              near ? fmt::format("; did you mean {{{}}}?", *near)
                                   : "; known are {port} and "
                                     "the settings' names, e.g. {max_num_seqs}"),
                  "--launch");
    }
    i = close + 1;
  }
  if (!has_port)
    return fail(ErrorCode::kUsage, "the command must take its port from {port}, so that it can be reached", "--launch");
  return command;
}

std::string serve_flags(const Settings& settings) {
  const Settings defaults;
  std::string flags;
  for (const SettingRow& row : setting_rows()) {
    const std::string value = setting_text(settings, row.name);
    if (value == setting_text(defaults, row.name))
      continue;
    std::string name(row.name);
    std::ranges::replace(name, '_', '-');
    flags += fmt::format("{}--{} {}", flags.empty() ? "" : " ", name, value);
  }
  return flags;
}

Result<RunningServer> start_server(const MapOptions& options, const Settings& settings, const std::string& scratch,
                                   const std::atomic<bool>& stop) {
  switch (options.target) {
    case TargetKind::kEmbedded:
      return start_own(options, settings, scratch, stop);
    case TargetKind::kLaunched:
      return launch(options, settings, scratch, stop);
    case TargetKind::kRemote:
      return RunningServer{.base_url = options.base_url};
  }
  return fail(ErrorCode::kFailed, "unknown kind of target");
}

}  // namespace goodput
