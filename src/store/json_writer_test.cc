#include "store/json_writer.h"

#include <limits>

#include <gtest/gtest.h>

namespace goodput {
namespace {

std::string text_of(std::string_view value) { return JsonWriter().value(value).take(); }
std::string number_of(double value) { return JsonWriter().value(value).take(); }

TEST(JsonWriter, NestsAndSeparates) {
  JsonWriter w;
  w.begin_object().field("a", 1).key("b").begin_array().value(true).null().begin_object().end_object().end_array();
  w.field("c", std::optional<double>()).field("d", "x").end_object();
  EXPECT_EQ(w.take(), R"({"a":1,"b":[true,null,{}],"c":null,"d":"x"})");
}

TEST(JsonWriter, NumbersHaveTheFewestDigitsThatReadBack) {
  EXPECT_EQ(number_of(0.1), "0.1");
  EXPECT_EQ(number_of(12.5), "12.5");
  EXPECT_EQ(number_of(3), "3");
  EXPECT_EQ(number_of(1e300), "1e+300");
  EXPECT_EQ(number_of(-0.0), "-0");
  EXPECT_EQ(JsonWriter().value(UINT64_MAX).take(), "18446744073709551615");
  EXPECT_EQ(JsonWriter().value(INT64_MIN).take(), "-9223372036854775808");
}

TEST(JsonWriter, WhatIsNotFiniteIsNull) {
  EXPECT_EQ(number_of(std::numeric_limits<double>::quiet_NaN()), "null");
  EXPECT_EQ(number_of(std::numeric_limits<double>::infinity()), "null");
}

TEST(JsonWriter, TextIsEscapedAndAlwaysUtf8) {
  EXPECT_EQ(text_of("a\"b\\c\n\x01\x7f"), "\"a\\\"b\\\\c\\n\\u0001\\u007f\"");
  EXPECT_EQ(text_of("é日😀"), "\"é日😀\"");
  EXPECT_EQ(text_of("x\xff\xc0\xafy\xe6\x97"), "\"x\uFFFD\uFFFD\uFFFDy\uFFFD\uFFFD\"");
  EXPECT_EQ(text_of("\xed\xa0\x80"), "\"\uFFFD\uFFFD\uFFFD\"");            // a surrogate
  EXPECT_EQ(text_of("\xf4\x90\x80\x80"), "\"\uFFFD\uFFFD\uFFFD\uFFFD\"");  // beyond Unicode
}

TEST(JsonWriterDeathTest, MisuseStopsTheProcess) {
  EXPECT_DEATH(JsonWriter().begin_object().value(1), "needs a key");
  EXPECT_DEATH(JsonWriter().begin_array().key("a"), "a key belongs into an object");
  EXPECT_DEATH(JsonWriter().begin_array().take(), "unclosed");
}

}  // namespace
}  // namespace goodput
