// Children: how they start, end and are ended, and what the kernel says about processes.
#include "base/process.h"

#include <csignal>
#include <cstdlib>

#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "base/clock.h"
#include "base/file.h"

namespace goodput {
namespace {

const Nanos kLong = seconds(60);  // a bound that only a broken test reaches

SpawnOptions shell(std::string script) {
  SpawnOptions options;
  options.arguments = {"sh", "-c", std::move(script)};
  return options;
}

std::string read_line(int fd) {
  std::string line;
  char c;
  while (::read(fd, &c, 1) == 1 && c != '\n')
    line += c;
  return line;
}

TEST(Process, ReportsTheExitStatus) {
  auto child = Child::spawn(shell("exit 3"));
  ASSERT_TRUE(child);
  const auto status = child->wait(kLong);
  ASSERT_TRUE(status);
  EXPECT_EQ(describe_wait_status(*status), "exited with 3");
  EXPECT_EQ(child->poll(), status);  // it stays known
}

TEST(Process, SaysWhyItCannotStart) {
  SpawnOptions options;
  EXPECT_EQ(Child::spawn(options).error().code, ErrorCode::kUsage);
  options.arguments = {"no-such-program-goodput"};
  auto missing = Child::spawn(options);
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, ErrorCode::kNotFound);
  EXPECT_EQ(describe(missing.error()), "no-such-program-goodput: cannot start: No such file or directory");
  options.arguments = {"/dev/null"};
  EXPECT_EQ(Child::spawn(options).error().code, ErrorCode::kFailed);
  options = shell("exit 0");
  options.stdout_file = "/no-such-folder/out";
  EXPECT_FALSE(Child::spawn(options));
  options = shell("exit 0");
  options.cpus = {100'000, -1};  // none of them exists
  EXPECT_FALSE(Child::spawn(options));
}

TEST(Process, CapturesItsOutput) {
  SpawnOptions options = shell("echo hello; echo again");
  options.capture_stdout = true;
  auto child = Child::spawn(options);
  ASSERT_TRUE(child);
  EXPECT_EQ(read_line(child->stdout_fd()), "hello");
  EXPECT_EQ(read_line(child->stdout_fd()), "again");
  EXPECT_EQ(read_line(child->stdout_fd()), "");  // end of file, since no one else holds the pipe
}

TEST(Process, WritesItsOutputToFiles) {
  const std::string out = ::testing::TempDir() + "goodput-process-out", err = out + "-err";
  SpawnOptions options = shell("echo one; echo two >&2");
  options.stdout_file = out;
  options.stderr_file = err;
  auto child = Child::spawn(options);
  ASSERT_TRUE(child && child->wait(kLong));
  EXPECT_EQ(read_file(out, 100).value(), "one\n");
  EXPECT_EQ(read_file(err, 100).value(), "two\n");
  ::unlink(out.c_str());
  ::unlink(err.c_str());
}

TEST(Process, SignalsEndIt) {
  auto child = Child::spawn(shell("sleep 600"));
  ASSERT_TRUE(child);
  EXPECT_FALSE(child->poll());
  EXPECT_FALSE(child->wait(Nanos(0)));
  child->signal(SIGTERM);
  const auto status = child->wait(kLong);
  ASSERT_TRUE(status);
  EXPECT_EQ(describe_wait_status(*status), "killed by signal 15 (Terminated)");
  child->signal(SIGTERM);  // gone: its id may be someone else's by now
}

TEST(Process, StopEscalatesToKill) {
  SpawnOptions options = shell("trap '' TERM; echo ready; while :; do sleep 600; done");
  options.capture_stdout = true;
  auto child = Child::spawn(options);
  ASSERT_TRUE(child);
  ASSERT_EQ(read_line(child->stdout_fd()), "ready");
  child->stop(milliseconds(50));
  const auto status = child->poll();
  ASSERT_TRUE(status);
  EXPECT_EQ(describe_wait_status(*status), "killed by signal 9 (Killed)");
}

TEST(Process, StopEndsWhatTheChildStarted) {
  // The shell dies of SIGTERM at once; its child ignores it and would hold the pipe open for ten minutes.
  SpawnOptions options = shell("(trap '' TERM; echo ready; sleep 600) & wait");
  options.capture_stdout = true;
  auto child = Child::spawn(options);
  ASSERT_TRUE(child);
  ASSERT_EQ(read_line(child->stdout_fd()), "ready");
  child->stop(milliseconds(50));
  EXPECT_EQ(read_line(child->stdout_fd()), "");
}

TEST(Process, DestructionAndAssignmentEndIt) {
  pid_t pid = 0;
  {
    auto child = Child::spawn(shell("exec sleep 600"));
    ASSERT_TRUE(child);
    pid = child->pid();
    Child moved = std::move(*child);
    EXPECT_EQ(moved.pid(), pid);
    EXPECT_EQ(::kill(pid, 0), 0);
  }
  EXPECT_NE(::kill(pid, 0), 0);
  auto first = Child::spawn(shell("exec sleep 600")), second = Child::spawn(shell("exec sleep 600"));
  ASSERT_TRUE(first && second);
  pid = first->pid();
  *first = std::move(*second);
  EXPECT_NE(::kill(pid, 0), 0);
}

TEST(Process, PinsAChild) {
  const std::vector<int> cpus = allowed_cpus();
  ASSERT_FALSE(cpus.empty());
  SpawnOptions options = shell("grep Cpus_allowed_list /proc/self/status");
  options.cpus = {cpus.back()};
  options.capture_stdout = true;
  auto child = Child::spawn(options);
  ASSERT_TRUE(child);
  EXPECT_EQ(read_line(child->stdout_fd()), "Cpus_allowed_list:\t" + std::to_string(cpus.back()));
}

TEST(Process, PinningToNoProcessorNamesTheOnesThatExist) {
  const auto r = pin_to_cpus({100'000});
  ASSERT_FALSE(r);
  EXPECT_EQ(r.error().code, ErrorCode::kUsage);
  EXPECT_NE(r.error().message.find("this machine offers"), std::string::npos);
  EXPECT_TRUE(pin_to_cpus(allowed_cpus()));
}

TEST(Process, ReadsProc) {
  const pid_t self = ::getpid();
  ASSERT_TRUE(rss_bytes(self));
  EXPECT_GT(*rss_bytes(self), 100'000u);
  EXPECT_GE(*peak_rss_bytes(self) + 4'000'000, *rss_bytes(self));
  const pid_t none = 2'000'000'000;
  EXPECT_FALSE(rss_bytes(none));
  EXPECT_FALSE(peak_rss_bytes(none));
  EXPECT_FALSE(thread_times(none, none));
  EXPECT_TRUE(times_of_threads(none).empty());
  if (const auto one = thread_times(self, self)) {  // needs the kernel's schedstats
    const auto all = times_of_threads(self);
    ASSERT_TRUE(all.contains(self));
    EXPECT_GE(one->running, Nanos(0));
    EXPECT_GE(all.at(self).running, one->running);
    EXPECT_GE(all.at(self).waiting, one->waiting);
  }
  EXPECT_NE(self_path().find("base_test"), std::string::npos);
}

}  // namespace
}  // namespace goodput
