// The worked cases of streams, fed to the receiver read by read with times of their own: no socket, no waiting.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <string>
#include <vector>

#include "load/test_answers.h"

namespace goodput {
namespace {

const char kStream[] = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n";

Seen receive(const std::vector<Read>& reads, Ending last = Ending::kClosed, size_t slice = 1) {
  return receive_as({.last = last, .slice = slice}, reads);
}

// (Not `data`: argument-dependent lookup would find std::data for a string.)
std::string framed(std::string_view json) { return "data: " + std::string(json) + "\n\n"; }
std::string delta(std::string_view inside) {
  return framed(R"({"choices":[{"index":0,"delta":{)" + std::string(inside) + "}}]}");
}
std::string content(std::string_view text) { return delta(R"("content":")" + std::string(text) + "\""); }
std::string finished(std::string_view reason) {
  return framed(R"({"choices":[{"index":0,"delta":{},"finish_reason":")" + std::string(reason) + "\"}]}");
}
std::string usage(int prompt, int output) {
  return framed(R"({"choices":[],"usage":{"prompt_tokens":)" + std::to_string(prompt) + R"(,"completion_tokens":)" +
                std::to_string(output) + "}}");
}
const std::string kDone = "data: [DONE]\n\n";

TEST(Interpret, Case01SplitAfterColon) {
  const auto s = receive({{0, kStream},
                          {200, "data:"},
                          {201, " {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hi\"}}]}\n"},
                          {240, "\ndata: [DONE]\n\n"}});
  EXPECT_EQ(s.record.outcome, Outcome::kOk);
  ASSERT_EQ(s.record.events.size(), 1u);
  EXPECT_EQ(s.record.events[0].user, milliseconds(201));
  EXPECT_NEAR(since(s.record, s.record.first_token), 201, 1e-6);
}

TEST(Interpret, Case02SpaceAtASplit) {
  const auto s = receive(
      {{0, kStream}, {1, R"(data: {"choices":[{"index":0,"delta":{"content":"red)"}, {2, " fox\"}}]}\n\n" + kDone}});
  EXPECT_EQ(s.record.outcome, Outcome::kOk);
  EXPECT_EQ(s.record.events.at(0).user, milliseconds(2));
}

TEST(Interpret, Case03NoSpaceAfterColon) {
  const auto s = receive(
      {{0, std::string(kStream) + "data:{\"choices\":[{\"delta\":{\"content\":\"A\"}}]}\n\n"
                                  "data:  {\"choices\":[{\"delta\":{\"content\":\"B\"}}]}\n\ndata:[DONE]\n\n"}});
  EXPECT_EQ(s.record.outcome, Outcome::kOk);
  EXPECT_EQ(s.record.events.size(), 2u);
  EXPECT_TRUE(s.record.events[0].coalesced && s.record.events[1].coalesced) << "one read";
}

TEST(Interpret, Case04LineEndings) {
  for (const std::string eol : {"\n", "\r\n", "\r"}) {
    std::string body = "\xef\xbb\xbf";
    for (const char* json : {R"({"choices":[{"text":"a"}]})", R"({"choices":[{"text":"b","finish_reason":"stop"}]})"}) {
      body.append("data: ").append(json).append(eol).append(eol);
    }
    const auto s = receive({{0, kStream}, {5, body}});
    EXPECT_EQ(s.record.outcome, Outcome::kOk) << eol;
    EXPECT_EQ(s.record.events.size(), 2u);
  }
}

TEST(Interpret, Case05CommentsAreNotTokens) {
  const auto s = receive({{50, kStream},
                          {5000, ":\n\n"},
                          {10000, ": ping\n\n"},
                          {15000, ": keep-alive\n\n"},
                          {18300, content("Yes")},
                          {18400, kDone}});
  EXPECT_NEAR(since(s.record, s.record.first_token), 18300, 1e-6);
  EXPECT_EQ(s.record.events.size(), 1u);
  EXPECT_EQ(s.record.chunks, 1u);
}

