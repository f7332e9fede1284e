// From the engine's thread to the HTTP loop: the engine must not build text, and the loop wakes once for what collected
// meanwhile instead of once per token.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "engine/engine.h"

namespace goodput {

class Generation;

class Outbox {
 public:
  struct Item {
    std::shared_ptr<Generation> generation;
    RequestUpdate update;
  };

  // `wake` makes the owner call take() soon; called by the pusher with the last update of a step: waking at the
  // first would let the woken thread take the engine's processor in the middle of it, once per token.
  explicit Outbox(std::function<void()> wake) : wake_(std::move(wake)) {}

  void push(std::shared_ptr<Generation> generation, const RequestUpdate& update) {
    {
      std::lock_guard lock(mutex_);
      items_.push_back({std::move(generation), update});
    }
    if (!update.more)
      wake_();
  }
  // Swaps the content into `to`, which must be empty; its capacity is used for what comes next.
  void take(std::vector<Item>& to) {
    std::lock_guard lock(mutex_);
    items_.swap(to);
  }

 private:
  const std::function<void()> wake_;
  std::mutex mutex_;
  std::vector<Item> items_;
};

}  // namespace goodput
