#include "report/table.h"

#include <gtest/gtest.h>
#include <unistd.h>

namespace goodput {
namespace {

TextTable example() {
  TextTable t;
  t.columns = {{"setting", false, 100}, {"goodput req/s", true, 80}, {"TTFT p95 ms", true, 10}, {"state", false, 50}};
  t.rows = {{"8 × 256", "4.62", "380", "steady"}, {"32", "13.1", "-", ""}};
  return t;
}

TEST(TextTable, AlignsNumbersRightAndTextLeft) {
  EXPECT_EQ(example().render({.width = 80}),
            "setting  goodput req/s  TTFT p95 ms  state\n"
            "8 × 256           4.62          380  steady\n"
            "32                13.1            -\n");
}

TEST(TextTable, DropsTheLeastImportantColumnsAndNamesThem) {
  EXPECT_EQ(example().render({.width = 32}),
            "setting  goodput req/s  state\n"
            "8 × 256           4.62  steady\n"
            "32                13.1\n"
            "not shown for want of width: TTFT p95 ms\n");
  const std::string narrow = example().render({.width = 5});
  EXPECT_EQ(narrow.substr(0, narrow.find('\n')), "setting");
}

TEST(TextTable, PlainIsTabSeparatedAndWhole) {
  EXPECT_EQ(example().render({.width = 5, .plain = true}),
            "setting\tgoodput req/s\tTTFT p95 ms\tstate\n8 × 256\t4.62\t380\tsteady\n32\t13.1\t-\t\n");
}

TEST(TextTable, EmphasisOnlyWhereAsked) {
  EXPECT_EQ(example().render({.width = 80}).find('\x1b'), std::string::npos);
  EXPECT_NE(example().render({.width = 80, .colour = true}).find("\x1b[1m"), std::string::npos);
}

TEST(TextStyle, APipeHasNoWidthAndNoColour) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const TextStyle style = text_style(ends[1], false);
  EXPECT_EQ(style.width, 0);
  EXPECT_FALSE(style.colour);
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST(Figure, HasThreeSignificantDigits) {
  EXPECT_EQ(figure(0), "0");
  EXPECT_EQ(figure(4.6249), "4.62");
  EXPECT_EQ(figure(0.01234), "0.0123");
  EXPECT_EQ(figure(38.06), "38.1");
  EXPECT_EQ(figure(12345.6), "12346");
  EXPECT_EQ(figure(-2.5), "-2.50");
  EXPECT_EQ(figure(1.0 / 0.0), "-");
  EXPECT_EQ(percent(0.934), "93 %");
}

}  // namespace
}  // namespace goodput
