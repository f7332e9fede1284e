// The worked cases that are not about OpenAI's streams, each with its whole kind.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "load/test_answers.h"
#include "metrics/request_metrics.h"
#include "metrics/server_report.h"

namespace goodput {
namespace {

const char kLines[] = "HTTP/1.1 200 OK\r\nContent-Type: application/x-ndjson\r\n\r\n";
const char kEvents[] = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n";

Seen ollama(const std::string& lines, Tokens asked = Tokens(0), Api api = Api::kOllamaGenerate) {
  return receive_as({.api = api, .asked_prompt = asked}, {{0, kLines}, {100, lines}});
}

const std::string kHello = "{\"model\":\"m\",\"response\":\"Hello\",\"done\":false}\n";

std::string last_line(const std::string& members) {
  return R"({"model":"m","response":"","done":true,"done_reason":"stop")" + members + "}\n";
}

TEST(Cases, Case27OllamaFinalRecord) {
  const std::string stream =
      kHello +
      last_line(
          R"(,"total_duration":174560334,"load_duration":101397084,"prompt_eval_count":11,"prompt_eval_cached_count":8,"prompt_eval_duration":13074791,"eval_count":18,"eval_duration":52479709)");
  const RequestRecord r = ollama(stream).record;
  ASSERT_EQ(r.outcome, Outcome::kOk);
  EXPECT_EQ(r.prompt_tokens, Tokens(11));
  EXPECT_EQ(r.cached_tokens, Tokens(8));
  EXPECT_EQ(r.output_tokens, Tokens(18));
  EXPECT_EQ(r.token_source, TokenSource::kUsage);
  const ServerIntervals i = server_intervals(r);
  EXPECT_EQ(i.prefill, Nanos(13'074'791)) << "nanoseconds";
  EXPECT_EQ(i.decode, Nanos(52'479'709));
  EXPECT_EQ(i.queue, Nanos(101'397'084)) << "the load of the model";
  EXPECT_FALSE(i.tokenization);
  const ServerRates rates = server_rates({.prompt = *r.prompt_tokens,
                                          .cached = *r.cached_tokens,
                                          .output = *r.output_tokens,
                                          .load = *i.queue,
                                          .prefill = *i.prefill,
                                          .decode = *i.decode});
  EXPECT_NEAR(*rates.decode_tokens_per_s, 343.0, 0.05);
  EXPECT_NEAR(*rates.prefill_tokens_per_s, 229.4, 0.1);
  EXPECT_NEAR(to_ms(*rates.ttft_estimate), 114.5, 0.05);
  // Split anywhere, it is the same.
  const std::string whole = kLines + stream;
  for (size_t cut = 0; cut <= whole.size(); ++cut) {
    const auto s = receive_as({.api = Api::kOllamaGenerate}, {{100, whole.substr(0, cut)}, {100, whole.substr(cut)}});
    ASSERT_EQ(s.record.output_tokens, Tokens(18)) << cut;
    ASSERT_EQ(s.record.server, r.server) << cut;
  }
}

TEST(Cases, Case27DurationsThatAreMissingOrAbsurdAreAbsent) {
  for (const char* members :
       {"", R"(,"prompt_eval_duration":0,"eval_duration":0,"load_duration":0)",
        R"(,"prompt_eval_duration":-5,"eval_duration":"soon","load_duration":null)", R"(,"eval_duration":1e300)"}) {
    const RequestRecord r = ollama(kHello + last_line(members)).record;
    EXPECT_EQ(r.outcome, Outcome::kOk) << members;
    EXPECT_FALSE(r.server) << members;
    EXPECT_EQ(r.token_source, TokenSource::kChunks) << "no eval_count: chunks";
  }
}

TEST(Cases, Case28OllamaCachedPromptCounts) {
  const Tokens asked(1000);
  const RequestRecord old = ollama(kHello + last_line(R"(,"eval_count":1)"), asked).record;
  EXPECT_FALSE(old.prompt_tokens) << "absent is absent, never 0";
  EXPECT_FALSE(old.cached_tokens);
  EXPECT_FALSE(ollama(kHello + last_line(R"(,"prompt_eval_count":0)"), asked).record.prompt_tokens);
  const RequestRecord mid =
      ollama(kHello + last_line(R"(,"prompt_eval_count":1,"prompt_eval_duration":9000000)"), asked).record;
  EXPECT_EQ(mid.prompt_tokens, asked) << "the client's own count";
  EXPECT_EQ(mid.cached_tokens, Tokens(999));
  const RequestRecord now =
      ollama(
          kHello +
              last_line(
                  R"(,"prompt_eval_count":1000,"prompt_eval_cached_count":999,"prompt_eval_duration":9000000,"eval_duration":1)"),
          asked)
          .record;
  for (const RequestRecord& r : {mid, now}) {
    EXPECT_EQ(r.prompt_tokens, asked);
    const ServerRates rates =
        server_rates({.prompt = *r.prompt_tokens, .cached = *r.cached_tokens, .prefill = *server_intervals(r).prefill});
    EXPECT_NEAR(*rates.prefill_tokens_per_s, 111, 0.2);
  }
  // What only looks like it: a prompt that the window cut, words that are not quite tokens, no count of our own.
  const auto counted = [&](int count, Tokens sent) {
    return ollama(kHello + last_line(R"(,"prompt_eval_count":)" + std::to_string(count)), sent).record;
  };
  EXPECT_EQ(counted(4096, Tokens(100'000)).prompt_tokens, Tokens(4096));
  EXPECT_EQ(counted(800, Tokens(1000)).prompt_tokens, Tokens(800));
  EXPECT_EQ(counted(1, Tokens(0)).prompt_tokens, Tokens(1));
  EXPECT_FALSE(counted(800, Tokens(1000)).cached_tokens);
  // A server that tells what it had cached is believed.
  EXPECT_EQ(
      ollama(kHello + last_line(R"(,"prompt_eval_count":1,"prompt_eval_cached_count":0)"), asked).record.prompt_tokens,
      Tokens(1));
}

TEST(Cases, Case29OllamaErrorMidNdjson) {
  const std::string blue = R"({"model":"m","response":"Blue","done":false})"
                           "\n",
                    sky = R"({"model":"m","response":" sky","done":false})"
                          "\n";
  const Seen error = ollama(blue + sky + "{\"error\":\"runner stopped\"}\n");
  EXPECT_EQ(error.record.outcome, Outcome::kError);
  EXPECT_EQ(error.record.error, ErrorKind::kErrorObject);
  EXPECT_EQ(error.message, "runner stopped");
  EXPECT_EQ(error.record.events.size(), 2u);
  EXPECT_FALSE(error.record.prompt_tokens);
  EXPECT_EQ(error.record.token_source, TokenSource::kChunks);
  EXPECT_EQ(ollama(blue + "{\"error\":\"runner stopped\"}").record.error, ErrorKind::kErrorObject) << "no line's end";
  for (const std::string& cut : {blue + sky, blue + sky.substr(0, 20), blue + R"({"done":true)"}) {
    const RequestRecord r = ollama(cut).record;
    EXPECT_EQ(r.error, ErrorKind::kTruncated) << cut;
    EXPECT_FALSE(r.events.empty()) << "kept for diagnosis";
  }
  EXPECT_EQ(ollama(blue + "{\"model\":\"m\",\"response\":\"\",\"done\":true}").record.outcome, Outcome::kOk)
      << "the last line needs no end";
  EXPECT_EQ(ollama(blue + "{oops}\n" + last_line("")).record.error, ErrorKind::kMalformed);
  EXPECT_EQ(ollama("").record.error, ErrorKind::kEmpty);
  EXPECT_EQ(ollama(last_line("")).record.error, ErrorKind::kEmpty);
  const RequestRecord thinks = ollama(R"({"model":"m","response":"","thinking":"Hm","done":false})"
                                      "\n" +
                                      last_line(R"(,"eval_count":1)"))
                                   .record;
  ASSERT_EQ(thinks.events.size(), 1u);
  EXPECT_EQ(thinks.events[0].channel, Channel::kReasoning);
  EXPECT_FALSE(thinks.first_answer);
}

TEST(Cases, Case23Ollama503QueueFull) {
  for (const char* text : {"server busy, please try again.  maximum pending requests exceeded", "", "日本語"}) {
    const std::string body = std::string(R"({"error":")") + text + "\"}";
    const std::string answer =
        "HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\nContent-Length: " +
        std::to_string(body.size()) + "\r\n\r\n" + body;
    for (const Api api : {Api::kOllamaChat, Api::kOllamaGenerate}) {
      const Seen s = receive_as({.api = api}, {{3, answer}});
      EXPECT_EQ(s.record.outcome, Outcome::kRejected) << "by status, whatever the words";
      EXPECT_EQ(s.record.http_status, 503);
      EXPECT_EQ(s.record.done, s.record.closed) << "the latency of the failure is kept";
      EXPECT_FALSE(s.record.first_token);
    }
  }
}

TEST(Cases, Case26PromptProgressInEveryShape) {
  // As a real server frames it, and as llama-server's own protocol does.
  const auto chat = receive_as({.api = Api::kChat}, {{5, answer_file("chat_progress")}}).record;
  EXPECT_EQ(chat.events.size(), 3u);
  EXPECT_EQ(chat.chunks, 7u);
  const auto own =
      receive_as({.api = Api::kLlama},
                 {{0, kEvents},
                  {1000,
                   "data: {\"content\":\"\",\"tokens\":[],\"stop\":false,\"prompt_progress\":{\"total\":4000,"
                   "\"cache\":1000,\"processed\":2048,\"time_ms\":900}}\n\n"},
                  {2100, "data: {\"content\":\"Hi\",\"tokens\":[15043],\"stop\":false,\"tokens_predicted\":1}\n\n"},
                  {2761,
                   "data: {\"content\":\"\",\"stop\":true,\"stop_type\":\"eos\",\"tokens_predicted\":35,"
                   "\"tokens_evaluated\":4000,\"timings\":{\"cache_n\":1000,\"prompt_n\":3000,\"prompt_ms\":1950,"
                   "\"predicted_n\":35,\"predicted_ms\":661}}\n\n"}})
          .record;
  EXPECT_EQ(own.outcome, Outcome::kOk);
  EXPECT_NEAR(since(own, own.first_token), 2100, 1e-6);
  EXPECT_NEAR(since(own, own.first_chunk), 1000, 1e-6);
  EXPECT_EQ(own.prompt_tokens, Tokens(4000));
  EXPECT_EQ(own.cached_tokens, Tokens(1000));
  EXPECT_EQ(own.finish, FinishReason::kStop);
  const ServerRates rates = server_rates(
      {.prompt = *own.prompt_tokens, .cached = *own.cached_tokens, .prefill = *server_intervals(own).prefill});
  EXPECT_NEAR(*rates.prefill_tokens_per_s, 1538, 1);
}

// Case 16 on every protocol that calls tools: the name is the first token, the arguments follow.
TEST(Cases, Case16ToolCallsOfEveryProtocol) {
  for (const char* name :
       {"chat_tool_stream", "responses_tool_stream", "anthropic_tool_stream", "ollama_chat_tool_stream"}) {
    const auto r = receive_as({.api = *api_of_answer(name)}, {{5, answer_file(name)}}).record;
    EXPECT_EQ(r.outcome, Outcome::kOk) << name;
    EXPECT_EQ(r.events.back().channel, Channel::kToolCall) << name;
    EXPECT_TRUE(r.first_answer) << name;
  }
  const auto anthropic = receive_as({.api = Api::kAnthropic}, {{5, answer_file("anthropic_tool_stream")}}).record;
  EXPECT_EQ(anthropic.events.size(), 4u) << "an empty piece of arguments is no token";
}

// Case 18 and 20 on every protocol: an error object inside a 200, in each shape, before and after the first token.
TEST(Cases, Case18ErrorsInsideA200OfEveryProtocol) {
  for (const Protocol& p : protocols()) {
    const bool lines = p.framing == Framing::kNdjson;
    const auto framed = [&](const std::string& json) { return lines ? json + "\n" : "data: " + json + "\n\n"; };
    const std::string head = lines ? kLines : kEvents;
    struct Shape {
      const char* json;
      bool rejected;
    };
    for (const Shape& shape :
         {Shape{R"({"error":{"message":"limit reached","type":"server_error"}})", false},
          Shape{R"({"error":"out of memory"})", false}, Shape{R"({"error":"x","error_type":"overloaded"})", true},
          Shape{R"({"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}})", true},
          Shape{R"({"type":"error","code":"rate_limit_exceeded","message":"slow down"})", true},
          Shape{R"({"object":"error","message":"broken","code":500})", false},
          Shape{R"({"error":{"code":503,"message":"x"}})", true}}) {
      SCOPED_TRACE(std::string(p.name) + " " + shape.json);
      const RequestRecord first = receive_as({.api = p.api}, {{1, head + framed(shape.json)}}).record;
      EXPECT_EQ(first.outcome, shape.rejected ? Outcome::kRejected : Outcome::kError);
      EXPECT_EQ(first.error, ErrorKind::kErrorObject);
      EXPECT_FALSE(first.output_tokens);
      // After tokens it had been admitted, whatever it says.
      std::string stream = answer_file(std::string(p.name) + "_stream");
      const size_t type = stream.find("\r\n\r\n") + 4;
      std::string events;  // the payload without HTTP's chunks
      for (size_t at = type; at < stream.size();) {
        const size_t size = std::stoul(stream.substr(at, 8), nullptr, 16);
        const size_t begin = stream.find("\r\n", at) + 2;
        events += stream.substr(begin, size);
        at = begin + size + 2;
        if (size == 0)
          break;
      }
      const std::string separator = lines ? "\n" : "\n\n";
      std::string cut;
      RequestRecord late;
      do {  // up to its first token
        const size_t end = events.find(separator) + separator.size();
        cut += events.substr(0, end);
        events.erase(0, end);
        late = receive_as({.api = p.api}, {{1, head + cut}}).record;
      } while (late.events.empty());
      late = receive_as({.api = p.api}, {{1, head + cut + framed(shape.json)}}).record;
      EXPECT_EQ(late.outcome, Outcome::kError);
      EXPECT_EQ(late.error, ErrorKind::kErrorObject);
      EXPECT_EQ(late.events.size(), 1u) << "kept";
    }
    if (!lines) {
      const auto bare = receive_as({.api = p.api}, {{1, std::string(kEvents) + R"({"error":{"message":"bare"}})"}});
      EXPECT_EQ(bare.record.error, ErrorKind::kErrorObject) << p.name;
      EXPECT_EQ(bare.message, "bare");
    }
  }
}

TEST(Cases, Case22RefusalsKeepWhenToComeBack) {
  for (const auto& [status, header, says] : std::vector<std::array<std::string, 3>>{
           {"429", "Retry-After: 2\r\n", "HTTP 429 (Retry-After: 2 s)"},
           {"503", "Date: Sun, 06 Nov 1994 08:49:37 GMT\r\nRetry-After: Sun, 06 Nov 1994 08:49:47 GMT\r\n",
            "HTTP 503 (Retry-After: 10 s)"},
           {"529", "Retry-After: later\r\n", "HTTP 529 (Retry-After: later)"},
           {"429", "", "HTTP 429"}}) {
    for (const Protocol& p : protocols()) {
      const Seen s =
          receive_as({.api = p.api}, {{1, "HTTP/1.1 " + status + " No\r\n" + header + "Content-Length: 0\r\n\r\n"}});
      EXPECT_EQ(s.record.outcome, Outcome::kRejected) << p.name;
      EXPECT_EQ(s.message, says) << p.name;
    }
  }
}

TEST(Cases, AWholeAnswerWhoseConnectionStaysOpenIsWhole) {
  for (const char* name :
       {"anthropic_stream", "ollama_chat_stream", "responses_stream", "tgi_stream", "llama_stream"}) {
    std::string bytes = answer_file(name);
    bytes.resize(bytes.rfind("0\r\n\r\n"));  // HTTP's end never comes
    for (const Ending last : {Ending::kTimeout, Ending::kRunEnded, Ending::kReset})
      EXPECT_EQ(receive_as({.api = *api_of_answer(name), .last = last}, {{1, bytes}}).record.outcome, Outcome::kOk)
          << name;
    EXPECT_EQ(
        receive_as({.api = *api_of_answer(name), .last = Ending::kTimeout}, {{1, bytes.substr(0, bytes.size() / 3)}})
            .record.outcome,
        Outcome::kTimeout)
        << name;
  }
}

TEST(Cases, ArbitraryEventsBreakNoProtocol) {
  EXPECT_TRUE(rc::check([](const std::string& text) {
    for (const Protocol& p : protocols()) {
      receive_as({.api = p.api}, {{0, kEvents}, {1, "data: " + text + "\n\n" + text}});
      receive_as({.api = p.api}, {{0, kLines}, {1, text + "\n" + text}});
      receive_as({.api = p.api}, {{0, "HTTP/1.1 200 OK\r\n\r\n" + text}});
    }
  }));
}

}  // namespace
}  // namespace goodput
