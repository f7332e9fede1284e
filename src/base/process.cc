#include "base/process.h"

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <thread>
#include <utility>

#include <fcntl.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>

#include "base/clock.h"

namespace goodput {
namespace {

// Runs between fork and exec: only async-signal-safe calls, and a status byte to the parent when exec fails.
[[noreturn]] void become(const SpawnOptions& options, char* const* argv, const cpu_set_t* cpus, int stdout_fd,
                         int status_fd, pid_t parent) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent)
    ::_exit(127);  // the parent died before the request above took effect
  const bool pinned = !cpus || ::sched_setaffinity(0, sizeof *cpus, cpus) == 0;
  if (stdout_fd >= 0)
    ::dup2(stdout_fd, STDOUT_FILENO);
  const auto redirect = [](const std::string& file, int to) {
    if (file.empty())
      return true;
    const int fd = ::open(file.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
    return fd >= 0 && ::dup2(fd, to) >= 0;
  };
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  if (pinned && redirect(options.stdout_file, STDOUT_FILENO) && redirect(options.stderr_file, STDERR_FILENO))
    ::execvp(argv[0], argv);
  const int why = errno;
  [[maybe_unused]] const ssize_t n = ::write(status_fd, &why, sizeof why);
  ::_exit(127);
}

std::optional<uint64_t> status_line_kib(pid_t pid, std::string_view key) {
  std::ifstream status(fmt::format("/proc/{}/status", pid));
  std::string line;
  while (std::getline(status, line))
    if (line.starts_with(key))
      return std::strtoull(line.c_str() + key.size(), nullptr, 10) * 1024;
  return std::nullopt;
}

}  // namespace

std::vector<int> allowed_cpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> cpus;
  if (::sched_getaffinity(0, sizeof set, &set) != 0)
    return cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
    if (CPU_ISSET(cpu, &set))
      cpus.push_back(cpu);
  return cpus;
}

Result<void> pin_to_cpus(const std::vector<int>& cpus) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int cpu : cpus)
    if (cpu >= 0 && cpu < CPU_SETSIZE)
      CPU_SET(cpu, &set);
  if (::sched_setaffinity(0, sizeof set, &set) != 0)
    return fail(ErrorCode::kUsage,
                fmt::format("cannot pin to processors {}: {}; this machine offers {}", fmt::join(cpus, ","),
                            std::strerror(errno), fmt::join(allowed_cpus(), ",")));
  return {};
}

Result<Child> Child::spawn(const SpawnOptions& options) {
  if (options.arguments.empty())
    return fail(ErrorCode::kUsage, "the command to start is empty");
  std::vector<char*> argv;
  for (const auto& argument : options.arguments)
    argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int cpu : options.cpus)
    if (cpu >= 0 && cpu < CPU_SETSIZE)
      CPU_SET(cpu, &set);

  int out[2] = {-1, -1}, status[2] = {-1, -1};
  if (::pipe2(status, O_CLOEXEC) != 0 || (options.capture_stdout && ::pipe2(out, O_CLOEXEC) != 0)) {
    for (const int fd : {status[0], status[1]})
      if (fd >= 0)
        ::close(fd);
    return fail(ErrorCode::kExhausted, fmt::format("cannot make a pipe: {}", std::strerror(errno)));
  }
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid == 0)
    become(options, argv.data(), options.cpus.empty() ? nullptr : &set, out[1], status[1], parent);
  const int fork_error = errno;
  ::close(status[1]);
  if (out[1] >= 0)
    ::close(out[1]);
  int why = pid < 0 ? fork_error : 0;
  if (pid > 0) {
    ssize_t n;
    do
      n = ::read(status[0], &why, sizeof why);
    while (n < 0 && errno == EINTR);
    if (n == sizeof why)
      ::waitpid(pid, nullptr, 0);
    else
      why = 0;
  }
  ::close(status[0]);
  if (why != 0) {
    if (out[0] >= 0)
      ::close(out[0]);
    return fail(why == ENOENT ? ErrorCode::kNotFound : ErrorCode::kFailed,
                fmt::format("cannot start: {}", std::strerror(why)), options.arguments[0]);
  }
  return Child(pid, out[0]);
}

