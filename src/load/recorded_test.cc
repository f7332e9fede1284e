// Answers recorded from an independent server, and hand-made ones where no server could be had: each is interpreted
// right, however its bytes are cut into reads.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <map>
#include <set>
#include <vector>

#include "load/test_answers.h"

namespace goodput {
namespace {

using Tokens_ = std::optional<Tokens>;

struct Expected {
  const char* name;
  Outcome outcome = Outcome::kOk;
  FinishReason finish = FinishReason::kLength;
  std::vector<std::pair<Channel, int>> events;  // runs of one channel
  Tokens_ output, prompt, cached;
  TokenSource source = TokenSource::kUsage;
  Tokens_ hidden = Tokens(0);
  const char* says = "";  // part of the message
};

constexpr auto kContent = Channel::kContent, kReasoning = Channel::kReasoning, kTool = Channel::kToolCall,
               kRefusal = Channel::kRefusal;
constexpr auto kStop = FinishReason::kStop, kLength = FinishReason::kLength, kToolCalls = FinishReason::kToolCalls;
constexpr auto kUsage = TokenSource::kUsage, kChunks = TokenSource::kChunks, kRunning = TokenSource::kRunningUsage,
               kNone = TokenSource::kNone;

// A server that hit max_tokens says "completed" in Responses: llama-server knows no response.incomplete.
const std::vector<Expected>& expectations() {
  using enum Outcome;
  const auto t = [](int n) { return Tokens_(Tokens(n)); };
  static const std::vector<Expected> kAll = {
      {"completions_stream", kOk, kLength, {{kContent, 5}}, t(5), t(7), t(1)},
      {"completions_whole", kOk, kLength, {}, t(5), t(7), t(6)},
      {"chat_stream", kOk, kLength, {{kContent, 5}}, t(5), t(15), t(0)},
      {"chat_whole", kOk, kLength, {}, t(5), t(15), t(14)},
      {"chat_progress", kOk, kLength, {{kContent, 3}}, t(3), t(15), t(14)},
      {"chat_thinking_stream", kOk, kLength, {{kReasoning, 4}}, t(4), t(20), t(0)},
      {"chat_thinking_whole", kOk, kLength, {}, t(4), t(20), t(19)},
      {"responses_stream", kOk, kStop, {{kContent, 5}}, t(5), t(15), t(14)},
      {"responses_whole", kOk, kStop, {}, t(5), t(15), t(14)},
      {"responses_thinking_stream", kOk, kStop, {{kReasoning, 4}}, t(4), t(20), t(19)},
      {"responses_thinking_whole", kOk, kStop, {}, t(4), t(20), t(19)},
      {"anthropic_stream", kOk, kLength, {{kContent, 5}}, t(5), t(15), t(14)},
      {"anthropic_whole", kOk, kLength, {}, t(5), t(15), t(14)},
      {"anthropic_thinking_stream", kOk, kLength, {{kReasoning, 4}}, t(4), t(20), t(19)},
      {"anthropic_thinking_whole", kOk, kLength, {}, t(4), t(20), t(19)},
      {"llama_stream", kOk, kLength, {{kContent, 5}}, t(5), t(7), t(6)},
      {"llama_whole", kOk, kLength, {}, t(5), t(7), t(6)},
      {"chat_overflow", kError, FinishReason::kNone, {}, {}, {}, {}, kNone, t(0), "context 256"},
      {"anthropic_overflow", kError, FinishReason::kNone, {}, {}, {}, {}, kNone, t(0), "exceeds the available context"},
      {"llama_overflow", kError, FinishReason::kNone, {}, {}, {}, {}, kNone, t(0), "HTTP 400"},
      {"chat_error", kError, FinishReason::kNone, {}, {}, {}, {}, kNone, t(0), "HTTP 500: [json.exception"},
      {"anthropic_error", kError, FinishReason::kNone, {}, {}, {}, {}, kNone, t(0), "HTTP 500: [json.exception"},
      // By hand.
      {"chat_tool_stream", kOk, kToolCalls, {{kTool, 3}}, t(17), t(30)},
      {"chat_refusal_stream", kOk, kStop, {{kRefusal, 2}}, t(2), {}, {}, kChunks},
      {"responses_tool_stream", kOk, kToolCalls, {{kTool, 3}}, t(17), t(50), t(32)},
      {"responses_refusal_stream", kOk, kStop, {{kRefusal, 2}}, t(2), t(9), t(0)},
      {"responses_summary_stream", kOk, kStop, {{kReasoning, 1}, {kContent, 1}}, t(65), t(9), t(0), kUsage, {}},
      {"responses_incomplete_stream", kOk, kLength, {{kContent, 2}}, t(2), t(9), t(0)},
      {"responses_failed_stream", kRejected, kStop, {}, {}, {}, {}, kNone, t(0), "Rate limit reached"},
      {"responses_error_stream",
       kError,
       FinishReason::kNone,
       {{kContent, 1}},
       t(1),
       {},
       {},
       kChunks,
       t(0),
       "The server had an error"},
      {"anthropic_tool_stream", kOk, kToolCalls, {{kContent, 1}, {kTool, 3}}, t(31), t(520), t(400)},
      {"anthropic_redacted_stream", kOk, kStop, {{kContent, 2}}, t(90), t(20), {}, kUsage, {}},
      {"anthropic_overloaded_stream", kRejected, FinishReason::kNone, {}, {}, {}, {}, kNone, t(0), "Overloaded"},
      {"anthropic_late_error_stream",
       kError,
       FinishReason::kNone,
       {{kContent, 1}},
       t(1),
       t(3),
       {},
       kChunks,
       t(0),
       "Overloaded"},
      {"anthropic_busy", kRejected, FinishReason::kNone, {}, {}, {}, {}, kNone, t(0), "HTTP 529: Overloaded"},
      {"ollama_generate_stream", kOk, kStop, {{kContent, 3}}, t(18), t(11), t(8)},
      {"ollama_generate_whole", kOk, kStop, {}, t(18), t(11), t(8)},
      {"ollama_generate_error_stream",
       kError,
       FinishReason::kNone,
       {{kContent, 2}},
       t(2),
       {},
       {},
       kChunks,
       t(0),
       "runner stopped"},
      {"ollama_generate_cut_stream",
       kError,
       FinishReason::kNone,
       {{kContent, 2}},
       t(2),
       {},
       {},
       kChunks,
       t(0),
       "without done: true"},
      {"ollama_chat_stream", kOk, kLength, {{kReasoning, 2}, {kContent, 2}}, t(4), t(26)},
      {"ollama_chat_tool_stream", kOk, kStop, {{kTool, 1}}, t(33), t(122)},
      {"ollama_chat_busy", kRejected, FinishReason::kNone, {}, {}, {}, {}, kNone, t(0), "server busy"},
      {"tgi_stream", kOk, kStop, {{kContent, 3}}, t(4), t(5)},
      {"tgi_whole", kOk, kLength, {}, t(3)},
      {"tgi_error_stream",
       kError,
       FinishReason::kNone,
       {{kContent, 1}},
       t(1),
       {},
       {},
       kRunning,
       t(0),
       "CUDA out of memory"},
      {"tgi_validation_stream", kRejected, FinishReason::kNone, {}, {}, {}, {}, kNone, t(0), "Input validation error"},
      {"tgi_overloaded", kRejected, FinishReason::kNone, {}, {}, {}, {}, kNone, t(0), "(Retry-After: 7 s)"},
  };
  return kAll;
}

Reception how(const std::string& name) {
  return {.api = api_of_answer(name).value(), .stream = !name.ends_with("_whole")};
}

TEST(Recorded, EachAnswerIsReadRight) {
  for (const Expected& e : expectations()) {
    SCOPED_TRACE(e.name);
    const Seen s = receive_as(how(e.name), {{250, answer_file(e.name)}});
    const RequestRecord& r = s.record;
    EXPECT_EQ(r.outcome, e.outcome) << s.message;
    EXPECT_EQ(r.finish, e.finish);
    std::vector<std::pair<Channel, int>> runs;
    for (const TokenEvent& event : r.events) {
      if (runs.empty() || runs.back().first != event.channel)
        runs.emplace_back(event.channel, 0);
      ++runs.back().second;
    }
    EXPECT_EQ(runs, e.events);
    EXPECT_EQ(r.output_tokens, e.output);
    EXPECT_EQ(r.prompt_tokens, e.prompt);
    EXPECT_EQ(r.cached_tokens, e.cached);
    EXPECT_EQ(r.token_source, e.source);
    EXPECT_EQ(r.hidden_tokens, e.hidden);
    EXPECT_NE(s.message.find(e.says), std::string::npos) << s.message;
    EXPECT_EQ(s.message.empty(), e.outcome == Outcome::kOk) << s.message;
    EXPECT_EQ(r.first_token.has_value(), !e.events.empty());
    const bool answered =
        std::any_of(e.events.begin(), e.events.end(), [](auto& run) { return run.first != kReasoning; });
    EXPECT_EQ(r.first_answer.has_value(), answered) << "reasoning is no answer";
  }
}

TEST(Recorded, EveryFileIsExpected) {
  std::set<std::string> expected{"models", "props", "no_route"};  // of the identity probe
  for (const Expected& e : expectations())
    expected.insert(e.name);
  for (const std::string& name : answer_names())
    EXPECT_TRUE(expected.contains(name)) << name;
}

TEST(Recorded, TokensPerEventWhereTheServerTells) {
  for (const char* name : {"llama_stream", "chat_progress", "tgi_stream", "anthropic_stream"}) {
    for (const TokenEvent& e : receive_as(how(name), {{1, answer_file(name)}}).record.events)
      EXPECT_EQ(e.tokens, 1) << name;
  }
  for (const TokenEvent& e :
       receive_as(how("ollama_generate_stream"), {{1, answer_file("ollama_generate_stream")}}).record.events)
    EXPECT_EQ(e.tokens, 0) << "18 tokens in 3 lines: which had how many is unknown";
}

// Milliseconds equal the index of the byte, so a stamp names the byte that made it.
std::vector<Read> byte_by_byte(const std::string& bytes) {
  std::vector<Read> reads;
  for (size_t i = 0; i < bytes.size(); ++i)
    reads.push_back({static_cast<double>(i), bytes.substr(i, 1)});
  return reads;
}

// What must not depend on how bytes were cut: all but stamps.
RequestRecord without_times(RequestRecord r) {
  r.first_chunk.reset(), r.first_token.reset(), r.first_answer.reset(), r.done.reset(), r.closed.reset();
  r.server.reset();
  for (TokenEvent& e : r.events) {
    e.user = Nanos(0);
    e.kernel.reset();
    e.coalesced = false;
  }
  return r;
}

// Cuts `bytes` at `cuts` (ascending); read k comes at the index of its first byte. Each token must carry the stamp of
// the read that holds its last payload byte.
void check_split(const Reception& h, const std::string& bytes, const RequestRecord& single,
                 const std::vector<size_t>& cuts) {
  std::vector<Read> reads;
  std::vector<size_t> starts;
  size_t from = 0;
  for (size_t k = 0; k <= cuts.size(); ++k) {
    const size_t to = k < cuts.size() ? cuts[k] : bytes.size();
    if (to > from) {
      reads.push_back({static_cast<double>(from), bytes.substr(from, to - from)});
      starts.push_back(from);
    }
    from = to;
  }
  const RequestRecord r = receive_as(h, reads).record;
  ASSERT_EQ(without_times(r), without_times(single));
  for (size_t i = 0; i < r.events.size(); ++i) {
    const auto byte = static_cast<size_t>(to_ms(single.events[i].user) + 0.5);
    const size_t read = *std::prev(std::upper_bound(starts.begin(), starts.end(), byte));
    ASSERT_EQ(r.events[i].user, from_ms(static_cast<double>(read))) << "event " << i;
  }
}

TEST(Recorded, EverySplitGivesTheSameTokensAndStamps) {
  for (const std::string& name : answer_names()) {
    const auto api = api_of_answer(name);
    if (!api)
      continue;
    SCOPED_TRACE(name);
    const std::string bytes = answer_file(name);
    const RequestRecord single = receive_as(how(name), byte_by_byte(bytes)).record;
    for (const TokenEvent& e : single.events)
      ASSERT_EQ(bytes.at(static_cast<size_t>(to_ms(e.user) + 0.5)), '}') << "an event's last payload byte";
    for (size_t i = 0; i <= bytes.size() && !HasFatalFailure(); ++i)
      check_split(how(name), bytes, single, {i});
  }
}

TEST(Recorded, RandomSplitsGiveTheSameTokensAndStamps) {
  std::vector<std::string> names = answer_names();
  std::erase_if(names, [](const std::string& n) { return !api_of_answer(n); });
  std::map<std::string, RequestRecord> singles;
  for (const std::string& name : names)
    singles[name] = receive_as(how(name), byte_by_byte(answer_file(name))).record;
  EXPECT_TRUE(rc::check([&] {
    const std::string name = *rc::gen::elementOf(names);
    const std::string bytes = answer_file(name);
    auto cuts = *rc::gen::container<std::vector<size_t>>(rc::gen::inRange<size_t>(0, bytes.size() + 1));
    std::sort(cuts.begin(), cuts.end());
    Reception h = how(name);
    h.slice = *rc::gen::inRange<size_t>(1, 9);
    check_split(h, bytes, singles[name], cuts);
    RC_ASSERT(!testing::Test::HasFailure());
  }));
}

// Whatever is missing of a stream, it is never a success before the protocol has said that the answer is complete.
TEST(Recorded, ACutStreamIsNoSuccess) {
  for (const Expected& e : expectations()) {
    const std::string name = e.name;
    if (!name.ends_with("_stream") || e.outcome != Outcome::kOk)
      continue;
    SCOPED_TRACE(name);
    const std::string bytes = answer_file(name);
    static constexpr std::string_view kEnds[] = {
        "\"finish_reason\":\"", "[DONE]",        "\"response.completed\"", "\"response.incomplete\"",
        "\"message_stop\"}",    "\"done\":true", "\"stop\":true",          "\"generated_text\":\""};
    size_t complete = bytes.size();
    for (const auto end : kEnds)
      complete = std::min(complete, bytes.find(end));
    ASSERT_LT(complete, bytes.size());
    for (size_t i = 0; i <= complete; ++i) {
      const RequestRecord r = receive_as(how(name), {{1, bytes.substr(0, i)}}).record;
      ASSERT_NE(r.outcome, Outcome::kOk) << i;
      ASSERT_EQ(
          receive_as({.api = *api_of_answer(name), .last = Ending::kReset}, {{1, bytes.substr(0, i)}}).record.outcome,
          Outcome::kReset)
          << i;
    }
  }
}

TEST(Recorded, AContentTypeThatDoesNotTellFallsBackOnTheProtocol) {
  for (const std::string name : {"tgi_stream", "ollama_generate_stream", "anthropic_stream"}) {
    std::string bytes = answer_file(name);
    const size_t type = bytes.find("Content-Type: ") + 14;
    for (const char* other : {"text/plain", "application/octet-stream", "x-unknown"}) {
      std::string with = bytes;
      with.replace(type, with.find("\r\n", type) - type, other);
      EXPECT_EQ(without_times(receive_as(how(name), {{1, with}}).record),
                without_times(receive_as(how(name), {{1, bytes}}).record))
          << name << " as " << other;
    }
  }
}

TEST(Recorded, ContentTypesAreReadLeniently) {
  const std::string lines =
      "{\"model\":\"m\",\"response\":\"a\",\"done\":false}\n"
      "{\"model\":\"m\",\"response\":\"\",\"done\":true}\n";
  for (const char* type :
       {"application/x-ndjson", "Application/X-NDJSON; charset=utf-8", "application/jsonl ;x", "application/ndjson"}) {
    // Whatever the protocol's own framing is: the server has said what it sends.
    const auto r = receive_as({.api = Api::kOllamaGenerate, .stream = false},
                              {{1, "HTTP/1.1 200 OK\r\nContent-Type: " + std::string(type) + "\r\n\r\n" + lines}});
    EXPECT_EQ(r.record.outcome, Outcome::kOk) << type;
    EXPECT_EQ(r.record.chunks, 2u) << type;
  }
  const std::string whole = "{\"model\":\"m\",\"response\":\"a b\",\"done\":true,\"eval_count\":2}";
  for (const char* type : {"application/json", "APPLICATION/JSON;charset=utf-8"}) {
    const auto r = receive_as({.api = Api::kOllamaGenerate},
                              {{1, "HTTP/1.1 200 OK\r\nContent-Type: " + std::string(type) + "\r\n\r\n" + whole}});
    EXPECT_EQ(r.record.outcome, Outcome::kOk) << type;
    EXPECT_FALSE(r.record.streamed) << "a server that does not stream";
  }
}

TEST(Recorded, ServerDurationsStandWhereTheTokensWereSeen) {
  const RequestRecord r = receive_as(how("llama_stream"), {{250, answer_file("llama_stream")}}).record;
  ASSERT_TRUE(r.server && r.server->scheduled && r.server->first_token && r.server->last_token);
  EXPECT_EQ(r.server->first_token, r.first_token);
  EXPECT_FALSE(r.server->arrived || r.server->queued) << "the server does not tell";
  const RequestRecord w = receive_as(how("chat_whole"), {{250, answer_file("chat_whole")}}).record;
  ASSERT_TRUE(w.server && w.server->last_token);
  EXPECT_EQ(w.server->last_token, w.done);
}

}  // namespace
}  // namespace goodput
