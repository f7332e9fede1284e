// What clients may ask and what they hear: requests as they come, with everything that can be wrong with them, and
// answers as JSON that another parser reads.
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <simdjson.h>

#include "base/limits.h"
#include "serve/api_request.h"
#include "serve/api_response.h"

namespace goodput {
namespace {

ApiRequest parsed(std::string_view body, bool chat = false) {
  auto request = parse_api_request(body, chat);
  EXPECT_TRUE(request) << body << ": " << request.error().message;
  return request ? *request : ApiRequest{};
}

std::string refused(std::string_view body, bool chat = false) {
  const auto request = parse_api_request(body, chat);
  EXPECT_FALSE(request) << body;
  if (request)
    return "accepted";
  EXPECT_EQ(request.error().status, 400);
  EXPECT_FALSE(request.error().message.empty());
  return request.error().param;
}

TEST(ApiRequest, ReadsACompletion) {
  const auto r =
      parsed(R"({"model":"m","prompt":"hi","max_tokens":7,"stream":true,"temperature":0,"top_p":0.5,"top_k":-1,
      "seed":-3,"priority":2,"stop":["a","b"],"ignore_eos":true,"user":"x","n":1,"echo":false,"logprobs":null,
      "stream_options":{"include_usage":true,"continuous_usage_stats":true,"later":1}})");
  EXPECT_EQ(r.model, "m");
  EXPECT_EQ(r.prompt, "hi");
  EXPECT_EQ(r.max_tokens, 7);
  EXPECT_TRUE(r.stream && r.include_usage && r.continuous_usage && r.sampling.ignore_eos);
  EXPECT_EQ(r.sampling.temperature, 0);
  EXPECT_EQ(r.sampling.top_p, 0.5f);
  EXPECT_EQ(r.sampling.top_k, 0);
  EXPECT_EQ(r.seed, static_cast<uint64_t>(-3));
  EXPECT_EQ(r.priority, 2);
  EXPECT_EQ(r.stop, (std::vector<std::string>{"a", "b"}));
}

TEST(ApiRequest, ReadsPromptsOfEveryForm) {
  EXPECT_EQ(parsed(R"({"prompt":[5,6,7]})").prompt_tokens, (std::vector<TokenId>{5, 6, 7}));
  EXPECT_EQ(parsed(R"({"prompt":["one"]})").prompt, "one");
  EXPECT_EQ(parsed(R"({"prompt":"x","stop":"end"})").stop, std::vector<std::string>{"end"});
  const auto chat = parsed(R"({"messages":[{"role":"system","content":"be"},{"role":"user","content":[
      {"type":"text","text":"a"},{"type":"text","text":"b"}]},{"role":"assistant","content":null}],
      "max_completion_tokens":3})",
                           true);
  ASSERT_EQ(chat.messages.size(), 3u);
  EXPECT_EQ(chat.messages[1].content, "ab");
  EXPECT_EQ(chat.messages[2].content, "");
  EXPECT_EQ(chat.max_tokens, 3);
}

