// The step log of a server, in memory until it ends.
#pragma once

#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/file.h"
#include "base/limits.h"
#include "base/log.h"
#include "store/study.h"

namespace goodput {

// Keeps every step in memory until the end: the engine's thread must never wait for a disk. Blocks, so that growing
// never copies.
class StepLog final : public StepSink {
 public:
  void write(const StepRecord& step) override {
    if (count_ >= limits::kMaxStepLogRecords)
      return;
    if (count_++ % kBlock == 0)
      blocks_.emplace_back().reserve(kBlock);
    blocks_.back().push_back(step);
  }
  // After the engine has gone.
  Result<void> save(const std::string& path) const {
    std::vector<StepRecord> all;
    all.reserve(count_);
    for (const auto& block : blocks_)
      all.insert(all.end(), block.begin(), block.end());
    if (count_ >= limits::kMaxStepLogRecords)
      log::warn(fmt::format("the step log holds the first {} steps only", count_));
    return write_file_atomically(path, encode_steps(all));
  }

 private:
  static constexpr size_t kBlock = 4096;
  size_t count_ = 0;
  std::vector<std::vector<StepRecord>> blocks_;
};

}  // namespace goodput
