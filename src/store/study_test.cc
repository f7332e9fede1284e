#include "store/study.h"

#include <csignal>
#include <filesystem>
#include <fstream>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sqlite3.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "store/arbitrary.h"

namespace goodput {
namespace {

namespace fs = std::filesystem;

class StudyTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "goodput-study-XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
    fs::permissions(folder_, fs::perms(0755));
  }
  void TearDown() override { fs::remove_all(folder_); }

  fs::path path() const { return folder_ / "study.db"; }
  std::unique_ptr<Study> made() {
    auto study = Study::open(path(), true);
    EXPECT_TRUE(study) << describe(study.error());
    return std::move(*study);
  }

  fs::path folder_;
};

PointRow row(std::string key) {
  return {.phase = "measure",
          .key = std::move(key),
          .settings_json = "{}",
          .offered_rate = 2.5,
          .seed = UINT64_MAX,
          .executor = "simulated",
          .schedule_hash = "ab",
          .summary_json = R"({"a":1})",
          .records_hash = {}};
}

// Runs SQL as any other program would.
void sql(const fs::path& path, const std::string& text) {
  sqlite3* db = nullptr;
  ASSERT_EQ(sqlite3_open(path.c_str(), &db), SQLITE_OK);
  char* message = nullptr;
  EXPECT_EQ(sqlite3_exec(db, text.c_str(), nullptr, nullptr, &message), SQLITE_OK) << message;
  sqlite3_close(db);
}

// Runs `work` in a child; its exit status is what `work` returned.
template <class Work>
int in_child(Work work) {
  const pid_t pid = ::fork();
  if (pid == 0)
    ::_exit(work());
  int status = 0;
  EXPECT_EQ(::waitpid(pid, &status, 0), pid);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

TEST_F(StudyTest, KeepsPointsRecordsAndSteps) {
  Random random(1, "study");
  std::vector<RequestRecord> records = {arbitrary::record(random, 1), arbitrary::record(random, 0)};
  const auto steps = arbitrary::steps(random, 50);
  PointRow first = row("one"), second = row("two");
  {
    const auto study = made();
    ASSERT_TRUE(study->add_point(first, records, steps));
    ASSERT_TRUE(study->add_point(second, {}, {}));
    ASSERT_TRUE(study->set_meta("workload", "x"));
    ASSERT_TRUE(study->set_meta("workload", "y"));
  }
  std::swap(records[0], records[1]);
  EXPECT_EQ(first.records_hash, records_hash(records));
  EXPECT_EQ(second.records_hash, "");
  EXPECT_FALSE(fs::exists(path().string() + "-wal"));  // a closed study is one file
  const auto study = Study::open(path(), false);
  ASSERT_TRUE(study) << describe(study.error());
  EXPECT_EQ((*study)->meta("workload")->value(), "y");
  EXPECT_FALSE((*study)->meta("other")->has_value());
  const auto points = (*study)->points();
  ASSERT_EQ(points->size(), 2u);
  EXPECT_EQ((*points)[0].key, "one");
  EXPECT_EQ((*points)[0].seed, UINT64_MAX);
  EXPECT_EQ((*points)[0].records_hash, first.records_hash);
  EXPECT_EQ((*points)[0].summary_json, R"({"a":1})");
  EXPECT_EQ((*(*study)->find_point("two"))->id, second.id);
  EXPECT_FALSE((*study)->find_point("three")->has_value());
  EXPECT_EQ(*(*study)->records(first.id), records);
  EXPECT_EQ(*(*study)->steps(first.id), steps);
  EXPECT_TRUE((*study)->records(second.id)->empty());
  EXPECT_TRUE((*study)->verify()->empty());
}

TEST_F(StudyTest, AnExistingKeyIsAnErrorAndChangesNothing) {
  const auto study = made();
  PointRow first = row("one"), again = row("one");
  ASSERT_TRUE(study->add_point(first, {}, {}));
  const auto refused = study->add_point(again, {}, {});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message, "the study has a point \"one\" already");
  EXPECT_EQ(again.id, 0);
  EXPECT_EQ(study->points()->size(), 1u);
}

TEST_F(StudyTest, TwoRecordsOfOneIndexLeaveNothingBehind) {
  const auto study = made();
  Random random(1, "twice");
  PointRow point = row("one");
  EXPECT_FALSE(study->add_point(point, {arbitrary::record(random, 5), arbitrary::record(random, 5)}, {}));
  EXPECT_TRUE(study->points()->empty());
}

