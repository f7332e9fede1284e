// The text side of a stream: characters out of fractions, stop strings out of pieces. What must hold is one property:
// however the bytes are cut, the text is the same.
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "serve/stop_strings.h"
#include "serve/utf8.h"

namespace goodput {
namespace {

constexpr const char* kBroken = "\xEF\xBF\xBD";

std::string decode(const std::vector<std::string>& pieces) {
  Utf8Decoder decoder;
  std::string out;
  for (const auto& piece : pieces)
    decoder.feed(piece, out);
  decoder.finish(out);
  return out;
}

// A simple check to hold the decoder against: is this the well-formed UTF-8 of one code point?
bool well_formed(std::string_view text) {
  for (size_t i = 0; i < text.size();) {
    const auto b = static_cast<uint8_t>(text[i]);
    const size_t n = b < 0x80 ? 1 : b >> 5 == 6 ? 2 : b >> 4 == 14 ? 3 : b >> 3 == 30 ? 4 : 0;
    if (n == 0 || i + n > text.size())
      return false;
    uint32_t point = n == 1 ? b : b & (0x7Fu >> n);
    for (size_t k = 1; k < n; ++k) {
      const auto c = static_cast<uint8_t>(text[i + k]);
      if (c >> 6 != 2)
        return false;
      point = point << 6 | (c & 0x3F);
    }
    constexpr uint32_t kLowest[] = {0, 0, 0x80, 0x800, 0x10000};
    if (point < kLowest[n] || point > 0x10FFFF || (point >= 0xD800 && point <= 0xDFFF))
      return false;
    i += n;
  }
  return true;
}

TEST(Utf8, HoldsACharacterUntilItIsWhole) {
  Utf8Decoder decoder;
  std::string out;
  decoder.feed("a\xE2\x82", out);
  EXPECT_EQ(out, "a");
  decoder.feed("\xAC!", out);
  EXPECT_EQ(out, "a\xE2\x82\xAC!");
}

TEST(Utf8, ReplacesEachMaximalBrokenPart) {
  const std::string r = kBroken;
  EXPECT_EQ(decode({"\x80"}), r);
  EXPECT_EQ(decode({"\xE2\x82", "x"}), r + "x");           // cut short
  EXPECT_EQ(decode({"\xF0\x9F\x98"}), r);                  // the end comes first
  EXPECT_EQ(decode({"\xC0\xAF"}), r + r);                  // overlong
  EXPECT_EQ(decode({"\xED\xA0\x80"}), r + r + r);          // a surrogate
  EXPECT_EQ(decode({"\xF4\x90\x80\x80"}), r + r + r + r);  // beyond U+10FFFF
  EXPECT_EQ(decode({"\xE2\xE2\x82\xAC"}), r + "\xE2\x82\xAC");
  // The example of the Unicode standard, chapter 3, table 3-11.
  EXPECT_EQ(decode({"\x61\xF1\x80\x80\xE1\x80\xC2\x62\x80\x63\x80\xBF\x64"}),
            "a" + r + r + r + "b" + r + "c" + r + r + "d");
}

TEST(Utf8, AnySplitGivesTheSameValidText) {
  EXPECT_TRUE(rc::check([](const std::vector<std::string>& pieces) {
    std::string all;
    for (const auto& piece : pieces)
      all += piece;
    const std::string whole = decode({all});
    RC_ASSERT(decode(pieces) == whole);
    RC_ASSERT(well_formed(whole));
    if (well_formed(all))
      RC_ASSERT(whole == all);
  }));
  // Mostly-valid bytes, which random strings rarely are.
  EXPECT_TRUE(rc::check([] {
    const auto bytes = *rc::gen::container<std::vector<std::string>>(rc::gen::element<std::string>(
        "a", "\xC3", "\xA9", "\xE2", "\x82", "\xAC", "\xF0", "\x9F", "\x98", "\x80", "\xED", "\xA0", "\xF4", "\x90"));
    std::string all;
    for (const auto& byte : bytes)
      all += byte;
    RC_ASSERT(decode(bytes) == decode({all}));
    RC_ASSERT(well_formed(decode({all})));
  }));
}

struct Matched {
  std::string text;
  bool stopped = false;
  bool operator==(const Matched&) const = default;
};

Matched match(const std::vector<std::string>& stops, const std::vector<std::string>& pieces) {
  StopMatcher matcher(stops);
  Matched m;
  for (const auto& piece : pieces) {
    m.stopped = matcher.feed(piece, m.text);
    if (m.stopped)
      return m;
  }
  matcher.finish(m.text);
  return m;
}

// The definition: the match that ends first, of those the one that begins first.
Matched match_by_definition(const std::vector<std::string>& stops, const std::string& text) {
  for (size_t end = 1; end <= text.size(); ++end) {
    size_t longest = 0;
    for (const auto& stop : stops)
      if (!stop.empty() && text.substr(0, end).ends_with(stop))
        longest = std::max(longest, stop.size());
    if (longest > 0)
      return {text.substr(0, end - longest), true};
  }
  return {text, false};
}

TEST(StopStrings, NeverShowsAnyPartOfOne) {
  StopMatcher matcher({"END"});
  std::string out;
  EXPECT_FALSE(matcher.feed("the E", out));
  EXPECT_EQ(out, "the ");
  EXPECT_FALSE(matcher.feed("N", out));
  EXPECT_EQ(out, "the ");
  EXPECT_FALSE(matcher.feed("EN", out));  // "EN" was none; the new "EN" may be one
  EXPECT_EQ(out, "the EN");
  EXPECT_TRUE(matcher.feed("D and more", out));
  EXPECT_EQ(out, "the EN");
}

TEST(StopStrings, ShowsWhatWasHeldWhenTheTextEnds) {
  EXPECT_EQ(match({"END"}, {"an EN"}), (Matched{"an EN", false}));
  EXPECT_EQ(match({""}, {"abc"}), (Matched{"abc", false}));
  EXPECT_EQ(match({}, {"abc"}), (Matched{"abc", false}));
}

TEST(StopStrings, AnySplitGivesTheTextOfTheDefinition) {
  EXPECT_TRUE(rc::check([] {
    const auto letters = rc::gen::container<std::string>(rc::gen::element('a', 'b', 'c'));
    const auto stops = *rc::gen::container<std::vector<std::string>>(
        rc::gen::scale(0.15, rc::gen::container<std::string>(rc::gen::element('a', 'b', 'c'))));
    const auto pieces = *rc::gen::container<std::vector<std::string>>(letters);
    std::string all;
    for (const auto& piece : pieces)
      all += piece;
    RC_ASSERT(match(stops, pieces) == match_by_definition(stops, all));
  }));
}

TEST(StopStrings, HoldsTheLongestOneAllowed) {
  const std::string stop(1024, 'a');
  EXPECT_EQ(match({stop + "b"}, {std::string(5000, 'a')}), (Matched{std::string(5000, 'a'), false}));
  EXPECT_EQ(match({stop}, {std::string(1000, 'a'), std::string(24, 'a')}), (Matched{"", true}));
}

}  // namespace
}  // namespace goodput
