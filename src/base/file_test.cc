// Whole files: what is read, what is refused, and that a failed write leaves nothing behind.
#include "base/file.h"

#include <cstdlib>
#include <fstream>
#include <optional>

#include <csignal>

#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <gtest/gtest.h>

namespace goodput {
namespace {

namespace fs = std::filesystem;

class FileTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = ::testing::TempDir() + "goodput-file-XXXXXX";
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override {
    std::error_code ignored;
    fs::permissions(folder_, fs::perms::owner_all, ignored);
    fs::remove_all(folder_, ignored);
  }
  size_t entries() const { return static_cast<size_t>(std::distance(fs::directory_iterator(folder_), {})); }

  fs::path folder_;
};

TEST_F(FileTest, WritesReadsAndReplaces) {
  const fs::path path = folder_ / "a";
  const std::string bytes("x\0y\n", 4);
  ASSERT_TRUE(write_file_atomically(path, bytes));
  EXPECT_EQ(read_file(path, 4).value(), bytes);
  ASSERT_TRUE(write_file_atomically(path, ""));
  EXPECT_EQ(read_file(path, 0).value(), "");
  const std::string large(200'000, 'z');
  ASSERT_TRUE(write_file_atomically(path, large));
  EXPECT_EQ(read_file(path, large.size()).value(), large);
  EXPECT_EQ(entries(), 1u);
}

TEST_F(FileTest, RefusesWhatIsTooLarge) {
  const fs::path path = folder_ / "a";
  ASSERT_TRUE(write_file_atomically(path, "12345"));
  const auto r = read_file(path, 4);
  ASSERT_FALSE(r);
  EXPECT_EQ(r.error().code, ErrorCode::kUsage);
  EXPECT_NE(describe(r.error()).find(path.string()), std::string::npos);
  EXPECT_FALSE(read_file("/dev/zero", 100'000));   // without an end: bounded all the same
  EXPECT_FALSE(read_file("/proc/self/maps", 10));  // says it is empty, and is not
}

TEST_F(FileTest, NamesWhatIsMissingOrAFolder) {
  EXPECT_EQ(read_file(folder_ / "none", 10).error().code, ErrorCode::kNotFound);
  EXPECT_EQ(read_file(folder_, 10).error().code, ErrorCode::kUsage);
  EXPECT_EQ(write_file_atomically(folder_, "x").error().code, ErrorCode::kUsage);
  EXPECT_EQ(write_file_atomically(folder_ / "none" / "a", "x").error().code, ErrorCode::kNotFound);
  ASSERT_TRUE(write_file_atomically(folder_ / "file", "x"));
  EXPECT_EQ(write_file_atomically(folder_ / "file" / "a", "x").error().code, ErrorCode::kIo);
  EXPECT_EQ(entries(), 1u);
}

TEST_F(FileTest, AFullDeviceIsAnErrorAndStaysADevice) {
  if (!fs::is_character_file("/dev/full"))
    GTEST_SKIP() << "no /dev/full here";
  const auto r = write_file_atomically("/dev/full", "x");
  ASSERT_FALSE(r);
  EXPECT_EQ(r.error().code, ErrorCode::kIo);
  EXPECT_NE(r.error().message.find("No space left"), std::string::npos);
  EXPECT_TRUE(fs::is_character_file("/dev/full"));
  EXPECT_TRUE(write_file_atomically("/dev/null", "x"));
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
}

TEST_F(FileTest, ALinkStaysALink) {
  ASSERT_TRUE(write_file_atomically(folder_ / "target", "old"));
  fs::create_symlink("target", folder_ / "link");
  ASSERT_TRUE(write_file_atomically(folder_ / "link", "new"));
  EXPECT_TRUE(fs::is_symlink(folder_ / "link"));
  EXPECT_EQ(read_file(folder_ / "target", 10).value(), "new");
}

TEST_F(FileTest, AnUnwritableFolderKeepsTheOldFile) {
  ASSERT_TRUE(write_file_atomically(folder_ / "a", "old"));
  fs::permissions(folder_,
                  fs::perms::owner_read | fs::perms::owner_exec | fs::perms::others_read | fs::perms::others_exec);
  const auto write_as_a_user = [&] {
    if (::geteuid() == 0 && ::setuid(65534) != 0)
      ::_exit(1);  // root may write anywhere
    const auto r = write_file_atomically(folder_ / "a", "new");
    ::_exit(!r && r.error().code == ErrorCode::kIo ? 7 : 2);
  };
  EXPECT_EXIT(write_as_a_user(), ::testing::ExitedWithCode(7), "");
  EXPECT_EQ(read_file(folder_ / "a", 10).value(), "old");
}

// Fails the write itself, for any user: the child's files may not grow past four bytes.
TEST_F(FileTest, AFailedWriteLeavesNothing) {
  ASSERT_TRUE(write_file_atomically(folder_ / "a", "old"));
  const std::string path = (folder_ / "a").string();
  const auto write_under_a_limit = [&] {
    ::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit = {4, 4};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    const auto r = write_file_atomically(path, "too long for the limit");
    ::_exit(!r && r.error().code == ErrorCode::kIo ? 7 : 1);
  };
  EXPECT_EXIT(write_under_a_limit(), ::testing::ExitedWithCode(7), "");
  EXPECT_EQ(read_file(path, 10).value(), "old");
  EXPECT_EQ(entries(), 1u);
}

TEST_F(FileTest, MakesFoldersWithTheirParents) {
  EXPECT_TRUE(make_directories(folder_ / "a/b/c"));
  EXPECT_TRUE(make_directories(folder_ / "a/b/c"));
  EXPECT_TRUE(fs::is_directory(folder_ / "a/b/c"));
  ASSERT_TRUE(write_file_atomically(folder_ / "file", "x"));
  EXPECT_EQ(make_directories(folder_ / "file").error().code, ErrorCode::kIo);
  EXPECT_EQ(make_directories(folder_ / "file" / "a").error().code, ErrorCode::kIo);
}

class Environment {  // sets a variable for one test
 public:
  Environment(const char* name, const char* value) : name_(name) {
    if (const char* was = std::getenv(name))
      was_ = was;
    value ? ::setenv(name, value, 1) : ::unsetenv(name);
  }
  ~Environment() { was_ ? ::setenv(name_, was_->c_str(), 1) : ::unsetenv(name_); }

 private:
  const char* name_;
  std::optional<std::string> was_;
};

TEST(CacheDirectory, FollowsXdgThenHomeThenTmp) {
  const Environment xdg("XDG_CACHE_HOME", "/x");
  EXPECT_EQ(cache_directory(), "/x/goodput");
  const Environment no_xdg("XDG_CACHE_HOME", "");
  const Environment home("HOME", "/h");
  EXPECT_EQ(cache_directory(), "/h/.cache/goodput");
  const Environment no_home("HOME", nullptr);
  EXPECT_EQ(cache_directory(), "/tmp/goodput-" + std::to_string(::getuid()));
}

}  // namespace
}  // namespace goodput
