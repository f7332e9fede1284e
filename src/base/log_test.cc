// Diagnostics go to stderr, from the chosen level up, and are never taken for a format.
#include "base/log.h"

#include <gtest/gtest.h>

namespace goodput {
namespace {

std::string logged(log::Level level) {
  log::set_level(level);
  ::testing::internal::CaptureStderr();
  log::debug("a debug {}");
  log::info("an info");
  log::warn("a warning");
  log::error("an error");
  std::string text = ::testing::internal::GetCapturedStderr();
  log::set_level(log::Level::kWarn);
  return text;
}

TEST(Log, LevelsCutFromBelow) {
  const std::string all = logged(log::Level::kDebug);
  for (const char* line : {"a debug {}", "an info", "a warning", "an error"})
    EXPECT_NE(all.find(line), std::string::npos);
  const std::string some = logged(log::Level::kWarn);
  EXPECT_EQ(some.find("info"), std::string::npos);
  EXPECT_NE(some.find("a warning"), std::string::npos);
  EXPECT_EQ(logged(log::Level::kError).find("warning"), std::string::npos);
  EXPECT_EQ(logged(log::Level::kOff), "");
}

TEST(Log, NothingGoesToStdout) {
  ::testing::internal::CaptureStdout();
  logged(log::Level::kDebug);
  EXPECT_EQ(::testing::internal::GetCapturedStdout(), "");
}

}  // namespace
}  // namespace goodput