TEST(ApiRequest, NamesTheFieldThatIsWrong) {
  EXPECT_EQ(refused(R"({})"), "prompt");
  EXPECT_EQ(refused(R"({"prompt":null})"), "prompt");
  EXPECT_EQ(refused(R"({"prompt":""})"), "prompt");
  EXPECT_EQ(refused(R"({"prompt":[]})"), "prompt");
  EXPECT_EQ(refused(R"({"prompt":["a","b"]})"), "prompt");
  EXPECT_EQ(refused(R"({"prompt":[1,"a"]})"), "prompt");
  EXPECT_EQ(refused(R"({"prompt":[-1]})"), "prompt");
  EXPECT_EQ(refused(R"({"prompt":[4294967296]})"), "prompt");
  EXPECT_EQ(refused(R"({"prompt":[1.5]})"), "prompt");
  EXPECT_EQ(refused(R"({"prompt":{}})"), "prompt");
  EXPECT_EQ(refused(R"({"messages":[]})", true), "messages");
  EXPECT_EQ(refused(R"({"messages":"x"})", true), "messages");
  EXPECT_EQ(refused(R"({"messages":[{"content":"x"}]})", true), "messages[0].role");
  EXPECT_EQ(refused(R"({"messages":[1]})", true), "messages[0].role");
  EXPECT_EQ(refused(R"({"messages":[{"role":"user"}]})", true), "messages[0].content");
  EXPECT_EQ(refused(R"({"messages":[{"role":"user","content":[{"type":"image_url"}]}]})", true), "messages[0].content");
  for (const char* wrong : {R"("max_tokens":0)",
                            R"("max_tokens":"7")",
                            R"("max_tokens":1.5)",
                            R"("max_completion_tokens":-1)",
                            R"("temperature":-0.1)",
                            R"("temperature":"hot")",
                            R"("top_p":0)",
                            R"("top_p":1.01)",
                            R"("top_k":-2)",
                            R"("seed":1.5)",
                            R"("priority":3000000000)",
                            R"("stream":1)",
                            R"("ignore_eos":"yes")",
                            R"("stop":5)",
                            R"("stop":[1])",
                            R"("stop":"")",
                            R"("n":2)",
                            R"("n":0)",
                            R"("best_of":2)",
                            R"("echo":true)",
                            R"("logprobs":1)",
                            R"("logprobs":true)",
                            R"("suffix":"x")",
                            R"("tools":[{}])",
                            R"("logit_bias":{"1":2})",
                            R"("presence_penalty":1)",
                            R"("response_format":{"type":"json_object"})",
                            R"("model":7)",
                            R"("stream_options":{})",
                            R"("cache_salt":1)"}) {
    const std::string field(wrong);
    EXPECT_EQ(refused(R"({"prompt":"x",)" + field + "}"), field.substr(1, field.find('"', 1) - 1)) << wrong;
  }
  EXPECT_EQ(refused(R"({"prompt":"x","stream":true,"stream_options":{"include_usage":1}})"),
            "stream_options.include_usage");
}

TEST(ApiRequest, BoundsStopStringsAndMessages) {
  std::string many = R"({"prompt":"x","stop":["a")", long_stop(limits::kMaxStopBytes + 1, 's'),
              chat = R"({"messages":[)";
  for (int i = 0; i < limits::kMaxStopStrings; ++i)
    many += R"(,"a")";
  EXPECT_EQ(refused(many + "]}"), "stop");
  EXPECT_EQ(refused(R"({"prompt":"x","stop":")" + long_stop + "\"}"), "stop");
  for (size_t i = 0; i <= limits::kMaxChatMessages; ++i)
    chat += R"({"role":"u","content":"c"},)";
  chat.back() = ']';
  EXPECT_EQ(refused(chat + "}", true), "messages");
}

