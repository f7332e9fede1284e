#include "scheduler/can_ever_run.h"

#include <algorithm>

#include <fmt/format.h>

namespace goodput {

Result<void> can_ever_run(const Request& request, const Settings& settings, const KvGeometry& kv) {
  if (request.prompt.empty())
    return fail(ErrorCode::kUsage, "the prompt is empty: expected at least one token");
  if (request.max_new < Tokens(1)) {
    return fail(ErrorCode::kUsage, fmt::format("max_new is {}: expected at least 1", request.max_new.count()));
  }
  const int64_t length = static_cast<int64_t>(request.prompt.size()) + request.max_new.count();
  if (length > settings.max_model_len.count()) {
    return fail(ErrorCode::kUsage,
                fmt::format("{} prompt tokens and {} new ones exceed max_model_len {}", request.prompt.size(),
                            request.max_new.count(), settings.max_model_len.count()));
  }
  const Blocks most = std::min(kv.total, kv.per_slot);
  const Blocks blocks = blocks_for(Tokens(length - 1), kv.block_size);  // the last token is never computed
  if (blocks > most) {
    return fail(ErrorCode::kUsage, fmt::format("{} prompt tokens and {} new ones need {} KV blocks of {} tokens, but "
                                               "there are {}",
                                               request.prompt.size(), request.max_new.count(), blocks.count(),
                                               kv.block_size.count(), most.count()));
  }
  return {};
}

}  // namespace goodput
