#include "net/ndjson.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <vector>

#include "base/limits.h"

namespace goodput {
namespace {

struct Seen {
  std::string line;
  uint32_t read;
  bool operator==(const Seen&) const = default;
};

struct All {
  std::vector<Seen> lines;
  std::string unfinished;
};

All parse(const std::vector<std::string_view>& reads) {
  NdjsonParser parser;
  All out;
  uint32_t number = 0;
  for (std::string_view bytes : reads) {
    const ReadStamp stamp{TimePoint(Nanos(number)), std::nullopt, number};
    ++number;
    while (true) {
      const auto step = parser.next(bytes, stamp);
      if (step.event != NdjsonParser::Event::kData)
        break;
      out.lines.push_back({std::string(step.data), step.stamp.read});
    }
    if (!bytes.empty())
      ADD_FAILURE() << "bytes left";
  }
  out.unfinished = parser.unfinished();
  return out;
}

// What any split must give, computed without the parser: lines and the position of each one's last payload byte.
std::vector<std::pair<std::string, size_t>> expected_lines(std::string_view stream) {
  std::vector<std::pair<std::string, size_t>> out;
  size_t from = 0;
  while (true) {
    const size_t newline = stream.find('\n', from);
    if (newline == stream.npos)
      return out;
    std::string_view line = stream.substr(from, newline - from);
    while (line.ends_with('\r'))
      line.remove_suffix(1);
    const size_t last = from + line.size() - 1;
    if (from == 0 && line.starts_with("\xef\xbb\xbf"))
      line.remove_prefix(3);
    if (!line.empty())
      out.emplace_back(line, last);
    from = newline + 1;
  }
}

void check_split(std::string_view stream, const std::vector<size_t>& cuts) {
  std::vector<std::string_view> reads;
  size_t from = 0;
  for (const size_t cut : cuts) {
    reads.push_back(stream.substr(from, cut - from));
    from = cut;
  }
  reads.push_back(stream.substr(from));
  const auto expected = expected_lines(stream);
  const All seen = parse(reads);
  ASSERT_EQ(seen.lines.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    // The read that holds byte `last`: as many cuts lie at or before it.
    const auto read = std::upper_bound(cuts.begin(), cuts.end(), expected[i].second) - cuts.begin();
    ASSERT_EQ(seen.lines[i], (Seen{expected[i].first, static_cast<uint32_t>(read)})) << i;
  }
}

TEST(Ndjson, LinesEndingsAndByteOrderMark) {
  EXPECT_EQ(parse({"{1}\n{2}\r\n\n\r\n{3}\n"}).lines, (std::vector<Seen>{{"{1}", 0}, {"{2}", 0}, {"{3}", 0}}));
  EXPECT_EQ(parse({"\xef\xbb\xbf{1}\n\xef\xbb\xbf\n"}).lines, (std::vector<Seen>{{"{1}", 0}, {"\xef\xbb\xbf", 0}}));
}

TEST(Ndjson, StampIsOfTheLastPayloadByteWhereverTheLineEnds) {
  EXPECT_EQ(parse({"{1}", "\n"}).lines[0].read, 0u);
  EXPECT_EQ(parse({"{1}", "\r", "\n"}).lines[0].read, 0u);
  EXPECT_EQ(parse({"{", "1}\r", "\n"}).lines[0].read, 1u);
  EXPECT_EQ(parse({"{", "1}\n{2}\n"}).lines, (std::vector<Seen>{{"{1}", 1}, {"{2}", 1}}));
}

TEST(Ndjson, UnfinishedTailIsNoLineButVisible) {
  const All a = parse({"{1}\n{\"done\":", "true}"});
  EXPECT_EQ(a.lines.size(), 1u);
  EXPECT_EQ(a.unfinished, "{\"done\":true}");
  EXPECT_EQ(parse({"{1}", "\n"}).unfinished, "") << "a line that was handed out is not handed out again";
  EXPECT_EQ(parse({"{1}\n"}).unfinished, "");
  EXPECT_EQ(parse({"\xef\xbb\xbf{1}\r"}).unfinished, "{1}");
}

TEST(Ndjson, EverySplitGivesTheSameLinesAndStamps) {
  for (const std::string stream : {"{\"a\":1}\n{\"b\":\"\xe4\xbd\xa0\"}\r\n\r\n\n{\"c\":[]}\ntail",
                                   "\xef\xbb\xbf{1}\r\r\n{2}\n\n{3}\r\n", "\n\r\n\n"}) {
    for (size_t i = 0; i <= stream.size(); ++i)
      for (size_t j = i; j <= stream.size(); ++j)
        check_split(stream, {i, j});
    std::vector<size_t> every;
    for (size_t i = 1; i < stream.size(); ++i)
      every.push_back(i);
    check_split(stream, every);
  }
}

TEST(Ndjson, RandomStreamsRandomSplits) {
  EXPECT_TRUE(rc::check([] {
    const auto stream = *rc::gen::container<std::string>(rc::gen::elementOf(std::string("\n\n\r{}\"a\xef\xbb\xbf")));
    auto cuts = *rc::gen::container<std::vector<size_t>>(rc::gen::inRange<size_t>(0, stream.size() + 1));
    std::sort(cuts.begin(), cuts.end());
    check_split(stream, cuts);
    RC_ASSERT(!testing::Test::HasFailure());
  }));
}

TEST(Ndjson, LineLimitIsReached) {
  NdjsonParser parser;
  const std::string filler(64 * 1024, 'x');
  size_t fed = 0;
  while (fed < 2 * limits::kMaxResponseLine) {
    std::string_view more = filler;
    fed += filler.size();
    if (parser.next(more, {}).event == NdjsonParser::Event::kTooLong)
      break;
  }
  EXPECT_LE(fed, limits::kMaxResponseLine + filler.size());
  EXPECT_GE(fed, limits::kMaxResponseLine - filler.size()) << "a 1 MB line is fine";
}

}  // namespace
}  // namespace goodput
