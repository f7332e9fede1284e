// A large file written piece by piece beside its target and renamed over it when complete: the target is the old file
// or the new one, never half of it, and nothing is left over after a failure. Several writers of one target do not
// meet.
#pragma once

#include <filesystem>
#include <span>
#include <string_view>

#include "base/result.h"

namespace goodput {

class FileWriter {
 public:
  // Refuses targets that exist and are no regular files: renaming over /dev/null would replace the device.
  static Result<FileWriter> create(const std::filesystem::path& target);
  FileWriter(FileWriter&&) noexcept;
  FileWriter& operator=(FileWriter&&) = delete;
  ~FileWriter();  // removes what was not committed

  Result<void> write(std::string_view bytes);
  Result<void> commit();  // to disk and into place

 private:
  FileWriter(std::filesystem::path target, std::filesystem::path scratch, int fd);
  std::filesystem::path target_, scratch_;
  int fd_ = -1;
};

}  // namespace goodput
