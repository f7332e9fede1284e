// CHECK guards our own invariants, in release builds too: a broken invariant stops the process with the place and
// the values, because every number after it would be wrong. Never for input from outside: that is a Result.
#pragma once

#include <string_view>

namespace goodput::detail {
[[noreturn]] void check_failed(const char* file, int line, const char* condition, std::string_view message);
}

#define CHECK(condition, ...)                                                                            \
  do {                                                                                                   \
    if (!(condition)) [[unlikely]]                                                                       \
      ::goodput::detail::check_failed(__FILE__, __LINE__, #condition, std::string_view{"" __VA_ARGS__}); \
  } while (false)
