#include "cli/interrupt.h"

#include <csignal>

#include <unistd.h>

namespace goodput {
namespace {

// A signal handler can only reach static storage.
std::atomic<bool> interrupted = false;

void on_signal(int number) {
  if (interrupted.exchange(true))
    ::_exit(128 + number);
}

}  // namespace

const std::atomic<bool>& interrupt_flag() {
  struct sigaction action{};
  action.sa_handler = on_signal;
  sigemptyset(&action.sa_mask);
  ::sigaction(SIGINT, &action, nullptr);
  ::sigaction(SIGTERM, &action, nullptr);
  return interrupted;
}

}  // namespace goodput