TEST(Interpret, Case07RoleOnlyFirstChunk) {
  const auto s =
      receive({{0, kStream},
               {900, delta(R"("role":"assistant","content":"")")},
               {2200, content("One")},
               {2220, content(" two")},
               {2240, framed(R"({"choices":[{"index":0,"delta":{"content":" three"},"finish_reason":"length"}]})") +
                          usage(5000, 3) + kDone}});
  const RequestRecord& r = s.record;
  EXPECT_EQ(r.outcome, Outcome::kOk);
  EXPECT_EQ(r.finish, FinishReason::kLength);
  EXPECT_NEAR(since(r, r.first_chunk), 900, 1e-6);
  EXPECT_NEAR(since(r, r.first_token), 2200, 1e-6);
  EXPECT_NEAR(since(r, r.done), 2240, 1e-6);
  ASSERT_EQ(r.events.size(), 3u);
  EXPECT_EQ(r.events[0].tokens, 1) << "as many events as tokens";
  EXPECT_FALSE(r.events[2].coalesced) << "usage and [DONE] carry no token";
  EXPECT_EQ(r.prompt_tokens, Tokens(5000));
  EXPECT_EQ(r.token_source, TokenSource::kUsage);
}

TEST(Interpret, Case08UsageOnlyFinalChunkInItsShapes) {
  for (const std::string& last :
       {usage(12, 4), framed(R"({"usage":{"prompt_tokens":12,"completion_tokens":4,"total_tokens":16}})")}) {
    const auto s =
        receive({{0, kStream}, {400, content("a")}, {1000, content("b") + finished("stop")}, {1150, last + kDone}});
    EXPECT_EQ(s.record.outcome, Outcome::kOk);
    EXPECT_EQ(s.record.output_tokens, Tokens(4));
    EXPECT_NEAR(since(s.record, s.record.done), 1000, 1e-6);
    EXPECT_NEAR(since(s.record, s.record.first_token), 400, 1e-6);
    EXPECT_EQ(s.record.closed, s.record.scheduled + milliseconds(1150));
    EXPECT_EQ(s.record.events[0].tokens, 0) << "four tokens in two events: which had how many is unknown";
  }
}

std::string running(std::string_view text, int count, bool finish = false) {
  return framed(R"({"choices":[{"index":0,"delta":{"content":")" + std::string(text) + R"("},"finish_reason":)" +
                (finish ? "\"stop\"" : "null") + R"(}],"usage":{"prompt_tokens":9,"completion_tokens":)" +
                std::to_string(count) + "}}");
}

TEST(Interpret, Case10RunningUsageCountsTokensPerEvent) {
  const auto s = receive({{0, kStream},
                          {200, running("a", 1)},
                          {260, running("b", 3)},
                          {320, running("c", 6)},
                          {440, running("d", 10, true)}});
  ASSERT_EQ(s.record.events.size(), 4u);
  EXPECT_EQ(s.record.events[0].tokens, 1);
  EXPECT_EQ(s.record.events[1].tokens, 2);
  EXPECT_EQ(s.record.events[2].tokens, 3);
  EXPECT_EQ(s.record.events[3].tokens, 4);
  EXPECT_EQ(s.record.output_tokens, Tokens(10));
  EXPECT_EQ(s.record.outcome, Outcome::kOk);
}

TEST(Interpret, Case10TokenIdsCountTokensPerEvent) {
  const auto ids = [](std::string_view text, std::string_view list) {
    return framed(R"({"choices":[{"index":0,"text":")" + std::string(text) + R"(","token_ids":[)" + std::string(list) +
                  "]}]}");
  };
  const auto s =
      receive({{0, kStream}, {200, ids("a", "5")}, {260, ids("bc", "6,7")}, {300, ids("", "2") + finished("stop")}});
  ASSERT_EQ(s.record.events.size(), 2u);
  EXPECT_EQ(s.record.events[0].tokens, 1);
  EXPECT_EQ(s.record.events[1].tokens, 2);
  EXPECT_EQ(s.record.output_tokens, Tokens(3)) << "no usage: the ids of what was delivered";
  EXPECT_EQ(s.record.token_source, TokenSource::kRunningUsage);
}

TEST(Interpret, Case11BundledFirstChunk) {
  const auto s = receive({{0, kStream}, {200, running("eight at once", 8)}, {1000, running("rest", 41, true)}});
  EXPECT_EQ(s.record.events.at(0).tokens, 8);
  EXPECT_EQ(s.record.output_tokens, Tokens(41));
}

