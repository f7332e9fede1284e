// Ctrl-C: the first asks long work to stop and keep what there is, the second ends the process at once.
#pragma once

#include <atomic>

namespace goodput {

// Installs the handlers for SIGINT and SIGTERM (once) and returns the flag that they set.
const std::atomic<bool>& interrupt_flag();

}  // namespace goodput