TEST_F(StudyTest, ColumnsAnswerWhatPeopleAsk) {
  RequestRecord r;
  r.cls = 2;
  r.outcome = Outcome::kOk;
  r.scheduled = TimePoint(seconds(100));
  r.dispatched = r.first_chunk = r.scheduled;
  r.first_token = r.scheduled + milliseconds(40);
  r.done = r.closed = r.scheduled + milliseconds(90);
  r.output_tokens = Tokens(6);
  r.events = {{milliseconds(40), std::nullopt, 1}};
  PointRow point = row("one");
  ASSERT_TRUE(made()->add_point(point, {r}, {}));
  sql(path(),
      "CREATE TABLE ok AS SELECT 1 / (cls = 2 AND outcome = 'ok' AND scheduled_ms = 0 AND ttft_ms = 40 AND "
      "e2e_ms = 90 AND output_tokens = 6) AS one FROM requests; CREATE TABLE same (x NOT NULL); "
      "INSERT INTO same SELECT one FROM ok");
}

TEST_F(StudyTest, VerifyNamesWhatWasChanged) {
  Random random(4, "verify");
  std::vector<StepRecord> steps = {arbitrary::step(random)};
  {
    const auto study = made();
    for (const char* key : {"a", "b", "c", "d"}) {
      PointRow point = row(key);
      ASSERT_TRUE(study->add_point(point, {arbitrary::record(random, 0), arbitrary::record(random, 1)}, steps));
    }
  }
  sql(path(),
      "DELETE FROM requests WHERE point = 1 AND idx = 1;"
      "UPDATE requests SET record = x'00' WHERE point = 2 AND idx = 0;"
      "UPDATE steps SET log = x'00' WHERE point = 4");
  const auto study = Study::open(path(), false);
  EXPECT_EQ(*(*study)->verify(), (std::vector<std::string>{"a", "b", "d"}));
  EXPECT_FALSE((*study)->records(2));
}

TEST_F(StudyTest, WhatIsNotAStudyIsRefused) {
  EXPECT_EQ(Study::open(path(), false).error().code, ErrorCode::kNotFound);
  EXPECT_EQ(Study::open(folder_, true).error().code, ErrorCode::kUsage);
  EXPECT_EQ(Study::open(folder_ / "no" / "study.db", true).error().code, ErrorCode::kIo);
  std::ofstream(path()) << std::string(5000, 'x');
  auto refused = Study::open(path(), true);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kUsage);
  EXPECT_NE(refused.error().message.find("not a study file"), std::string::npos);
  EXPECT_EQ(fs::file_size(path()), 5000u);
  fs::remove(path());
  std::ofstream(path()).flush();
  EXPECT_EQ(Study::open(path(), false).error().message, "an empty file, not a study");
  fs::remove(path());
  sql(path(), "CREATE TABLE mine (x)");
  EXPECT_EQ(Study::open(path(), true).error().message, "a SQLite database, but not a study: name another file");
}

TEST_F(StudyTest, AnotherSchemaVersionIsRefused) {
  made();
  sql(path(), "PRAGMA user_version = 99");
  const auto refused = Study::open(path(), true);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kUsage);
  EXPECT_NE(refused.error().message.find("schema version 99"), std::string::npos);
}

TEST_F(StudyTest, DamagedFilesNeverCrash) {
  Random random(9, "damage");
  {
    const auto study = made();
    for (int i = 0; i < 5; ++i) {
      PointRow point = row(std::to_string(i));
      ASSERT_TRUE(study->add_point(point, arbitrary::records(random, 20), arbitrary::steps(random, 20)));
    }
  }
  std::ifstream in(path(), std::ios::binary);
  const std::string whole((std::istreambuf_iterator<char>(in)), {});
  for (int round = 0; round < 60; ++round) {
    std::string bytes = whole;
    if (random.uniform_int(0, 3) == 0)
      bytes.resize(static_cast<size_t>(random.uniform_int(0, std::ssize(bytes) - 1)));
    for (int i = 0; i < 40 && !bytes.empty(); ++i)
      bytes[static_cast<size_t>(random.uniform_int(0, std::ssize(bytes) - 1))] = static_cast<char>(random.next());
    std::ofstream(path(), std::ios::binary | std::ios::trunc) << bytes;
    const auto study = Study::open(path(), false);
    if (!study)
      continue;
    (void)(*study)->verify();
    if (const auto points = (*study)->points())
      for (const PointRow& p : *points) {
        (void)(*study)->records(p.id);
        (void)(*study)->steps(p.id);
      }
  }
}

