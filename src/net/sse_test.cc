#include "net/sse.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <vector>

#include "base/limits.h"

namespace goodput {
namespace {

struct Seen {
  std::string data;
  uint32_t read;
};

std::vector<Seen> parse(const std::vector<std::string_view>& reads) {
  SseParser parser;
  std::vector<Seen> out;
  uint32_t number = 0;
  for (std::string_view bytes : reads) {
    const ReadStamp stamp{TimePoint(Nanos(number)), std::nullopt, number};
    ++number;
    while (true) {
      const auto step = parser.next(bytes, stamp);
      if (step.event != SseParser::Event::kData)
        break;
      out.push_back({std::string(step.data), step.stamp.read});
    }
    if (!bytes.empty())
      ADD_FAILURE() << "bytes left";
  }
  return out;
}

std::vector<std::string> texts(const std::vector<std::string_view>& reads) {
  std::vector<std::string> out;
  for (auto& e : parse(reads))
    out.push_back(e.data);
  return out;
}

using Texts = std::vector<std::string>;

TEST(Sse, Case01SplitAfterColonStampsTheReadOfThePayload) {
  const auto e = parse({"data:", " {\"a\":1}\n", "\ndata: [DONE]\n\n"});
  ASSERT_EQ(e.size(), 2u);
  EXPECT_EQ(e[0].data, "{\"a\":1}");
  EXPECT_EQ(e[0].read, 1u);
  EXPECT_EQ(e[1].read, 2u);
}

TEST(Sse, StampIsOfTheLastPayloadByteWhereverTheLineEnds) {
  const auto e = parse({"data: x", "\n", "\n"});
  ASSERT_EQ(e.size(), 1u);
  EXPECT_EQ(e[0].read, 0u);
  EXPECT_EQ(parse({"data: x", "y\n", ": ping\n\n"})[0].read, 1u);
}

TEST(Sse, Case02SpaceAtASplitIsKept) { EXPECT_EQ(texts({"data: red", " fox\n\n"}), Texts{"red fox"}); }

TEST(Sse, Case03ExactlyOneLeadingSpaceGoes) {
  EXPECT_EQ(texts({"data:A\n\ndata:  B\n\ndata:[DONE]\n\ndata\n\ndata:\n\n"}), (Texts{"A", " B", "[DONE]", "", ""}));
}

TEST(Sse, Case04LineEndingsAndByteOrderMark) {
  const Texts both{"{E1}", "{E2}"};
  EXPECT_EQ(texts({"data: {E1}\n\ndata: {E2}\n\n"}), both);
  EXPECT_EQ(texts({"data: {E1}\r\n\r\ndata: {E2}\r\n\r\n"}), both);
  EXPECT_EQ(texts({"data: {E1}\r\rdata: {E2}\r\r"}), both);
  EXPECT_EQ(texts({"data: {E1}\r", "\n\r", "\ndata: {E2}\r\n\r\n"}), both);
  EXPECT_EQ(texts({"\xef\xbb\xbf"
                   "data: {E1}\n\ndata: {E2}\n\n"}),
            both);
}

TEST(Sse, Case05CommentsAreNotEvents) {
  EXPECT_EQ(texts({":\n\n", ": ping\n\n", ": keep-alive\n\n", "data: x\n\n"}), Texts{"x"});
}

TEST(Sse, FieldsAndJoinedLines) {
  EXPECT_EQ(texts({"event: e\nid: 1\nretry: 5\ndata: a\ndata: b\nunknown: z\n\nevent: only\n\ndatax: no\n\n"}),
            Texts{"a\nb"});
}

TEST(Sse, UnfinishedTailIsNoEventButVisible) {
  for (const char* tail : {"data: [DONE]", "data: [DONE]\n", "data:[DONE]\r"}) {
    SseParser parser;
    std::string_view bytes = tail;
    EXPECT_EQ(parser.next(bytes, {}).event, SseParser::Event::kNeedMore);
    EXPECT_EQ(parser.unfinished(), "[DONE]") << tail;
  }
}

const std::vector<std::string>& samples() {
  static const std::vector<std::string> kSamples = {
      "data: {\"a\":1}\n\ndata: [DONE]\n\n",
      "\xef\xbb\xbf"
      "data: x\r\n\r\n:c\r\ndata:  y\rdata:z\r\r\n",
      "event: m\ndata\n\n\n\n: only a comment\n\ndata: \xe4\xbd\xa0\n\nid: 7\n\ndata: tail",
      "\r\r\n\n\rdata:1\n\r\n",
  };
  return kSamples;
}

TEST(Sse, EverySplitGivesTheSameEvents) {
  for (const std::string& s : samples()) {
    const std::string_view v = s;
    const Texts expected = texts({v});
    std::vector<std::string_view> bytes;
    for (size_t i = 0; i < v.size(); ++i)
      bytes.push_back(v.substr(i, 1));
    EXPECT_EQ(texts(bytes), expected);
    for (size_t i = 0; i <= v.size(); ++i) {
      for (size_t j = i; j <= v.size(); ++j) {
        ASSERT_EQ(texts({v.substr(0, i), v.substr(i, j - i), v.substr(j)}), expected) << s << " at " << i << "," << j;
      }
    }
  }
}

TEST(Sse, RandomStreamsRandomSplits) {
  EXPECT_TRUE(rc::check([] {
    const auto letters = *rc::gen::container<std::string>(rc::gen::elementOf(std::string("\r\n\n\r: adt\xef\xbb\xbf")));
    const std::string stream = "data: q\n" + letters;
    const auto cut_list = *rc::gen::container<std::vector<size_t>>(rc::gen::inRange<size_t>(0, stream.size() + 1));
    std::vector<size_t> cuts(cut_list);
    std::sort(cuts.begin(), cuts.end());
    std::vector<std::string_view> pieces;
    size_t from = 0;
    for (const size_t cut : cuts) {
      pieces.push_back(std::string_view(stream).substr(from, cut - from));
      from = cut;
    }
    pieces.push_back(std::string_view(stream).substr(from));
    RC_ASSERT(texts(pieces) == texts({stream}));
  }));
}

TEST(Sse, LineLimitIsReached) {
  SseParser parser;
  const std::string filler(64 * 1024, 'x');
  std::string_view start = "data: ";
  parser.next(start, {});
  size_t fed = 0;
  while (fed < 2 * limits::kMaxResponseLine) {
    std::string_view more = filler;
    fed += filler.size();
    if (parser.next(more, {}).event == SseParser::Event::kTooLong)
      break;
  }
  EXPECT_LE(fed, limits::kMaxResponseLine + filler.size());
  EXPECT_GE(fed, limits::kMaxResponseLine - filler.size()) << "a 1 MB line is fine";
}

}  // namespace
}  // namespace goodput
