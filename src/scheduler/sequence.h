// An accepted request on its way through the scheduler. Its tokens survive preemption; its KV may not.
#pragma once

#include <compare>
#include <optional>
#include <vector>

#include "scheduler/batch.h"
#include "scheduler/settings.h"

namespace goodput {

// Who is served first: the smaller key. Unique by `number`, the order of submission. A policy is nothing but the way in
// which it fills the first two (order_key in waiting_queue.cc).
struct OrderKey {
  int64_t first = 0, second = 0;
  uint64_t number = 0;
  auto operator<=>(const OrderKey&) const = default;
};

struct Sequence {
  enum class State : uint8_t {
    kWaiting,  // in the queue: never admitted, or preempted
    kRunning,  // admitted: has a slot
    kEnded,    // told; its slot, if any, is given back by the next next()
  };

  Request request;              // without its prompt, which became the beginning of `tokens`
  std::vector<TokenId> tokens;  // prompt and generated
  Tokens prompt{0};
  Tokens computed{0};  // KV of the slot holds tokens[0, computed); less than tokens.size() while alive
  Tokens planned{0};   // to be computed in the batch that is being made
  Tokens cached{0};    // of the prompt, found in the cache at the first admission
  std::optional<Slot> slot;
  OrderKey key;
  State state = State::kWaiting;
  FinishReason finish = FinishReason::kNone;  // asked for while in flight, or how it ended
  bool told_scheduled = false;
  bool lost = false;  // its KV was lost once
  bool admitted_before = false;

  Tokens size() const { return Tokens(tokens.size()); }
  Tokens generated() const { return size() - prompt; }
  Tokens uncomputed() const { return size() - computed; }
  bool decodes() const { return uncomputed() == Tokens(1) && generated() > Tokens(0); }
};

OrderKey order_key(SchedulingPolicy, const Request&, uint64_t number);

}  // namespace goodput
