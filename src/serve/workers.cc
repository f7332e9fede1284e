#include "serve/workers.h"

#include <pthread.h>

namespace goodput {

Workers::Workers(int threads) {
  for (int i = 0; i < threads; ++i)
    threads_.emplace_back([this] { work(); });
}

Workers::~Workers() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  for (auto& thread : threads_)
    thread.join();
}

void Workers::submit(std::function<void()> work) {
  {
    std::lock_guard lock(mutex_);
    queue_.push_back(std::move(work));
  }
  changed_.notify_all();
}

void Workers::wait_idle() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return queue_.empty() && busy_ == 0; });
}

void Workers::work() {
  ::pthread_setname_np(::pthread_self(), "tokenizer");
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return stopping_ || !queue_.empty(); });
    if (queue_.empty())
      return;
    auto next = std::move(queue_.front());
    queue_.pop_front();
    ++busy_;
    lock.unlock();
    next();
    next = nullptr;
    lock.lock();
    --busy_;
    if (queue_.empty() && busy_ == 0)
      changed_.notify_all();
  }
}

}  // namespace goodput
