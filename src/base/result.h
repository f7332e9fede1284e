// How failure travels between rooms: a value, never an exception. `TRY` unwraps or returns the error onward, so
// that every failure path is visible and cheap to write. Exceptions of third parties are caught in the file that
// calls the third party and become an Error there.
#pragma once

#include <string>
#include <utility>

#include <tl/expected.hpp>

namespace goodput {

// What kind of failure, which decides the exit code of the process (see cli/exit_code.h).
enum class ErrorCode {
  kFailed,       // something went wrong while doing what was asked
  kUsage,        // the request itself is wrong: flag, file content, settings
  kNotFound,     // a named thing does not exist
  kIo,           // reading or writing failed: disk full, permissions
  kUnreachable,  // a server could not be reached or did not speak the protocol
  kExhausted,    // a bounded resource is full: queue, KV, descriptors
  kInterrupted,  // the user asked to stop
};

// A message says what happened and what to do; `context` says where (file, line, URL, flag).
struct Error {
  ErrorCode code = ErrorCode::kFailed;
  std::string message;
  std::string context;
};

template <class T>
using Result = tl::expected<T, Error>;

inline tl::unexpected<Error> fail(ErrorCode code, std::string message, std::string context = {}) {
  return tl::unexpected<Error>(Error{code, std::move(message), std::move(context)});
}

// "context: message", or the message alone.
inline std::string describe(const Error& e) { return e.context.empty() ? e.message : e.context + ": " + e.message; }

namespace detail {
template <class T>
T take(tl::expected<T, Error>&& r) {
  return std::move(*r);
}
inline void take(tl::expected<void, Error>&&) {}  // expected<void> has no value to move
}  // namespace detail

}  // namespace goodput

// Unwraps a Result or returns its error from the enclosing function. Never inside a coroutine around co_await:
// g++ 12 crashes on it; name the value first. The counter keeps nested uses from shadowing each other.
#define TRY(expression) GOODPUT_TRY_NAMED(expression, __COUNTER__)
#define GOODPUT_TRY_NAMED(expression, n) GOODPUT_TRY_AS(expression, GOODPUT_TRY_JOIN(try_result_, n))
#define GOODPUT_TRY_JOIN(a, b) a##b
#define GOODPUT_TRY_AS(expression, result)              \
  ({                                                    \
    auto result = (expression);                         \
    if (!result)                                        \
      return tl::unexpected(std::move(result.error())); \
    ::goodput::detail::take(std::move(result));         \
  })
