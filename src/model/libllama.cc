#include "model/libllama.h"

#include <cstdio>
#include <mutex>
#include <stdexcept>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <ggml.h>
#include <llama.h>

#include "base/log.h"
#include "base/text.h"

namespace goodput {
namespace {

// libllama's hooks are per process and carry no context, so what a call is waiting for has to be found by its thread.
struct Listener {
  bool active = false;
  std::string first_error;
};
thread_local Listener listener;

// "llama_model_load: error loading model: X\n" → "error loading model: X": the function means nothing to a user.
std::string without_function(std::string_view line) {
  line = trim(line);
  const size_t colon = line.find(": ");
  if (colon != std::string_view::npos && line.substr(0, colon).find(' ') == std::string_view::npos)
    line.remove_prefix(colon + 2);
  return std::string(line);
}

void on_log(ggml_log_level level, const char* text, void*) noexcept {
  try {
    if (level != GGML_LOG_LEVEL_ERROR && level != GGML_LOG_LEVEL_WARN)
      return;
    const std::string line = without_function(text);
    if (line.empty())
      return;
    if (!listener.active) {
      log::debug("libllama: " + line);
    } else if (level == GGML_LOG_LEVEL_ERROR && listener.first_error.empty()) {
      listener.first_error = line;
    }
  } catch (...) {  // NOLINT(bugprone-empty-catch): a lost log line is not worth an abort
  }
}

// ggml aborts when this returns. Thrown through its C frames (they carry unwind tables on every 64-bit Linux), the
// exception is handled by libllama's own clean-up on the way to us.
void on_failed_assertion(const char* message) {
  std::string_view what = message;
  if (const size_t slash = what.substr(0, what.find(": ")).rfind('/'); slash != std::string_view::npos)
    what.remove_prefix(slash + 1);
  if (listener.active)
    throw std::runtime_error("assertion of libllama: " + std::string(what));
  std::fprintf(stderr, "libllama: %s\n", message);
}

void start_libllama() {
  static std::once_flag once;
  std::call_once(once, [] {
    llama_log_set(on_log, nullptr);
    ggml_set_abort_callback(on_failed_assertion);
    llama_backend_init();
  });
}

}  // namespace

Result<void> call_libllama(std::string_view doing, const std::function<bool()>& call) {
  start_libllama();
  const Listener outer = std::exchange(listener, Listener{true, {}});
  bool succeeded = false;
  std::string thrown;
  try {
    succeeded = call();
  } catch (const std::exception& e) {
    thrown = e.what();
  } catch (...) {
    thrown = "unknown exception";
  }
  const std::string logged = std::exchange(listener, outer).first_error;
  if (succeeded)
    return {};
  const std::string& why = !logged.empty() ? logged : thrown;
  return fail(ErrorCode::kFailed, why.empty() ? std::string(doing) : fmt::format("{}: {}", doing, why));
}

}  // namespace goodput
