#include "model/file_writer.h"

#include <cerrno>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

#include "base/clock.h"
#include "base/random.h"

namespace goodput {
namespace {

constexpr int kAttempts = 16;

tl::unexpected<Error> io_error(std::string_view doing, const std::filesystem::path& path) {
  return fail(ErrorCode::kIo, fmt::format("cannot {}: {}", doing, std::strerror(errno)), path.string());
}

}  // namespace

FileWriter::FileWriter(std::filesystem::path target, std::filesystem::path scratch, int fd)
    : target_(std::move(target)), scratch_(std::move(scratch)), fd_(fd) {}

FileWriter::FileWriter(FileWriter&& other) noexcept
    : target_(std::move(other.target_)), scratch_(std::move(other.scratch_)), fd_(std::exchange(other.fd_, -1)) {}

FileWriter::~FileWriter() {
  if (fd_ < 0)
    return;
  ::close(fd_);
  ::unlink(scratch_.c_str());
}

Result<FileWriter> FileWriter::create(const std::filesystem::path& target) {
  struct stat info{};
  if (::stat(target.c_str(), &info) == 0 && !S_ISREG(info.st_mode))
    return fail(ErrorCode::kIo, "cannot write: it exists and is no regular file", target.string());
  for (uint64_t attempt = 0; attempt < kAttempts; ++attempt) {
    const uint64_t now = static_cast<uint64_t>(monotonic_now().since_zero().count());
    const uint64_t name = mix64(mix64(now, static_cast<uint64_t>(::gettid())), attempt);
    const std::filesystem::path scratch = target.string() + fmt::format(".{:016x}.tmp", name);
    const int fd = ::open(scratch.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd >= 0)
      return FileWriter(target, scratch, fd);
    if (errno != EEXIST)
      break;
  }
  return io_error("create a file beside it", target);
}

Result<void> FileWriter::write(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd_, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR)
      continue;
    if (n < 0)
      return io_error("write", target_);
    bytes.remove_prefix(static_cast<size_t>(n));
  }
  return {};
}

Result<void> FileWriter::commit() {
  if (::fsync(fd_) != 0 && errno != EINVAL)
    return io_error("write to disk", target_);
  if (::rename(scratch_.c_str(), target_.c_str()) != 0)
    return io_error("rename into place", target_);
  if (::close(std::exchange(fd_, -1)) != 0)
    return io_error("close", target_);
  return {};
}

}  // namespace goodput