TEST(Interpret, Case13ReasoningThenContentUnderBothNames) {
  for (const std::string name : {"reasoning_content", "reasoning"}) {
    const auto s = receive(
        {{0, kStream},
         {50, delta(R"("role":"assistant","content":"")")},
         {310, delta("\"" + name + R"(":"First")")},
         {330, delta("\"" + name + R"(":" think","content":null)")},
         {2810, content("The answer")},
         {2830, framed(R"({"choices":[{"delta":{"content":" is 4"},"finish_reason":"stop"}]})")},
         {2831,
          framed(
              R"({"choices":[],"usage":{"completion_tokens":130,"completion_tokens_details":{"reasoning_tokens":126}}})") +
              kDone}});
    const RequestRecord& r = s.record;
    EXPECT_NEAR(since(r, r.first_token), 310, 1e-6);
    EXPECT_NEAR(since(r, r.first_answer), 2810, 1e-6);
    EXPECT_EQ(r.output_tokens, Tokens(130));
    EXPECT_EQ(r.hidden_tokens, Tokens(0)) << "the reasoning was shown";
    EXPECT_EQ(r.events.at(0).channel, Channel::kReasoning);
    EXPECT_EQ(r.events.size(), 4u);
  }
}

TEST(Interpret, HiddenReasoningIsSubtracted) {
  const auto s = receive(
      {{0, kStream},
       {2810, content("4")},
       {2831,
        finished("stop") +
            framed(
                R"({"choices":[],"usage":{"completion_tokens":127,"completion_tokens_details":{"reasoning_tokens":126}}})") +
            kDone}});
  EXPECT_EQ(s.record.hidden_tokens, Tokens(126));
}

TEST(Interpret, Case14ReasoningOnlyCapped) {
  const auto s = receive({{0, kStream},
                          {400, delta(R"("reasoning_content":"a")")},
                          {1660, delta(R"("reasoning_content":"b")") + finished("length") + usage(1, 64) + kDone}});
  EXPECT_EQ(s.record.outcome, Outcome::kOk);
  EXPECT_FALSE(s.record.first_answer);
  EXPECT_EQ(s.record.finish, FinishReason::kLength);
}

TEST(Interpret, Case16ToolCallDeltas) {
  const auto s = receive(
      {{0, kStream},
       {500, delta(R"("role":"assistant","content":null)")},
       {800,
        delta(
            R"("tool_calls":[{"index":0,"id":"c1","type":"function","function":{"name":"get_time","arguments":""}}])")},
       {900, delta(R"("tool_calls":[{"index":0,"function":{"arguments":"{\"tz\":"}}])")},
       {950, delta(R"("tool_calls":[{"function":{"arguments":"\"UTC\"}"}}])") + finished("tool_calls") + usage(1, 17) +
                 kDone}});
  EXPECT_EQ(s.record.outcome, Outcome::kOk);
  EXPECT_NEAR(since(s.record, s.record.first_token), 800, 1e-6);
  EXPECT_EQ(s.record.events.size(), 3u);
  EXPECT_EQ(s.record.events[0].channel, Channel::kToolCall);
  EXPECT_EQ(s.record.finish, FinishReason::kToolCalls);
  EXPECT_EQ(s.record.output_tokens, Tokens(17));
}

TEST(Interpret, Case17DoneMissingVersusTruncated) {
  EXPECT_EQ(receive({{0, kStream}, {1, content("a") + finished("stop")}}).record.outcome, Outcome::kOk);
  const auto b = receive({{0, kStream}, {1, content("a")}});
  EXPECT_EQ(b.record.outcome, Outcome::kError);
  EXPECT_EQ(b.record.error, ErrorKind::kTruncated);
  EXPECT_EQ(b.record.events.size(), 1u) << "kept for diagnosis";
  const auto c = receive({{0, kStream}, {1, content("a") + kDone}});
  EXPECT_EQ(c.record.outcome, Outcome::kOk);
  EXPECT_EQ(c.record.finish, FinishReason::kNone);
  EXPECT_EQ(receive({{0, kStream}, {1, content("a") + "data: [DONE]"}}).record.outcome, Outcome::kOk)
      << "no blank line behind it";
}

TEST(Interpret, Case17TruncationInsideChunkedFraming) {
  const std::string head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
  const std::string event = content("a");
  char size[16];
  snprintf(size, sizeof size, "%zx\r\n", event.size());
  EXPECT_EQ(receive({{0, head}, {1, size + event + "\r\n"}}).record.error, ErrorKind::kTruncated);
  EXPECT_EQ(receive({{0, head}, {1, size + event + "\r\n0\r\n\r\n"}}).record.error, ErrorKind::kTruncated)
      << "HTTP is whole, the stream is not";
}

