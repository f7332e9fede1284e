#include "base/file.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

namespace goodput {
namespace {

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0)
      ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }
  // Closing can report a write error (quota, NFS); the destructor cannot.
  int close() { return ::close(std::exchange(fd_, -1)); }

 private:
  int fd_;
};

tl::unexpected<Error> io_error(std::string_view doing, const std::filesystem::path& path) {
  return fail(errno == ENOENT ? ErrorCode::kNotFound : ErrorCode::kIo,
              fmt::format("cannot {}: {}", doing, std::strerror(errno)), path.string());
}

Result<void> write_all(int fd, std::string_view bytes, const std::filesystem::path& path) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR)
      continue;
    if (n < 0)
      return io_error("write", path);
    bytes.remove_prefix(static_cast<size_t>(n));
  }
  return {};
}

}  // namespace

Result<std::string> read_file(const std::filesystem::path& path, uint64_t max_bytes) {
  const Descriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (fd.get() < 0)
    return io_error("open", path);
  struct stat info{};
  if (::fstat(fd.get(), &info) != 0)
    return io_error("inspect", path);
  if (S_ISDIR(info.st_mode))
    return fail(ErrorCode::kUsage, "expected a file, found a folder", path.string());
  const auto too_large = [&] {
    return fail(ErrorCode::kUsage, fmt::format("larger than the limit of {} bytes", max_bytes), path.string());
  };
  if (S_ISREG(info.st_mode) && static_cast<uint64_t>(info.st_size) > max_bytes)
    return too_large();
  std::string bytes;
  char buffer[65536];
  for (;;) {
    const ssize_t n = ::read(fd.get(), buffer, sizeof buffer);
    if (n < 0 && errno == EINTR)
      continue;
    if (n < 0)
      return io_error("read", path);
    if (n == 0)
      return bytes;
    bytes.append(buffer, static_cast<size_t>(n));
    if (bytes.size() > max_bytes)
      return too_large();
  }
}

Result<void> write_file_atomically(const std::filesystem::path& path, std::string_view bytes) {
  std::error_code ignored;
  const auto kind = std::filesystem::status(path, ignored).type();
  if (kind == std::filesystem::file_type::directory)
    return fail(ErrorCode::kUsage, "expected a file, found a folder", path.string());
  if (kind == std::filesystem::file_type::character || kind == std::filesystem::file_type::fifo) {
    // /dev/stdout and the like: renaming over a device would replace the device.
    const Descriptor device(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
    if (device.get() < 0)
      return io_error("open", path);
    return write_all(device.get(), bytes, path);
  }
  // A link stays a link: what it points to is replaced.
  const bool link = std::filesystem::is_symlink(path, ignored);
  const std::filesystem::path target = link ? std::filesystem::weakly_canonical(path, ignored) : path;
  const std::filesystem::path scratch = target.string() + fmt::format(".{}.tmp", ::getpid());
  Descriptor fd(::open(scratch.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  if (fd.get() < 0)
    return io_error("create", scratch);
  auto written = write_all(fd.get(), bytes, scratch);
  if (written && ::fsync(fd.get()) != 0 && errno != EINVAL && errno != EROFS)
    written = io_error("sync", scratch);
  if (fd.close() != 0 && written)
    written = io_error("close", scratch);
  if (written && ::rename(scratch.c_str(), target.c_str()) != 0)
    written = io_error("rename into place", target);
  if (!written)
    ::unlink(scratch.c_str());
  return written;
}

Result<void> make_directories(const std::filesystem::path& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error)
    return fail(ErrorCode::kIo, "cannot make the folder: " + error.message(), path.string());
  if (!std::filesystem::is_directory(path, error))
    return fail(ErrorCode::kIo, "expected a folder, found a file", path.string());
  return {};
}

std::filesystem::path cache_directory() {
  if (const char* xdg = std::getenv("XDG_CACHE_HOME"); xdg && *xdg)
    return std::filesystem::path(xdg) / "goodput";
  if (const char* home = std::getenv("HOME"); home && *home)
    return std::filesystem::path(home) / ".cache/goodput";
  return fmt::format("/tmp/goodput-{}", ::getuid());
}

}  // namespace goodput
