// What is sent: the table, each protocol's request, and who is asked what beforehand.
#include "load/protocol.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "base/limits.h"
#include "load/request_body.h"
#include "load/request_bytes.h"
#include "load/retry_after.h"
#include "load/scripted_server.h"
#include "load/server_identity.h"
#include "load/test_answers.h"

namespace goodput {
namespace {

ScheduledRequest hello() {
  ScheduledRequest r;
  r.text = "Say \"hi\"\n你好";
  r.output = Tokens(7);
  return r;
}

LoadOptions options_of(Api api) {
  LoadOptions o;
  o.api = api;
  return o;
}

TEST(Protocol, NamesGoThereAndBack) {
  std::set<std::string_view> names;
  for (const Protocol& p : protocols()) {
    EXPECT_EQ(&protocol_of(p.api), &p);
    EXPECT_EQ(parse_api(p.name), p.api);
    EXPECT_TRUE(names.insert(p.name).second);
    EXPECT_NE(protocol_names().find(p.name), std::string::npos);
  }
  EXPECT_EQ(names.size(), static_cast<size_t>(kApis));
  EXPECT_FALSE(parse_api("openai"));
}

TEST(Protocol, EachBodyIsWhatItsServerWants) {
  const std::string text = R"("Say \"hi\"\n你好")", user = R"([{"role":"user","content":)" + text + "}]";
  const std::pair<Api, std::string> kBodies[] = {
      {Api::kCompletions,
       R"({"model":"m","max_tokens":7,"temperature":0,"stream":true,"stream_options":{"include_usage":true},"ignore_eos":true,"prompt":)" +
           text + "}"},
      {Api::kChat,
       R"({"model":"m","max_tokens":7,"temperature":0,"stream":true,"stream_options":{"include_usage":true},"ignore_eos":true,"messages":)" +
           user + "}"},
      {Api::kResponses,
       R"({"model":"m","input":)" + text + R"(,"max_output_tokens":7,"temperature":0,"stream":true,"store":false})"},
      {Api::kOllamaChat,
       R"({"model":"m","stream":true,"options":{"num_predict":7,"temperature":0},"messages":)" + user + "}"},
      {Api::kOllamaGenerate,
       R"({"model":"m","stream":true,"options":{"num_predict":7,"temperature":0},"prompt":)" + text + "}"},
      {Api::kTgi, R"({"inputs":)" + text + R"(,"parameters":{"max_new_tokens":7,"do_sample":false,"details":true}})"},
      {Api::kAnthropic, R"({"model":"m","max_tokens":7,"messages":)" + user + R"(,"temperature":0,"stream":true})"},
      {Api::kLlama, R"({"prompt":)" + text + R"(,"n_predict":7,"temperature":0,"stream":true,"ignore_eos":true})"},
  };
  for (const auto& [api, body] : kBodies)
    EXPECT_EQ(request_body(options_of(api), "m", hello()), body);
}

TEST(Protocol, WithoutStreamOrLimits) {
  for (const Protocol& p : protocols()) {
    LoadOptions o = options_of(p.api);
    o.stream = o.ignore_eos = false;
    o.running_usage = true;
    const std::string body = request_body(o, "m", hello());
    EXPECT_EQ(body.find("\"stream\":true"), std::string::npos) << p.name;
    EXPECT_EQ(body.find("stream_options"), std::string::npos) << p.name;
    EXPECT_EQ(body.find("ignore_eos"), std::string::npos) << p.name;
    const std::string all = request_bytes(parse_url("http://h:1").value(), o, Route{}, "m", hello());
    EXPECT_TRUE(all.starts_with("POST " + std::string(p.whole_path) + " HTTP/1.1\r\nHost: h:1\r\n")) << all;
    EXPECT_NE(all.find("\r\nAccept: application/json\r\n"), std::string::npos);
  }
  LoadOptions o = options_of(Api::kChat);
  o.running_usage = true;
  EXPECT_NE(request_body(o, "m", hello()).find(R"({"include_usage":true,"continuous_usage_stats":true})"),
            std::string::npos);
}

TEST(Protocol, PathsBelowAnyRoot) {
  for (const char* root : {"http://h:1", "http://h:1/", "http://h:1/v1", "http://h:1/api/"}) {
    const Url url = parse_url(root).value();
    EXPECT_EQ(api_path(url, "/api/chat"), "/api/chat") << root;
    EXPECT_EQ(api_path(url, "/v1/messages"), "/v1/messages") << root;
  }
  EXPECT_EQ(api_path(parse_url("http://h/proxy/v1").value(), "/generate"), "/proxy/generate");
}

TEST(Protocol, KeysGoWhereTheServerLooks) {
  const Url url = parse_url("http://h:1").value();
  for (const Protocol& p : protocols()) {
    LoadOptions o = options_of(p.api);
    const std::string without = get_bytes(url, o, Route{}, "/x");
    o.api_key = "secret";
    const std::string with = request_bytes(url, o, Route{}, "m", hello());
    const bool anthropic = p.api == Api::kAnthropic;
    EXPECT_EQ(with.find("Authorization: Bearer secret\r\n") != std::string::npos, !anthropic) << p.name;
    EXPECT_EQ(with.find("x-api-key: secret\r\n") != std::string::npos, anthropic) << p.name;
    EXPECT_EQ(without.find("anthropic-version: 2023-06-01\r\n") != std::string::npos, anthropic) << p.name;
    EXPECT_EQ(without.find("secret"), std::string::npos);
  }
  LoadOptions o = options_of(Api::kAnthropic);
  o.headers = {{"Anthropic-Version", "2099-01-01"}};
  const std::string own = request_bytes(url, o, Route{}, "m", hello());
  EXPECT_EQ(own.find("2023-06-01"), std::string::npos) << "the user's own header replaces ours";
  EXPECT_NE(own.find("Anthropic-Version: 2099-01-01\r\n"), std::string::npos);
}

TEST(Protocol, ExtraBodyIsMergedOver) {
  LoadOptions o = options_of(Api::kOllamaGenerate);
  o.extra_body =
      R"({"options":{"num_ctx":8192,"temperature":null},"stream":null,"keep_alive":-1,"a":{"b":null,"c":1}})";
  EXPECT_EQ(
      request_body(o, "m", hello()),
      R"({"model":"m","options":{"num_predict":7,"num_ctx":8192},"prompt":"Say \"hi\"\n你好","keep_alive":-1,"a":{"c":1}})");
  for (const char* bad : {"[1]", "1", "{", "{\"a\":}", "null", "\"x\"", "{}x"}) {
    o.extra_body = bad;
    const auto checked = check_options(o);
    ASSERT_FALSE(checked) << bad;
    EXPECT_EQ(checked.error().code, ErrorCode::kUsage);
    EXPECT_NE(checked.error().message.find("JSON object"), std::string::npos);
  }
  o.extra_body = std::string(limits::kMaxJsonDepth + 1, '[');
  EXPECT_FALSE(check_options(o));
  for (const char* good : {"", "{}", " {\"seed\":1} "}) {
    o.extra_body = good;
    EXPECT_TRUE(check_options(o)) << good;
  }
}