TEST(Interpret, Case18ErrorInsideA200Stream) {
  const auto a = receive({{0, kStream},
                          {1, content("a")},
                          {2, content("b")},
                          {3, framed(R"({"error":{"message":"limit reached","type":"server_error"}})") + kDone}});
  EXPECT_EQ(a.record.outcome, Outcome::kError);
  EXPECT_EQ(a.record.error, ErrorKind::kErrorObject);
  EXPECT_EQ(a.message, "limit reached");
  EXPECT_EQ(a.record.events.size(), 2u);
  EXPECT_EQ(a.record.output_tokens, Tokens(2));
  const auto b = receive(
      {{0, kStream}, {1, framed(R"({"error":"inputs and max_new_tokens too large","error_type":"validation"})")}});
  EXPECT_EQ(b.record.outcome, Outcome::kRejected);
  EXPECT_EQ(b.message, "inputs and max_new_tokens too large");
  const auto late = receive({{0, kStream},
                             {1, content("a")},
                             {2, framed(R"({"error":{"message":"overloaded","type":"overloaded_error"}})")}});
  EXPECT_EQ(late.record.outcome, Outcome::kError) << "what had begun to answer had been admitted";
}

TEST(Interpret, Case20UnframedJsonError) {
  const auto s = receive(
      {{0, kStream},
       {1,
        R"({"error":{"code":400,"message":"prompt too long","type":"exceed_context_size_error","n_prompt_tokens":6009,"n_ctx":4096}})"}});
  EXPECT_EQ(s.record.outcome, Outcome::kError);
  EXPECT_EQ(s.record.error, ErrorKind::kErrorObject);
  EXPECT_NE(s.message.find("prompt too long"), std::string::npos);
  EXPECT_NE(s.message.find("6009"), std::string::npos);
  EXPECT_NE(s.message.find("4096"), std::string::npos);
}

TEST(Interpret, Case21EmptyAnswers) {
  for (const std::string& body :
       {framed(R"({"choices":[{"index":0,"delta":{"role":"assistant","content":null},"finish_reason":"stop"}]})") +
            kDone,
        kDone, std::string()}) {
    const auto s = receive({{0, kStream}, {1, body}});
    EXPECT_EQ(s.record.outcome, Outcome::kError);
    EXPECT_EQ(s.record.error, ErrorKind::kEmpty);
    EXPECT_FALSE(s.record.first_token);
    EXPECT_FALSE(s.record.output_tokens);
  }
}

std::string plain(int status, std::string_view type, std::string_view body) {
  return "HTTP/1.1 " + std::to_string(status) + " X\r\nContent-Type: " + std::string(type) +
         "\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + std::string(body);
}

TEST(Interpret, Case22StatusDecides) {
  EXPECT_EQ(receive({{1, plain(429, "text/plain", "slow down")}}).record.outcome, Outcome::kRejected);
  EXPECT_EQ(receive({{1, plain(503, "application/json", "{}")}}).record.outcome, Outcome::kRejected);
  const auto full = receive({{1, plain(500, "application/json", R"({"error":{"message":"the queue is full"}})")}});
  EXPECT_EQ(full.record.outcome, Outcome::kRejected);
  const auto broken = receive({{1, plain(500, "text/html", "<h1>oops</h1>")}});
  EXPECT_EQ(broken.record.outcome, Outcome::kError);
  EXPECT_EQ(broken.record.error, ErrorKind::kHttpStatus);
  EXPECT_EQ(broken.record.http_status, 500);
  EXPECT_EQ(broken.message, "HTTP 500: <h1>oops</h1>");
}

TEST(Interpret, Case24ResetKeepsTokens) {
  const auto s = receive({{0, kStream}, {1, content("a") + content("b")}}, Ending::kReset);
  EXPECT_EQ(s.record.outcome, Outcome::kReset);
  EXPECT_EQ(s.record.events.size(), 2u);
  EXPECT_EQ(receive({}, Ending::kReset).record.outcome, Outcome::kReset);
  EXPECT_EQ(receive({{0, kStream}, {1, content("a") + finished("stop")}}, Ending::kReset).record.outcome, Outcome::kOk)
      << "the answer was whole";
}

