// The queue's order, and the keys in which policies differ.
#include "scheduler/waiting_queue.h"

#include <algorithm>

#include "base/check.h"

namespace goodput {

OrderKey order_key(SchedulingPolicy policy, const Request& request, uint64_t number) {
  switch (policy) {
    case SchedulingPolicy::kFcfs:
      return {0, 0, number};
    case SchedulingPolicy::kPriority:
      return {request.priority, request.arrival.since_zero().count(), number};
  }
  CHECK(false, "unknown scheduling policy");
}

std::vector<Sequence*>::iterator WaitingQueue::place(const OrderKey& key) {
  return std::lower_bound(sequences_.begin(), sequences_.end(), key,
                          [](const Sequence* s, const OrderKey& k) { return s->key > k; });
}

void WaitingQueue::insert(Sequence& sequence) { sequences_.insert(place(sequence.key), &sequence); }

void WaitingQueue::erase(Sequence& sequence) {
  const auto it = place(sequence.key);
  CHECK(it != sequences_.end() && *it == &sequence, "erase of a sequence that does not wait");
  sequences_.erase(it);
}

}  // namespace goodput