TEST_F(StudyTest, AFullDiskIsSaidAndLeavesNothingHalfWritten) {
  Random random(2, "full");
  std::vector<RequestRecord> many;
  for (uint64_t i = 0; i < 3000; ++i)
    many.push_back(arbitrary::record(random, i));
  PointRow small = row("small");
  ASSERT_TRUE(made()->add_point(small, {many[0]}, {}));
  EXPECT_EQ(in_child([&] {
              ::signal(SIGXFSZ, SIG_IGN);
              const rlimit limit{200'000, 200'000};  // bytes of any file: the log cannot grow beyond it
              ::setrlimit(RLIMIT_FSIZE, &limit);
              auto study = Study::open(path(), false);
              if (!study)
                return 2;
              PointRow big = row("big");
              const auto refused = (*study)->add_point(big, many, {});
              if (refused || refused.error().code != ErrorCode::kIo || big.id != 0)
                return 3;
              if (refused.error().message.find("disk") == std::string::npos)
                return 4;
              return (*study)->points()->size() == 1 ? 0 : 5;  // and it goes on working
            }),
            0);
  const auto study = Study::open(path(), false);
  EXPECT_EQ((*study)->points()->size(), 1u);
  EXPECT_TRUE((*study)->verify()->empty());
}

TEST_F(StudyTest, AFolderThatCannotBeWrittenIsSaidAndItsStudiesStillRead) {
  PointRow point = row("one");
  ASSERT_TRUE(made()->add_point(point, {}, {}));
  if (::getuid() != 0)
    GTEST_SKIP() << "needs root to become somebody else";
  EXPECT_EQ(in_child([&] {
              if (::setuid(65534) != 0)
                return 2;
              const auto refused = Study::open(folder_ / "new.db", true);
              if (refused || refused.error().code != ErrorCode::kIo)
                return 3;
              const auto study = Study::open(path(), false);
              if (!study)
                return 4;
              if ((*study)->points()->size() != 1)
                return 5;
              PointRow second = row("two");
              const auto unwritable = (*study)->add_point(second, {}, {});
              return !unwritable && unwritable.error().code == ErrorCode::kIo ? 0 : 6;
            }),
            0);
}

TEST_F(StudyTest, AnotherWriterIsWaitedForThenNamed) {
  const auto study = made();
  sqlite3* other = nullptr;
  ASSERT_EQ(sqlite3_open(path().c_str(), &other), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(other, "BEGIN IMMEDIATE", nullptr, nullptr, nullptr), SQLITE_OK);
  PointRow point = row("one");
  const auto refused = study->add_point(point, {}, {});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kIo);
  EXPECT_NE(refused.error().message.find("another process holds the study file"), std::string::npos);
  EXPECT_TRUE(study->points());  // reading goes on beside a writer
  sqlite3_close(other);
  EXPECT_TRUE(study->add_point(point, {}, {}));
}

// The child says through a pipe which points are finished; it is killed at an instant that nothing announces. Whatever
// that instant is: every point that was said to be finished is there, and every point that is there is whole.
TEST_F(StudyTest, KilledAtAnyInstantFinishedPointsAreWhole) {
  Random random(20, "kill");
  size_t expected = 0;
  for (int round = 0; round < 20; ++round) {
    int ends[2];
    ASSERT_EQ(::pipe(ends), 0);
    const pid_t pid = ::fork();
    if (pid == 0) {
      ::close(ends[0]);
      Random own(static_cast<uint64_t>(round), "child");
      const auto study = Study::open(path(), true);
      for (int i = 0; study; ++i) {
        PointRow point = row(std::to_string(round) + "/" + std::to_string(i));
        if (!(*study)->add_point(point, arbitrary::records(own, 200), arbitrary::steps(own, 200)))
          break;
        if (::write(ends[1], ".", 1) != 1)
          break;
      }
      ::_exit(1);
    }
    ::close(ends[1]);
    const TimePoint kill_at = monotonic_now() + microseconds(random.uniform_int(0, 60'000));
    WallClock clock;
    Wakeup nobody;
    clock.wait_until(kill_at, nobody);
    ::kill(pid, SIGKILL);
    int status = 0;
    ASSERT_EQ(::waitpid(pid, &status, 0), pid);
    EXPECT_TRUE(WIFSIGNALED(status));
    char finished[4096];
    for (ssize_t n; (n = ::read(ends[0], finished, sizeof finished)) > 0;)
      expected += static_cast<size_t>(n);
    ::close(ends[0]);
    const auto study = Study::open(path(), true);
    ASSERT_TRUE(study) << describe(study.error());
    const size_t found = (*study)->points()->size();
    EXPECT_GE(found, expected);
    EXPECT_LE(found, expected + 1);  // finished, but killed before it could say so
    expected = found;
    EXPECT_TRUE((*study)->verify()->empty());
  }
  EXPECT_GT(expected, 0u);
}

}  // namespace
}  // namespace goodput