Child::~Child() {
  stop(seconds(2));
  if (stdout_fd_ >= 0)
    ::close(stdout_fd_);
}

Child::Child(Child&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      stdout_fd_(std::exchange(other.stdout_fd_, -1)),
      status_(std::exchange(other.status_, std::nullopt)),
      swept_(std::exchange(other.swept_, false)) {}

Child& Child::operator=(Child&& other) noexcept {
  if (this == &other)
    return *this;
  stop(seconds(2));
  if (stdout_fd_ >= 0)
    ::close(stdout_fd_);
  pid_ = std::exchange(other.pid_, -1);
  stdout_fd_ = std::exchange(other.stdout_fd_, -1);
  status_ = std::exchange(other.status_, std::nullopt);
  swept_ = std::exchange(other.swept_, false);
  return *this;
}

std::optional<int> Child::poll() {
  if (status_ || pid_ <= 0)
    return status_;
  int status = 0;
  if (::waitpid(pid_, &status, WNOHANG) == pid_)
    status_ = status;
  return status_;
}

std::optional<int> Child::wait(Nanos limit) {
  const TimePoint until = monotonic_now() + limit;
  while (!poll() && pid_ > 0 && monotonic_now() < until)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  return status_;
}

void Child::signal(int number) {
  if (pid_ > 0 && !poll())
    ::kill(pid_, number);
}

void Child::stop(Nanos grace) {
  if (pid_ <= 0 || swept_)
    return;
  swept_ = true;  // once: later the number may name somebody else's group
  if (poll()) {   // it is gone; what it started may not be
    ::kill(-pid_, SIGKILL);
    return;
  }
  ::kill(-pid_, SIGTERM);
  const TimePoint until = monotonic_now() + grace;
  wait(grace);
  // A shell that dies at once may leave the server it started: the group gets the same grace.
  while (::kill(-pid_, 0) == 0 && monotonic_now() < until)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  ::kill(-pid_, SIGKILL);
  wait(seconds(5));
}

std::string describe_wait_status(int status) {
  if (WIFEXITED(status))
    return fmt::format("exited with {}", WEXITSTATUS(status));
  if (WIFSIGNALED(status))
    return fmt::format("killed by signal {} ({})", WTERMSIG(status), ::strsignal(WTERMSIG(status)));
  return fmt::format("ended with wait status {}", status);
}

std::optional<uint64_t> peak_rss_bytes(pid_t pid) { return status_line_kib(pid, "VmHWM:"); }
std::optional<uint64_t> rss_bytes(pid_t pid) { return status_line_kib(pid, "VmRSS:"); }

std::optional<ThreadTimes> thread_times(pid_t pid, pid_t tid) {
  std::ifstream file(fmt::format("/proc/{}/task/{}/schedstat", pid, tid));
  int64_t running = 0, waiting = 0;
  if (!(file >> running >> waiting))
    return std::nullopt;
  return ThreadTimes{Nanos(running), Nanos(waiting)};
}

std::map<pid_t, ThreadTimes> times_of_threads(pid_t pid) {
  std::error_code error;
  std::map<pid_t, ThreadTimes> all;
  // Stepping by hand: a range-for throws when the process ends meanwhile.
  std::filesystem::directory_iterator task(fmt::format("/proc/{}/task", pid), error);
  for (const std::filesystem::directory_iterator end; !error && task != end; task.increment(error)) {
    const pid_t tid = std::atoi(task->path().filename().c_str());
    if (const auto times = thread_times(pid, tid))
      all.emplace(tid, *times);
  }
  return all;
}

std::string self_path() {
  std::error_code error;
  return std::filesystem::read_symlink("/proc/self/exe", error).string();
}

}  // namespace goodput
