// A few threads that take work in order from one queue: tokenizing a long prompt takes milliseconds, which neither the
// engine's thread nor the HTTP loop may spend. The bound on the queue is the caller's admission.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace goodput {

class Workers {
 public:
  explicit Workers(int threads);
  ~Workers();  // finishes what is queued

  void submit(std::function<void()> work);  // thread-safe
  void wait_idle();                         // until nothing is queued or at work

 private:
  void work();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> queue_;
  size_t busy_ = 0;
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace goodput
