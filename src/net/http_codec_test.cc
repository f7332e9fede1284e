#include "net/http_codec.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <vector>

#include "base/limits.h"

namespace goodput {
namespace {

// Everything a consumer can see of a stream, with body pieces joined: must not depend on how the bytes were split.
std::string transcript(const std::vector<std::string_view>& pieces) {
  using Event = HttpResponseParser::Event;
  HttpResponseParser parser;
  std::string out;
  const auto note = [&](const HttpResponseParser::Step& step) {
    switch (step.event) {
      case Event::kHead:
        out += "[" + std::to_string(parser.status()) + (parser.keep_alive() ? " keep" : " close") +
               " type=" + std::string(parser.header("Content-Type")) + "]";
        break;
      case Event::kBody:
        out += step.body;
        break;
      case Event::kEnd:
        break;
      case Event::kError:
        out += "[error " + std::to_string(static_cast<int>(parser.failure())) + "]";
        break;
      case Event::kNeedMore:
        break;
    }
    return step.event;
  };
  for (std::string_view piece : pieces) {
    while (true) {
      const Event e = note(parser.next(piece));
      if (e == Event::kError)
        return out;
      if (e == Event::kNeedMore)
        break;
      if (e == Event::kEnd) {
        if (piece.empty())
          break;  // reset only when more comes, so that finish() sees the state
        parser.reset();
      }
    }
    if (!piece.empty())
      ADD_FAILURE() << "bytes left";
  }
  if (note(parser.finish()) == Event::kEnd)
    out += "[end]";
  return out;
}

const std::vector<std::string>& samples() {
  static const std::vector<std::string> kSamples = {
      "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Type: a/b\r\n\r\nhello",
      "HTTP/1.1 200 OK\nContent-Length: 2\n\nhi",
      "HTTP/1.1 200\r\ntransfer-encoding: Chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
      ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3;name=\"v;w\"\r\nabc\r\nA "
       ";x\r\n0123456789\r\n00;last\r\nT: 1\r\nU:2\r\n\r\n"),
      ("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: "
       "1\r\n\r\nx"),
      "HTTP/1.0 200 OK\r\n\r\nuntil the end",
      "HTTP/1.1 204 No Content\r\n\r\n",
      "HTTP/1.1 503 Busy\r\nConnection: close\r\nRetry-After: 1\r\nContent-Length: 0\r\n\r\n",
      "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nshort",
      "SSH-2.0-OpenSSH_9.2\r\n",
      "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nx",
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\nx",
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n",
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nabc\r\n",
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\r\n",
      "HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
      "HTTP/1.1 200 OK\r\nA: b\r\n folded\r\n\r\n",
      "HTTP/1.1 2x0 OK\r\n\r\n",
      "HTTP/2 200\r\n\r\n",
  };
  return kSamples;
}

TEST(HttpCodec, WhatEachMeans) {
  const auto whole = [](size_t i) { return transcript({samples()[i]}); };
  EXPECT_EQ(whole(0), "[200 keep type=a/b]hello[end]");
  EXPECT_EQ(whole(1), "[200 keep type=]hi[end]");
  EXPECT_EQ(whole(2), "[200 keep type=]hello[end]");
  EXPECT_EQ(whole(3), "[200 keep type=]abc0123456789[end]");
  EXPECT_EQ(whole(4), "[200 keep type=]x[end]");
  EXPECT_EQ(whole(5), "[200 close type=]until the end[end]");
  EXPECT_EQ(whole(6), "[204 keep type=][end]");
  EXPECT_EQ(whole(7), "[503 close type=][end]");
  EXPECT_EQ(whole(8), "[200 keep type=]short[error 3]");
  for (size_t i = 9; i <= 18; ++i)
    EXPECT_NE(whole(i).find("[error 1]"), std::string::npos) << samples()[i];
}

TEST(HttpCodec, EverySplitGivesTheSameEvents) {
  for (const std::string& s : samples()) {
    const std::string_view v = s;
    const std::string expected = transcript({v});
    std::vector<std::string_view> bytes;
    for (size_t i = 0; i < v.size(); ++i)
      bytes.push_back(v.substr(i, 1));
    EXPECT_EQ(transcript(bytes), expected) << s;
    for (size_t i = 0; i <= v.size(); ++i) {
      ASSERT_EQ(transcript({v.substr(0, i), v.substr(i)}), expected) << s << " at " << i;
      for (size_t j = i; j <= v.size(); ++j) {
        ASSERT_EQ(transcript({v.substr(0, i), v.substr(i, j - i), v.substr(j)}), expected)
            << s << " at " << i << "," << j;
      }
    }
  }
}

TEST(HttpCodec, RandomSplitsOfPipelinedResponses) {
  EXPECT_TRUE(rc::check([] {
    std::string stream;
    const auto chosen = *rc::gen::container<std::vector<int>>(rc::gen::inRange(0, 5));
    for (const int i : chosen)
      stream += samples()[static_cast<size_t>(i)];
    const auto cuts = *rc::gen::container<std::vector<size_t>>(rc::gen::inRange<size_t>(0, stream.size() + 1));
    std::vector<size_t> at(cuts.begin(), cuts.end());
    std::sort(at.begin(), at.end());
    std::vector<std::string_view> pieces;
    size_t from = 0;
    for (const size_t cut : at) {
      pieces.push_back(std::string_view(stream).substr(from, cut - from));
      from = cut;
    }
    pieces.push_back(std::string_view(stream).substr(from));
    RC_ASSERT(transcript(pieces) == transcript({stream}));
  }));
}

TEST(HttpCodec, ArbitraryBytesEndInEventsNotInTears) {
  EXPECT_TRUE(rc::check([](const std::string& bytes) {
    transcript({bytes});
    transcript({"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", bytes});
  }));
}

TEST(HttpCodec, LimitsAreReached) {
  using Event = HttpResponseParser::Event;
  const auto failure = [](const std::string& head, const std::string& filler) {
    HttpResponseParser parser;
    std::string_view first = head;
    while (parser.next(first).event == Event::kHead) {
    }
    for (size_t fed = 0; fed < 4 * limits::kMaxHeaderBytes; fed += filler.size()) {
      std::string_view more = filler;
      if (parser.next(more).event == Event::kError)
        break;
    }
    EXPECT_LE(parser.head().size(), limits::kMaxHeaderBytes);
    return parser.failure();
  };
  const auto kTooLarge = HttpResponseParser::Failure::kTooLarge;
  EXPECT_EQ(failure("HTTP/1.1 200 OK\r\n", "A: bbbbbbbbbbbbbb\r\n"), kTooLarge);
  EXPECT_EQ(failure("HTTP/1.1 200 OK\r\nA: ", "bbbbbbbbbbbbbbbb"), kTooLarge);
  EXPECT_EQ(failure("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;", "xxxxxxxxxxxx"), kTooLarge);
  EXPECT_EQ(failure("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n", "A: b\r\n"), kTooLarge);
}

TEST(HttpCodec, HugeLengthsAreRefusedNotWrapped) {
  EXPECT_NE(transcript({"HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n"}).find("[error 1]"),
            std::string::npos);
  EXPECT_NE(transcript({"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n"}).find("[error 1]"), std::string::npos);
  EXPECT_NE(
      transcript({"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n"}).find("[error 1]"),
      std::string::npos);
}

}  // namespace
}  // namespace goodput
