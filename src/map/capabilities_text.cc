#include "map/capabilities_text.h"

#include <fmt/format.h>

#include "base/text.h"

namespace goodput {

std::string encode_capabilities(const Capabilities& c) {
  return fmt::format("{} {} {} {} {} {} {} {}", c.kv.block_size.count(), c.kv.total.count(), c.kv.per_slot.count(),
                     c.kv.slots, int(c.kv.share_copies), int(c.kv.can_truncate), c.max_batch_tokens.count(),
                     c.max_len.count());
}

Result<Capabilities> decode_capabilities(std::string_view text) {
  const auto parts = split(text, ' ');
  if (parts.size() != 8)
    return fail(ErrorCode::kFailed, fmt::format("expected eight numbers, found '{}'", text), "capabilities");
  std::vector<int64_t> n;
  for (const auto part : parts)
    n.push_back(TRY(parse_int(part)));
  Capabilities c;
  c.kv = {.block_size = Tokens(n[0]),
          .total = Blocks(n[1]),
          .per_slot = Blocks(n[2]),
          .slots = int(n[3]),
          .share_copies = n[4] != 0,
          .can_truncate = n[5] != 0};
  c.max_batch_tokens = Tokens(n[6]);
  c.max_len = Tokens(n[7]);
  return c;
}

}  // namespace goodput
