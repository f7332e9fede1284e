// What libllama keeps once per process: start-up, log, assertions. It logs to stderr and aborts on many files and
// parameters that it does not expect; here both become an Error, so that no file and no setting from outside can take
// the process down. This is the one place that touches those process-wide hooks. Thread-safe.
#pragma once

#include <functional>
#include <string_view>

#include "base/result.h"

namespace goodput {

// Starts libllama if needed and runs `call` on this thread. Its exceptions, failed assertions on this thread and a
// `false` return become kFailed: "<doing>: <the first error line that libllama logged meanwhile>". Do not use it around
// computing: an assertion in a worker thread cannot be turned into anything.
Result<void> call_libllama(std::string_view doing, const std::function<bool()>& call);

}  // namespace goodput