TEST(Interpret, Case26PromptProgressIsNoToken) {
  const auto s = receive(
      {{0, kStream},
       {1000,
        framed(
            R"({"choices":[{"index":0,"delta":{"role":"assistant","content":null}}],"prompt_progress":{"total":4000,"cache":1000,"processed":2048}})")},
       {2100, content("Hi")},
       {2200,
        framed(
            R"({"choices":[{"delta":{},"finish_reason":"stop"}],"timings":{"cache_n":1000,"prompt_n":3000,"predicted_n":35}})") +
            kDone}});
  EXPECT_NEAR(since(s.record, s.record.first_token), 2100, 1e-6);
  EXPECT_EQ(s.record.prompt_tokens, Tokens(4000));
  EXPECT_EQ(s.record.cached_tokens, Tokens(1000));
}

TEST(Interpret, MalformedAndForeign) {
  EXPECT_EQ(receive({{0, kStream}, {1, "data: {\"choices\":[\n\n" + kDone}}).record.error, ErrorKind::kMalformed);
  EXPECT_EQ(receive({{0, kStream}, {1, "data: 17\n\n" + kDone}}).record.error, ErrorKind::kMalformed);
  EXPECT_EQ(receive({{0, plain(200, "text/html", "<html>login</html>")}}).record.error, ErrorKind::kMalformed);
  EXPECT_EQ(receive({{0, kStream}, {1, "<html>login</html>"}}).record.error, ErrorKind::kMalformed);
  EXPECT_EQ(receive({{0, "SSH-2.0-x\r\n"}}).record.error, ErrorKind::kMalformed);
  std::string deep(200, '[');
  EXPECT_EQ(receive({{0, kStream}, {1, "data: {\"choices\":" + deep + "\n\n" + kDone}}).record.error,
            ErrorKind::kMalformed);
}

TEST(Interpret, NonStreamingAnswer) {
  const auto s = receive(
      {{300, plain(200, "application/json",
                   R"({"choices":[{"index":0,"message":{"role":"assistant","content":"four"},"finish_reason":"stop"}],
      "usage":{"prompt_tokens":7,"completion_tokens":2,"prompt_tokens_details":{"cached_tokens":3}}})")}});
  EXPECT_EQ(s.record.outcome, Outcome::kOk);
  EXPECT_FALSE(s.record.streamed);
  EXPECT_FALSE(s.record.first_token);
  EXPECT_TRUE(s.record.events.empty());
  EXPECT_EQ(s.record.output_tokens, Tokens(2));
  EXPECT_EQ(s.record.cached_tokens, Tokens(3));
  EXPECT_NEAR(since(s.record, s.record.done), 300, 1e-6);
}

TEST(Interpret, ServerTimesFromOurOwnServer) {
  const auto t = receive(
      {{0, kStream},
       {1, content("a") + finished("length")},
       {2,
        framed(
            R"({"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":1},"goodput":{"arrived_ns":10,"queued_ns":20,"scheduled_ns":30,"first_token_ns":40,"preempted_in_prefill":1,"preempted_in_decode":2}})") +
            kDone}});
  ASSERT_TRUE(t.record.server);
  EXPECT_EQ(t.record.server->arrived, TimePoint(Nanos(10)));
  EXPECT_EQ(t.record.server->first_token, TimePoint(Nanos(40)));
  EXPECT_FALSE(t.record.server->last_token);
  EXPECT_EQ(t.record.server->preempted_in_decode, 2);
}

TEST(Interpret, AnySplitAndAnySliceGiveTheSameRecord) {
  const std::string whole = std::string(kStream) + delta(R"("role":"assistant")") + content("a") + ": ping\n\n" +
                            content("\\u00e9") + content("c") + finished("length") + usage(5, 3) + kDone;
  auto reference = receive({{10, whole}}).record;
  for (auto& e : reference.events)
    e.coalesced = false;
  for (size_t i = 0; i <= whole.size(); ++i) {
    auto r = receive({{10, whole.substr(0, i)}, {10, whole.substr(i)}}, Ending::kClosed, 1 + i % 5).record;
    for (auto& e : r.events)
      e.coalesced = false;
    ASSERT_EQ(r, reference) << i;
  }
}

TEST(Interpret, ArbitraryEventsNeverBreakIt) {
  EXPECT_TRUE(rc::check([](const std::string& text) {
    receive({{0, kStream}, {1, "data: " + text + "\n\n" + text}});
    receive({{0, plain(200, "application/json", text)}});
    receive({{0, plain(500, "application/json", text)}});
  }));
}

}  // namespace
}  // namespace goodput