TEST(ApiRequest, RefusesWhatIsNoJson) {
  for (const std::string& body :
       {std::string(), std::string("{"), std::string("[]"), std::string("nul"), std::string("{\"prompt\":\"\xFF\"}"),
        std::string("{\"prompt\":\"a\"} x"), std::string("{\"prompt\":\"\\ud800\"}"), std::string("\0", 1),
        R"({"prompt":"x","a":)" + std::string(40, '[') + std::string(40, ']') + "}", std::string(100'000, '[')})
    EXPECT_EQ(refused(body), "") << body.substr(0, 50);
  EXPECT_TRUE(parse_api_request(R"({"prompt":"x","a":)" + std::string(30, '[') + std::string(30, ']') + "}", false));
}

TEST(ApiRequest, SurvivesAnyBytes) {
  EXPECT_TRUE(rc::check([](const std::string& body, bool chat) { (void)parse_api_request(body, chat); }));
}

simdjson::dom::element json(simdjson::dom::parser& parser, const std::string& text) {
  simdjson::dom::element e;
  EXPECT_EQ(parser.parse(text).get(e), simdjson::SUCCESS) << text;
  return e;
}

std::string event_body(std::string_view event) {
  EXPECT_TRUE(event.starts_with("data: ") && event.ends_with("\n\n")) << event;
  EXPECT_EQ(event.find('\n'), event.size() - 2);  // one line, whatever the text
  return std::string(event.substr(6, event.size() - 8));
}

TEST(ApiResponse, ChunksCarryAnyTextInOpenAiShape) {
  EXPECT_TRUE(rc::check([](const std::vector<uint8_t>& bytes, bool chat) {
    std::string text;
    for (const uint8_t b : bytes)
      text += static_cast<char>(b & 0x7F);
    text += "\xE2\x82\xAC";
    const ApiResponse response(chat, RequestId(42), "a \"model\"", 1700000000);
    simdjson::dom::parser parser;
    const auto e = json(parser, event_body(response.chunk(text, true, FinishReason::kLength, {}, {})));
    RC_ASSERT(std::string_view(e["id"]) == (chat ? "chatcmpl-42" : "cmpl-42"));
    RC_ASSERT(std::string_view(e["object"]) == (chat ? "chat.completion.chunk" : "text_completion"));
    RC_ASSERT(std::string_view(e["model"]) == "a \"model\"");
    RC_ASSERT(std::string_view(e.at_pointer(chat ? "/choices/0/delta/content" : "/choices/0/text")) == text);
    RC_ASSERT(std::string_view(e.at_pointer("/choices/0/finish_reason")) == "length");
    if (chat)
      RC_ASSERT(std::string_view(e.at_pointer("/choices/0/delta/role")) == "assistant");
  }));
}

TEST(ApiResponse, UsageAndTimesStandInTheLastChunk) {
  const ApiResponse response(true, RequestId(1), "m", 0);
  ServerTimes times;
  times.arrived = TimePoint(Nanos(5));
  times.preempted_in_decode = 2;
  simdjson::dom::parser parser;
  const auto e = json(parser, event_body(response.usage_chunk({Tokens(10), Tokens(3), Tokens(8)}, times)));
  EXPECT_EQ(simdjson::dom::array(e["choices"]).size(), 0u);
  EXPECT_EQ(int64_t(e.at_pointer("/usage/total_tokens")), 13);
  EXPECT_EQ(int64_t(e.at_pointer("/usage/prompt_tokens_details/cached_tokens")), 8);
  EXPECT_EQ(int64_t(e.at_pointer("/goodput/arrived_ns")), 5);
  EXPECT_TRUE(e.at_pointer("/goodput/scheduled_ns").value().is_null());
  EXPECT_EQ(int64_t(e.at_pointer("/goodput/preempted_in_decode")), 2);
}

TEST(ApiResponse, RunningUsageAndTokenIdsWhereAskedFor) {
  const ApiResponse response(false, RequestId(1), "m", 0);
  const TokenId tokens[] = {7, 8};
  simdjson::dom::parser parser;
  const auto e =
      json(parser,
           event_body(response.chunk("", false, FinishReason::kNone, tokens, Usage{Tokens(4), Tokens(2), Tokens(0)})));
  EXPECT_EQ(int64_t(e.at_pointer("/choices/0/token_ids/1")), 8);
  EXPECT_EQ(int64_t(e.at_pointer("/usage/completion_tokens")), 2);
  EXPECT_TRUE(e.at_pointer("/choices/0/finish_reason").value().is_null());
  const auto whole = json(parser, response.whole("x", FinishReason::kStop, {}, {Tokens(4), Tokens(2), Tokens(0)}, {}));
  EXPECT_EQ(std::string_view(whole.at_pointer("/choices/0/text")), "x");
}

TEST(ApiResponse, ErrorsHaveOpenAiShape) {
  const auto reply = error_reply({503, "full \"now\"", "overloaded_error", {}, "queue_full"});
  simdjson::dom::parser parser;
  const auto e = json(parser, reply.body);
  EXPECT_EQ(std::string_view(e.at_pointer("/error/message")), "full \"now\"");
  EXPECT_TRUE(e.at_pointer("/error/param").value().is_null());
  EXPECT_EQ(std::string_view(e.at_pointer("/error/code")), "queue_full");
  ASSERT_EQ(reply.headers.size(), 1u);
  EXPECT_EQ(reply.headers[0].first, "Retry-After");
}

}  // namespace
}  // namespace goodput
