// Reading the Azure trace: the published files as they are, and everything that can be wrong with one.
#include "workload/trace.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "base/limits.h"
#include "base/log.h"

namespace goodput {
namespace {

class TraceFile {
 public:
  explicit TraceFile(std::string_view bytes)
      : path_(testing::TempDir() + "goodput_trace_" + std::to_string(::getpid()) + ".csv") {
    std::ofstream(path_, std::ios::binary) << bytes;
  }
  ~TraceFile() { std::filesystem::remove(path_); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

struct Read {
  Result<TraceFacts> result;
  std::vector<TraceRow> rows;
};
Read read(std::string_view bytes) {
  const TraceFile file(bytes);
  std::vector<TraceRow> rows;
  auto result = read_trace({.file = file.path(), .format = TraceFormat::kAzure},
                           [&](const TraceRow& row) { rows.push_back(row); });
  return {std::move(result), std::move(rows)};
}

constexpr std::string_view kHeader = "TIMESTAMP,ContextTokens,GeneratedTokens\n";
std::string with_rows(std::string_view rows) { return std::string(kHeader) + std::string(rows); }

TEST(Trace, KeepsAllSevenDigits) {
  const auto r = read(with_rows("2023-11-16 18:17:03.9799600,4808,10\n2023-11-16 18:17:04.0319601,3180,8\n"));
  ASSERT_TRUE(r.result) << describe(r.result.error());
  ASSERT_EQ(r.rows.size(), 2u);
  EXPECT_EQ(r.rows[0].at, Nanos(0));
  EXPECT_EQ(r.rows[0].prompt, Tokens(4808));
  EXPECT_EQ(r.rows[0].output, Tokens(10));
  EXPECT_EQ(r.rows[1].at, Nanos(52'000'100));
}

TEST(Trace, FormsOfTheSameTime) {
  for (const std::string second : {"2024-05-10 00:00:01.5", "2024-05-10T00:00:01.500000000", "2024-05-10 00:00:01.5Z",
                                   "2024-05-10 00:00:01.500000+00:00", "2024-05-10 02:30:01.5+02:30",
                                   "2024-05-09 23:00:01.50-01:00", "\"2024-05-10 00:00:01.5\""}) {
    const auto r = read(with_rows("2024-05-10 00:00:00+00:00,1,1\n" + second + ",2,3\n"));
    ASSERT_TRUE(r.result) << second << describe(r.result.error());
    EXPECT_EQ(r.rows[1].at, milliseconds(1500)) << second;
  }
}

// Case 52: fractions of up to seven digits, with and without zone; rows a little out of order are put in order.
TEST(Trace, Case52TimestampsAndSmallDisorder) {
  const auto r =
      read(with_rows("2024-05-10 00:00:00.009930,2162,5\n2024-05-10 00:00:00.0099299+00:00,7,7\n"
                     "2024-05-10 00:00:01,9,9\n"));
  ASSERT_TRUE(r.result) << describe(r.result.error());
  ASSERT_EQ(r.rows.size(), 3u);
  EXPECT_EQ(r.rows[0].prompt, Tokens(7));
  EXPECT_EQ(r.rows[0].at, Nanos(0));
  EXPECT_EQ(r.rows[1].prompt, Tokens(2162));
  EXPECT_EQ(r.rows[1].at, Nanos(100));
}

TEST(Trace, Case52LargeDisorderNamesTheRow) {
  // So many rows in order, then one that belongs before them all.
  const auto late_row_after = [](size_t rows) {
    std::string text(kHeader);
    for (size_t i = 0; i < rows; ++i)
      text += "2024-05-10 00:01:00." + std::to_string(100 + i) + ",1,1\n";
    return read(text + "2024-05-10 00:00:00,2,1\n");
  };
  const auto within = late_row_after(limits::kTraceReorderRows);
  ASSERT_TRUE(within.result) << describe(within.result.error());
  EXPECT_EQ(within.rows[0].prompt, Tokens(2));

  const auto beyond = late_row_after(limits::kTraceReorderRows + 1);
  ASSERT_FALSE(beyond.result);
  EXPECT_TRUE(beyond.result.error().context.ends_with(".csv:" + std::to_string(limits::kTraceReorderRows + 3)));
  EXPECT_NE(beyond.result.error().message.find("out of order"), std::string::npos) << describe(beyond.result.error());
}

TEST(Trace, OrderWithinReachIsRestored) {
  log::set_level(log::Level::kError);  // a warning for each of a hundred files
  EXPECT_TRUE(rc::check("rows moved by less than the reach come sorted", [] {
    // Blocks reversed: no row stands more than a block's length out of place.
    const size_t block = *rc::gen::inRange<size_t>(1, limits::kTraceReorderRows);
    std::string text(kHeader);
    const int n = 300;
    for (int start = 0; start < n; start += static_cast<int>(block))
      for (int i = std::min(n, start + static_cast<int>(block)) - 1; i >= start; --i) {
        char line[64];
        std::snprintf(line, sizeof line, "2024-01-01 00:%02d:%02d,%d,1\n", i / 60, i % 60, i + 1);
        text += line;
      }
    const auto r = read(text);
    if (!r.result)
      RC_FAIL(describe(r.result.error()));
    RC_ASSERT(r.rows.size() == static_cast<size_t>(n));
    for (int i = 0; i < n; ++i)
      RC_ASSERT(r.rows[static_cast<size_t>(i)].prompt == Tokens(i + 1));
    for (int i = 0; i < n; ++i)
      RC_ASSERT(r.rows[static_cast<size_t>(i)].at == seconds(i));
  }));
  log::set_level(log::Level::kWarn);
}

TEST(Trace, ColumnsByNameWhateverTheirOrder) {
  const auto r = read(
      "\xEF\xBB\xBFGeneratedTokens,Extra,\"TIMESTAMP\",ContextTokens\r\n"
      "5,\"a,\"\"b\"\"\",2023-11-16 18:17:03.5,374\r\n\r\n6,,2023-11-16 18:17:04,375");
  ASSERT_TRUE(r.result) << describe(r.result.error());
  ASSERT_EQ(r.rows.size(), 2u);
  EXPECT_EQ(r.rows[0].prompt, Tokens(374));
  EXPECT_EQ(r.rows[0].output, Tokens(5));
  EXPECT_EQ(r.rows[1].at, milliseconds(500));
  EXPECT_EQ(r.rows[1].output, Tokens(6));
}

TEST(Trace, HeaderOnlyIsAnEmptyTrace) {
  const auto r = read(kHeader);
  EXPECT_TRUE(r.result);
  EXPECT_TRUE(r.rows.empty());
}

TEST(Trace, ZeroTokensAreTheTracesOwnMark) {
  const auto r = read(with_rows("2023-11-16 18:17:03,472,0\n"));
  ASSERT_TRUE(r.result);
  EXPECT_EQ(r.rows[0].output, Tokens(0));
}

TEST(Trace, WrongFilesSayWhere) {
  const std::string good = "2023-11-16 18:17:03.9799600,4808,10\n";
  const struct {
    std::string bytes;
    int line;
    std::string says;
  } cases[] = {
      {"", 1, "empty"},
      {"Timestamp,Request tokens\n", 1, "expected a column 'TIMESTAMP'"},
      {"TIMESTAMP,ContextTokens\n", 1, "'GeneratedTokens'"},
      {"TIMESTAMP,ContextTokens,GeneratedTokens,TIMESTAMP\n", 1, "twice"},
      {"\"TIMESTAMP,ContextTokens\n", 1, "quote"},
      {with_rows(good + "2023-11-16 18:17:04,1\n"), 3, "expected 3 fields as in the header, found 2"},
      {with_rows("2023-11-16 18:17:04,1,2,3\n"), 2, "found 4"},
      {with_rows("2023-11-16 18:17:04,\"1,2\n"), 2, "quote"},
      {with_rows("2023-11-16 18:17:04,\"1\"x,2\n"), 2, "quote"},
      {with_rows("yesterday,1,2\n"), 2, "TIMESTAMP: expected a time such as"},
      {with_rows("2023-02-30 18:17:04,1,2\n"), 2, "2023-02-30"},
      {with_rows("2023-11-16 24:17:04,1,2\n"), 2, "TIMESTAMP"},
      {with_rows("2023-11-16 18:17:04.,1,2\n"), 2, "TIMESTAMP"},
      {with_rows("2023-11-16 18:17:04.1234567890,1,2\n"), 2, "TIMESTAMP"},
      {with_rows("2023-11-16 18:17:04+1:00,1,2\n"), 2, "TIMESTAMP"},
      {with_rows("9999-11-16 18:17:04,1,2\n"), 2, "TIMESTAMP"},
      {with_rows("1700158623,1,2\n"), 2, "TIMESTAMP"},
      {with_rows(good + good + "2023-11-16 18:17:04,many,2\n"), 4,
       "ContextTokens: expected 0 to 1048576 tokens, found 'many'"},
      {with_rows("2023-11-16 18:17:04,1,-2\n"), 2, "GeneratedTokens: expected 0 to 1048576 tokens, found '-2'"},
      {with_rows("2023-11-16 18:17:04,1.5,2\n"), 2, "found '1.5'"},
      {with_rows("2023-11-16 18:17:04,,2\n"), 2, "found ''"},
      {with_rows("2023-11-16 18:17:04,99999999999999999999,2\n"), 2, "ContextTokens"},
      {with_rows(good + std::string(limits::kMaxTraceLine + 1, '1') + "\n"), 3, "line longer than"},
      {std::string(3 * limits::kMaxTraceLine, 'x'), 1, "line longer than"},
      {with_rows(std::string("\0\0\0,\0,\0\n", 8)), 2, "TIMESTAMP"},
  };
  for (const auto& c : cases) {
    const auto r = read(c.bytes);
    ASSERT_FALSE(r.result) << c.says;
    EXPECT_EQ(r.result.error().code, ErrorCode::kUsage);
    EXPECT_TRUE(r.result.error().context.ends_with(".csv:" + std::to_string(c.line))) << describe(r.result.error());
    EXPECT_NE(r.result.error().message.find(c.says), std::string::npos) << describe(r.result.error());
    EXPECT_LT(describe(r.result.error()).size(), 400u);
  }
}

TEST(Trace, ALineOfTheLimitIsRead) {
  std::string header(kHeader.substr(0, kHeader.size() - 1));
  header += ",x";
  const std::string start = "2023-11-16 18:17:04,1,2,";
  const auto r = read(header + "\n" + start + std::string(limits::kMaxTraceLine - start.size(), 'y') + "\n");
  ASSERT_TRUE(r.result) << describe(r.result.error());
  EXPECT_EQ(r.rows.size(), 1u);
}

TEST(Trace, MissingFilesAndFolders) {
  const auto ignore = [](const TraceRow&) {};
  EXPECT_EQ(read_trace({.file = "/nonexistent/x.csv"}, ignore).error().code, ErrorCode::kNotFound);
  EXPECT_EQ(read_trace({.file = testing::TempDir()}, ignore).error().code, ErrorCode::kIo);
}

TEST(Trace, AnyBytesReturn) {
  EXPECT_TRUE(rc::check("no input ends the process", [](const std::string& bytes) {
    (void)read(bytes);
    (void)read(with_rows(bytes));
  }));
}

TEST(Trace, ThePublishedCodeTraceIsReadAsItIs) {
  const std::string path = GOODPUT_SOURCE_DIR "/../shared/data/traces/azure_llm_2023_code.csv";
  if (!std::filesystem::exists(path))
    GTEST_SKIP() << "no ../shared here";
  uint64_t rows = 0, prompt = 0;
  Nanos last;
  const auto r = read_trace({.file = path}, [&](const TraceRow& row) {
    ++rows;
    prompt += static_cast<uint64_t>(row.prompt->count());
    EXPECT_GE(*row.at, last);
    last = *row.at;
  });
  ASSERT_TRUE(r) << describe(r.error());
  EXPECT_EQ(rows, 8819u);
  EXPECT_EQ(prompt / rows, 2047u);
  EXPECT_EQ(last, Nanos(3'435'948'056'000));  // 18:17:03.9799600 to 19:14:19.9280160
}

}  // namespace
}  // namespace goodput
