#include "report/terminal_progress.h"

#include <algorithm>

#include <gtest/gtest.h>
#include <unistd.h>

namespace goodput {
namespace {

class ProgressTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(::pipe(ends_), 0); }
  void TearDown() override {
    ::close(ends_[0]);
    ::close(ends_[1]);
  }
  // What was written since the last call.
  std::string written() {
    const char mark = '\x04';
    EXPECT_EQ(::write(ends_[1], &mark, 1), 1);
    std::string text;
    for (char c; ::read(ends_[0], &c, 1) == 1 && c != mark;)
      text += c;
    return text;
  }
  int out() const { return ends_[1]; }

  VirtualClock clock_;
  int ends_[2] = {-1, -1};
};

TEST_F(ProgressTest, ElsewhereAPlainLineEveryTenSeconds) {
  TerminalProgress progress(out(), false, 80, clock_);
  progress.phase(1, 5, "probe", seconds(30));
  EXPECT_EQ(written(), "1/5 probe: 0 %, 30 s left\n");
  for (int s = 1; s < 10; ++s) {
    clock_.advance_to(TimePoint(seconds(s)));
    progress.update(s / 30.0, "steps");
  }
  EXPECT_EQ(written(), "");
  clock_.advance_to(TimePoint(seconds(10)));
  progress.update(0.25, "steps of 8 sequences");
  EXPECT_EQ(written(), "1/5 probe: 25 %, 30 s left, steps of 8 sequences\n");
  progress.note("unloaded TTFT 18 ms");
  EXPECT_EQ(written(), "unloaded TTFT 18 ms\n");
  progress.finish();
  EXPECT_EQ(written(), "");  // no escape sequence ever
}

TEST_F(ProgressTest, OnATerminalABlockOfSixLinesAtMostTenTimesASecond) {
  TerminalProgress progress(out(), true, 80, clock_);
  progress.phase(2, 5, "screen", std::nullopt);
  for (int i = 0; i < 9; ++i)
    progress.note("note " + std::to_string(i));
  std::string text = written();
  const std::string last = text.substr(text.rfind("\x1b[J") + 3);
  EXPECT_EQ(std::ranges::count(last, '\n'), 6);
  EXPECT_TRUE(last.starts_with("2/5 screen\n")) << last;
  EXPECT_NE(last.find("note 8"), std::string::npos);
  EXPECT_EQ(last.find("note 5"), std::string::npos);
  int draws = 0;
  for (int ms = 0; ms < 1000; ++ms) {
    clock_.advance_to(TimePoint(milliseconds(ms)));
    progress.update(ms / 1000.0, "x");
    draws += written().empty() ? 0 : 1;
  }
  EXPECT_LE(draws, 10);
  EXPECT_GE(draws, 8);
}

TEST_F(ProgressTest, NoLineIsWiderThanTheTerminalAndNoTextMovesTheCursor) {
  TerminalProgress progress(out(), true, 30, clock_);
  progress.phase(1, 1, std::string(200, 'p'), seconds(1));
  progress.note("hostile \x1b[2J\r\n" + std::string(100, 'x') + "é");
  const std::string text = written();
  std::string last = text.substr(text.rfind("\x1b[J") + 3);
  EXPECT_EQ(last.find('\x1b'), std::string::npos);
  EXPECT_EQ(last.find('\r'), std::string::npos);
  for (size_t end; (end = last.find('\n')) != std::string::npos; last.erase(0, end + 1))
    EXPECT_LE(std::ranges::count_if(last.substr(0, end), [](char c) { return (c & 0xC0) != 0x80; }), 30);
}

TEST_F(ProgressTest, FinishingLeavesTheLastStateAndIsFinal) {
  TerminalProgress progress(out(), true, 80, clock_);
  progress.phase(1, 1, "measure", std::nullopt);
  progress.update(1, "the last");
  progress.finish();
  const std::string text = written();
  EXPECT_NE(text.find("the last"), std::string::npos);
  EXPECT_TRUE(text.ends_with("\n"));
  EXPECT_EQ(text.find("\x1b[?25"), std::string::npos);  // the cursor is never hidden
  progress.update(1, "late");
  progress.note("late");
  progress.finish();
  EXPECT_EQ(written(), "");
}

}  // namespace
}  // namespace goodput
