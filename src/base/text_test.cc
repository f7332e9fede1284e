// What people type and read, and what they should not have typed.
#include "base/text.h"

#include <array>

#include <gtest/gtest.h>

namespace goodput {
namespace {

TEST(Text, NearestSuggestsLikelyMistakesOnly) {
  constexpr std::array<std::string_view, 4> kKeys{"max_num_seqs", "max_num_batched_tokens", "tpot", "ttft"};
  EXPECT_EQ(nearest("max_num_seq", kKeys), "max_num_seqs");
  EXPECT_EQ(nearest("max-num-seqs", kKeys), "max_num_seqs");
  EXPECT_EQ(nearest("tpott", kKeys), "tpot");
  EXPECT_FALSE(nearest("colour", kKeys));
  EXPECT_FALSE(nearest("", kKeys));
  EXPECT_FALSE(nearest("x", {}));
  EXPECT_FALSE(nearest(std::string(10'000, 'q'), kKeys));
}

TEST(Text, SplitKeepsEmptyParts) {
  using Parts = std::vector<std::string_view>;
  EXPECT_EQ(split("", ','), Parts{""});
  EXPECT_EQ(split("a,,b,", ','), (Parts{"a", "", "b", ""}));
  EXPECT_EQ(split("abc", ','), Parts{"abc"});
}

TEST(Text, Trim) {
  EXPECT_EQ(trim(" \t a b\r\n"), "a b");
  EXPECT_EQ(trim(" \n "), "");
  EXPECT_EQ(trim(""), "");
}

TEST(Text, DurationsHaveThreeDigitsAndNoExponent) {
  EXPECT_EQ(format_duration(Nanos(0)), "0 ms");
  EXPECT_EQ(format_duration(microseconds(12'345)), "12.3 ms");
  EXPECT_EQ(format_duration(Nanos(1'500)), "0.0015 ms");
  EXPECT_EQ(format_duration(milliseconds(1'500)), "1500 ms");
  EXPECT_EQ(format_duration(from_ms(999.6)), "1000 ms");
  EXPECT_EQ(format_duration(milliseconds(9'999)), "9999 ms");
  EXPECT_EQ(format_duration(seconds(10)), "10 s");
  EXPECT_EQ(format_duration(seconds(86'400)), "86400 s");
  EXPECT_EQ(format_duration(milliseconds(-12'345)), "-12.3 s");
}

TEST(Text, Bytes) {
  EXPECT_EQ(format_bytes(0), "0 B");
  EXPECT_EQ(format_bytes(1023), "1023 B");
  EXPECT_EQ(format_bytes(1536 * 1024), "1.5 MiB");
  EXPECT_EQ(format_bytes(UINT64_MAX), "16777216.0 TiB");
}

TEST(Text, IntegersAreWholeStrings) {
  EXPECT_EQ(parse_int("0").value(), 0);
  EXPECT_EQ(parse_int("-9223372036854775808").value(), INT64_MIN);
  for (const char* bad : {"", " 1", "1 ", "+1", "1.0", "1e3", "0x10", "--1", "9223372036854775808", "1,000", "one"}) {
    const auto n = parse_int(bad);
    ASSERT_FALSE(n) << bad;
    EXPECT_NE(n.error().message.find(std::string("'") + bad + "'"), std::string::npos);
  }
  EXPECT_FALSE(parse_int(std::string_view("1\0", 2)));
}

TEST(Text, DoublesAreFinite) {
  EXPECT_EQ(parse_double("-0.5e3").value(), -500);
  EXPECT_EQ(parse_double(".5").value(), 0.5);
  for (const char* bad : {"", " 1", "1 ", "nan", "inf", "-inf", "1e999", "1,5", "0x1p3", "1.2.3", "e5"})
    EXPECT_FALSE(parse_double(bad)) << bad;
}

TEST(Text, Durations) {
  EXPECT_EQ(parse_duration("500ms").value(), milliseconds(500));
  EXPECT_EQ(parse_duration("30s").value(), seconds(30));
  EXPECT_EQ(parse_duration("30").value(), seconds(30));
  EXPECT_EQ(parse_duration("1.5m").value(), seconds(90));
  EXPECT_EQ(parse_duration("5min").value(), seconds(300));
  EXPECT_EQ(parse_duration("1h").value(), seconds(3600));
  EXPECT_EQ(parse_duration("0").value(), Nanos(0));
  EXPECT_EQ(parse_duration("1e9s").value(), seconds(1'000'000'000));
  for (const char* bad :
       {"", "s", "ms", "-5s", "5 s", "5S", "5ss", "1e10", "1e400s", "nan", "inf", "infs", "5d", "1h30m"})
    EXPECT_FALSE(parse_duration(bad)) << bad;
  EXPECT_EQ(parse_duration("soon").error().code, ErrorCode::kUsage);
}

}  // namespace
}  // namespace goodput
