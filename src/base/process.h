// Child processes and what the kernel says about processes: the load generator and the server run apart, share no
// memory, and are watched from outside.
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

#include "base/result.h"
#include "base/units.h"

namespace goodput {

// Processors this process may run on, ascending.
std::vector<int> allowed_cpus();
// Binds the calling thread (and threads it starts later) to these processors.
Result<void> pin_to_cpus(const std::vector<int>& cpus);

struct SpawnOptions {
  std::vector<std::string> arguments;    // arguments[0] is the program, looked up in PATH
  std::vector<int> cpus;                 // empty: inherit
  std::string stdout_file, stderr_file;  // empty: inherit; "-": see capture_stdout
  bool capture_stdout = false;           // stdout becomes a pipe, see Child::stdout_fd
};

// A process we started and therefore may end. It is told to die with its parent, and ended on destruction: SIGTERM,
// a grace period, SIGKILL; always by id. "Parent" means the thread that spawned it (prctl(2), PR_SET_PDEATHSIG): spawn
// from a thread that outlives the child.
class Child {
 public:
  static Result<Child> spawn(const SpawnOptions&);
  ~Child();
  Child(Child&&) noexcept;
  Child& operator=(Child&&) noexcept;

  pid_t pid() const { return pid_; }
  int stdout_fd() const { return stdout_fd_; }  // -1 when not captured
  // The wait status once it has ended; nullopt while it runs. Never blocks.
  std::optional<int> poll();
  // Blocks until it ends; nullopt after `limit`.
  std::optional<int> wait(Nanos limit);
  void signal(int number);
  void stop(Nanos grace);  // SIGTERM to its process group, then SIGKILL to what is left of it after `grace`

 private:
  Child(pid_t pid, int stdout_fd) : pid_(pid), stdout_fd_(stdout_fd) {}
  pid_t pid_ = -1;
  int stdout_fd_ = -1;
  std::optional<int> status_;
  bool swept_ = false;  // its group has been told to end
};

// "exited with 3", "killed by signal 9 (Killed)".
std::string describe_wait_status(int status);

// What /proc says; absent where it does not.
std::optional<uint64_t> peak_rss_bytes(pid_t pid);  // VmHWM
std::optional<uint64_t> rss_bytes(pid_t pid);       // VmRSS
// Time on a processor, and runnable but waiting for one.
struct ThreadTimes {
  Nanos running, waiting;
};
std::optional<ThreadTimes> thread_times(pid_t pid, pid_t tid);  // /proc/PID/task/TID/schedstat
std::map<pid_t, ThreadTimes> times_of_threads(pid_t pid);       // of its threads now alive; empty: no such process

// The path of the running program.
std::string self_path();

}  // namespace goodput
