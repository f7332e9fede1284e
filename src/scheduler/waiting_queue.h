// Sequences that wait, best first. Sorted in a vector with the best at its end: taking the best costs nothing,
// inserting moves a few kilobytes at the bound of max_num_queued_reqs, and nothing is allocated after construction.
#pragma once

#include <vector>

#include "scheduler/sequence.h"

namespace goodput {

class WaitingQueue {
 public:
  explicit WaitingQueue(size_t capacity) { sequences_.reserve(capacity); }

  void insert(Sequence&);  // not in the queue
  void erase(Sequence&);   // in the queue
  bool empty() const { return sequences_.empty(); }
  size_t size() const { return sequences_.size(); }
  // The i-th best; 0 is served first.
  Sequence& at(size_t i) const { return *sequences_[sequences_.size() - 1 - i]; }

 private:
  std::vector<Sequence*>::iterator place(const OrderKey&);
  std::vector<Sequence*> sequences_;  // descending by key
};

}  // namespace goodput