TEST(Protocol, Case22RetryAfterInBothForms) {
  const char* kNow = "Sun, 06 Nov 1994 08:49:37 GMT";
  EXPECT_EQ(parse_retry_after("2", ""), seconds(2));
  EXPECT_EQ(parse_retry_after(" 120 ", kNow), seconds(120));
  EXPECT_EQ(parse_retry_after("Sun, 06 Nov 1994 08:49:40 GMT", kNow), seconds(3));
  EXPECT_EQ(parse_retry_after("Mon, 07 Nov 1994 08:49:37 GMT", kNow), seconds(86'400));
  EXPECT_EQ(parse_retry_after("Sun, 06 Nov 1994 08:49:30 GMT", kNow), seconds(0)) << "passed";
  for (const char* neither :
       {"", "-1", "soon", "1.5", "2 s", "99999999999999999999", "Sun, 06 Nov 1994", "Sun, 06 Nov 9994 08:49:40 GMT"})
    EXPECT_FALSE(parse_retry_after(neither, kNow)) << neither;
  EXPECT_FALSE(parse_retry_after(kNow, "")) << "a date without a date to compare it with";
  EXPECT_EQ(describe_retry_after(kNow, ""), kNow);
  EXPECT_EQ(describe_retry_after(std::string(1000, 'x'), "").size(), 64u);
}

// A server that answers GETs of `routes` only.
ScriptedServer::Answer answering(std::map<std::string, std::string> routes) {
  return [routes = std::move(routes)](int, const std::string& request, ScriptedServer::Peer& peer) {
    const std::string path = request.substr(4, request.find(' ', 4) - 4);
    const auto route = routes.find(path);
    peer.send(route == routes.end() ? ScriptedServer::body(404, "text/plain", "404 page not found") : route->second);
  };
}

ServerIdentity ask(Api api, std::map<std::string, std::string> routes, const std::string& model = "") {
  ScriptedServer server({}, answering(std::move(routes)));
  LoadOptions o = options_of(api);
  o.base_url = server.url();
  o.model = model;
  const Url url = parse_url(o.base_url).value();
  const auto found = identify(url, o, find_routes(url, {}).value());
  EXPECT_TRUE(found);
  return found.value_or(ServerIdentity{});
}

TEST(Identity, EachProtocolHasItsOwnRoute) {
  const auto json = [](const std::string& text) { return ScriptedServer::body(200, "application/json", text); };
  const std::string models = json(R"({"data":[{"id":"a","max_model_len":4096},{"id":"b"}]})");
  for (const Api api : {Api::kCompletions, Api::kChat, Api::kResponses, Api::kAnthropic}) {
    const auto i = ask(api, {{"/v1/models", models}});
    EXPECT_EQ(i.first_model, "a");
    EXPECT_EQ(i.text, "a (4096), b");
  }
  const std::map<std::string, std::string> ollama = {
      {"/api/tags",
       json(R"({"models":[{"name":"llama3:8b","digest":"365c0bd3c000a25d"},{"name":"qwen:latest","digest":"ff"}]})")},
      {"/api/version", json(R"({"version":"0.12.5"})")}};
  for (const Api api : {Api::kOllamaChat, Api::kOllamaGenerate}) {
    EXPECT_EQ(ask(api, ollama).first_model, "llama3:8b");
    EXPECT_EQ(ask(api, ollama).text, "llama3:8b 365c0bd3c000 on Ollama 0.12.5");
    EXPECT_EQ(ask(api, ollama, "qwen").text, "qwen:latest ff on Ollama 0.12.5");
  }
  const auto tgi = ask(
      Api::kTgi,
      {{"/info",
        json(
            R"({"model_id":"org/m","model_sha":"b0","version":"3.3.5","max_concurrent_requests":128,"max_total_tokens":4096})")}});
  EXPECT_EQ(tgi.first_model, "org/m");
  EXPECT_EQ(tgi.text, "org/m b0, version 3.3.5, max_concurrent_requests 128, max_total_tokens 4096");
  const auto llama = ask(Api::kLlama, {{"/props", answer_file("props")}});
  EXPECT_EQ(llama.first_model, "tiny");
  EXPECT_EQ(llama.text, "tiny, build b1-de3ff81, slots 1, n_ctx 256 on llama.cpp");
  EXPECT_EQ(ask(Api::kLlama, {{"/v1/models", answer_file("models")}}).first_model, "tiny") << "--no-slots, no props";
  EXPECT_EQ(ask(Api::kChat, {{"/v1/models", answer_file("models")}}).text, "tiny on llama.cpp");
}

TEST(Identity, WhatDoesNotTellIsNameless) {
  for (const Protocol& p : protocols()) {
    EXPECT_EQ(ask(p.api, {}).first_model, "") << p.name;
    for (const char* odd :
         {"", "[]", "{}", "7", "{\"data\":7}", "{\"models\":[{\"name\":7}]}", "{\"model_id\":null}"}) {
      const std::string answer = ScriptedServer::body(200, "application/json", odd);
      EXPECT_EQ(ask(p.api, {{"/v1/models", answer}, {"/api/tags", answer}, {"/info", answer}, {"/props", answer}}).text,
                "");
    }
  }
}

// The whole generator: each protocol's recorded stream, over a socket.
TEST(Protocol, EachPlaysOverASocket) {
  for (const Protocol& p : protocols()) {
    SCOPED_TRACE(p.name);
    const std::string name = std::string(p.name) + "_stream";
    const std::string bytes = answer_file(name);
    ScriptedServer server(
        [&](int, const std::string&, ScriptedServer::Peer& peer) {
          peer.send(bytes);
          peer.close();
        },
        answering({}));
    LoadOptions o = options_of(p.api);
    o.base_url = server.url();
    o.model = p.names_model ? "m" : "";
    Schedule schedule;
    for (int i = 0; i < 3; ++i) {
      ScheduledRequest r = hello();
      r.index = static_cast<uint64_t>(i);
      schedule.requests.push_back(r);
    }
    const std::atomic<bool> stop = false;
    NoProgress progress;
    const auto result = run_load(schedule, o, nullptr, progress, stop);
    ASSERT_TRUE(result) << describe(result.error());
    for (const RequestRecord& r : result->records) {
      EXPECT_EQ(r.outcome, Outcome::kOk);
      EXPECT_FALSE(r.events.empty());
      EXPECT_TRUE(r.streamed);
    }
    EXPECT_TRUE(server.requests().at(0).starts_with("POST " + std::string(p.path) + " HTTP/1.1\r\n"));
  }
}

}  // namespace
}  // namespace goodput
