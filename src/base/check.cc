#include "base/check.h"

#include <cstdio>
#include <cstdlib>

namespace goodput::detail {

void check_failed(const char* file, int line, const char* condition, std::string_view message) {
  std::fprintf(stderr, "goodput: internal error at %s:%d: %s does not hold. %.*s\nThis is a bug; please report it.\n",
               file, line, condition, static_cast<int>(message.size()), message.data());
  std::abort();
}

}  // namespace goodput::detail
