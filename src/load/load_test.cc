// The whole generator over loopback against a server that misbehaves on command: each outcome proven, none guessed.
#include "load/load.h"

#include <gtest/gtest.h>

#include <set>
#include <thread>

#include "base/clock.h"
#include "load/scripted_server.h"

namespace goodput {
namespace {

using Peer = ScriptedServer::Peer;

Schedule schedule_of(int n, Nanos gap = milliseconds(2), int output = 3) {
  Schedule s;
  for (int i = 0; i < n; ++i) {
    ScheduledRequest r;
    r.index = static_cast<uint64_t>(i);
    r.at = gap * i;
    r.output = Tokens(output);
    r.text = "prompt " + std::to_string(i);
    s.requests.push_back(r);
  }
  return s;
}

LoadOptions options_for(const ScriptedServer& server) {
  LoadOptions o;
  o.base_url = server.url();
  o.request_timeout = seconds(20);
  return o;
}

Result<LoadResult> run(const Schedule& s, const LoadOptions& o, RecordSink* sink = nullptr) {
  const std::atomic<bool> stop = false;
  NoProgress progress;
  return run_load(s, o, sink, progress, stop);
}

// The first request is answered well (so that an API is known to be there), the second as given.
RequestRecord second(const ScriptedServer::Answer& answer, Nanos timeout = seconds(20)) {
  ScriptedServer server([&](int n, const std::string& request, Peer& peer) {
    if (n == 0)
      return peer.send(ScriptedServer::good(3));
    answer(n, request, peer);
  });
  LoadOptions o = options_for(server);
  o.concurrency = 1;  // one after the other
  o.request_timeout = timeout;
  const auto result = run(schedule_of(2), o);
  if (!result) {
    ADD_FAILURE() << describe(result.error());
    return {};
  }
  EXPECT_EQ(result->records.at(0).outcome, Outcome::kOk);
  return result->records.at(1);
}

// A good answer that says that the connection carries no other.
void last_of_connection(Peer& peer) {
  std::string answer = ScriptedServer::good(3);
  answer.insert(answer.find("\r\n") + 2, "Connection: close\r\n");
  peer.send(answer);
  peer.close();
}

TEST(Load, GoodAnswersAreStampedByTheKernelInOrder) {
  ScriptedServer server([](int, const std::string&, Peer& peer) {
    peer.send(ScriptedServer::stream_head());
    for (int i = 0; i < 3; ++i)
      peer.send(ScriptedServer::chunk(ScriptedServer::token("t")));
    peer.send(ScriptedServer::chunk(ScriptedServer::finish(3)) + ScriptedServer::chunk("data: [DONE]\n\n"));
    peer.send("0\r\n\r\n");
  });
  const auto result = run(schedule_of(20), options_for(server));
  ASSERT_TRUE(result) << describe(result.error());
  EXPECT_EQ(result->model, "test-model");
  EXPECT_EQ(result->records.size(), 20u);
  for (size_t i = 0; i < result->records.size(); ++i) {
    const RequestRecord& r = result->records[i];
    EXPECT_EQ(r.index, i);
    EXPECT_EQ(r.outcome, Outcome::kOk);
    EXPECT_EQ(r.attempts, 1);
    EXPECT_EQ(r.output_tokens, Tokens(3));
    EXPECT_EQ(r.prompt_tokens, Tokens(3));
    EXPECT_EQ(r.finish, FinishReason::kLength);
    ASSERT_EQ(r.events.size(), 3u);
    for (const auto& e : r.events) {
      ASSERT_TRUE(e.kernel) << "SO_TIMESTAMPNS works on loopback";
      EXPECT_LE(*e.kernel, e.user);
      EXPECT_LT(e.user - *e.kernel, seconds(10));
    }
    EXPECT_LE(r.scheduled, *r.dispatched);
    EXPECT_LE(*r.dispatched, *r.connected);
    EXPECT_LE(*r.connected, *r.sent);
    EXPECT_LE(*r.dispatched, *r.first_chunk);
    EXPECT_LE(*r.first_chunk, *r.first_token);
    EXPECT_LE(*r.first_token, *r.done);
    EXPECT_LE(*r.done, *r.closed);
  }
  EXPECT_EQ(result->window.end - result->window.start, milliseconds(38) + Nanos(1)) << "up to the last arrival";
  EXPECT_FALSE(result->audit.clock_stepped);
  EXPECT_EQ(result->audit.server_before, result->audit.server_after);
  EXPECT_TRUE(result->audit.wait_share);
  EXPECT_GE(result->audit.loop_busy_share, 0);
  EXPECT_LE(result->audit.loop_busy_share, 1);
}

TEST(Load, TheRequestIsWhatTheApiWants) {
  ScriptedServer server([](int, const std::string&, Peer& peer) { peer.send(ScriptedServer::good(3)); });
  Schedule s = schedule_of(1);
  s.requests[0].text = "say \"hi\"\n";
  s.requests[0].priority = 2;
  LoadOptions o = options_for(server);
  o.base_url += "/v1/";
  o.api = Api::kChat;
  o.api_key = "secret";
  o.headers = {{"X-Tenant", "a"}};
  ASSERT_TRUE(run(s, o));
  const std::string request = server.requests().at(0);
  EXPECT_TRUE(request.starts_with("POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1:")) << request;
  for (const char* part :
       {"Authorization: Bearer secret\r\n", "X-Tenant: a\r\n", "\"model\":\"test-model\"",
        R"("messages":[{"role":"user","content":"say \"hi\"\n"}])", "\"max_tokens\":3", "\"temperature\":0",
        "\"stream\":true", "\"stream_options\":{\"include_usage\":true}", "\"ignore_eos\":true", "\"priority\":2"}) {
    EXPECT_NE(request.find(part), std::string::npos) << part << " in " << request;
  }
  o.headers = {{"X", "a\r\nEvil: 1"}};
  EXPECT_EQ(run(s, o).error().code, ErrorCode::kUsage);
}

TEST(Load, NonStreaming) {
  ScriptedServer server([](int, const std::string&, Peer& peer) {
    peer.send(ScriptedServer::body(
        200, "application/json",
        R"({"choices":[{"text":"abc","finish_reason":"length"}],"usage":{"prompt_tokens":2,"completion_tokens":3}})"));
  });
  LoadOptions o = options_for(server);
  o.stream = false;
  const auto result = run(schedule_of(3), o);
  ASSERT_TRUE(result);
  for (const auto& r : result->records) {
    EXPECT_EQ(r.outcome, Outcome::kOk);
    EXPECT_FALSE(r.streamed);
    EXPECT_FALSE(r.first_token);
  }
  EXPECT_NE(server.requests()[0].find("\"stream\":false"), std::string::npos);
}

TEST(Load, Case22RejectionsAreNotRetriedAndShiftNothing) {
  for (const int status : {429, 503}) {
    const auto r = second([&](int, const std::string&, Peer& peer) {
      peer.send("HTTP/1.1 " + std::to_string(status) + " No\r\nRetry-After: 2\r\nContent-Length: 0\r\n\r\n");
    });
    EXPECT_EQ(r.outcome, Outcome::kRejected);
    EXPECT_EQ(r.http_status, status);
    EXPECT_EQ(r.attempts, 1);
  }
}

TEST(Load, EachErrorKind) {
  const auto error_of = [](const std::string& bytes) {
    return second([&](int, const std::string&, Peer& peer) {
      peer.send(bytes);
      peer.close();
    });
  };
  const std::string head = ScriptedServer::stream_head();
  const auto chunk = ScriptedServer::chunk;
  EXPECT_EQ(error_of(ScriptedServer::body(500, "text/plain", "oops")).error, ErrorKind::kHttpStatus);
  EXPECT_EQ(error_of(ScriptedServer::body(404, "text/plain", "gone")).error, ErrorKind::kHttpStatus);
  EXPECT_EQ(error_of(head + chunk("data: {\"error\":{\"message\":\"KV lost\"}}\n\n") + "0\r\n\r\n").error,
            ErrorKind::kErrorObject);
  EXPECT_EQ(error_of(head + chunk(ScriptedServer::token("a"))).error, ErrorKind::kTruncated);
  EXPECT_EQ(error_of(head + chunk("data: [DONE]\n\n") + "0\r\n\r\n").error, ErrorKind::kEmpty);
  EXPECT_EQ(error_of(ScriptedServer::body(200, "text/html", "<html>")).error, ErrorKind::kMalformed);
  EXPECT_EQ(error_of("220 smtp.example.com\r\n").error, ErrorKind::kMalformed);
  EXPECT_EQ(error_of(head + "zz\r\n").error, ErrorKind::kMalformed);
  EXPECT_EQ(error_of("HTTP/1.1 200 OK\r\nX: " + std::string(100'000, 'x')).error, ErrorKind::kLimit);
  EXPECT_EQ(error_of(head + chunk("data: " + std::string(5'000'000, 'x'))).error, ErrorKind::kLimit);
}

TEST(Load, Case24ResetAtEveryByte) {
  const std::string whole = ScriptedServer::good(2);
  const size_t complete = whole.find("\"finish_reason\":\"length\"");
  std::atomic<size_t> cut = 0;
  ScriptedServer server([&](int n, const std::string&, Peer& peer) {
    if (n == 0)
      return last_of_connection(peer);
    peer.send(std::string_view(whole).substr(0, cut));
    peer.reset();
  });
  LoadOptions o = options_for(server);
  const std::atomic<bool> stop = false;
  NoProgress progress;
  Schedule s = schedule_of(1 + 24, milliseconds(15));
  size_t next = 1;
  struct Sink : RecordSink {
    std::function<void(const RequestRecord&)> f;
    void write(const RequestRecord& r) override { f(r); }
  } sink;
  sink.f = [&](const RequestRecord&) { cut = next += complete / 25; };
  o.concurrency = 1;
  const auto result = run_load(s, o, &sink, progress, stop);
  ASSERT_TRUE(result) << describe(result.error());
  for (size_t i = 1; i < result->records.size(); ++i) {
    EXPECT_EQ(result->records[i].outcome, Outcome::kReset) << i;
    EXPECT_EQ(result->records[i].attempts, 1) << "bytes had come: never sent twice";
  }
}

TEST(Load, Case24StaleConnectionIsReplacedOnce) {
  ScriptedServer server([](int n, const std::string&, Peer& peer) {
    if (n == 1)
      return peer.reset();  // the reused connection dies under the request
    peer.send(ScriptedServer::good(3));
  });
  LoadOptions o = options_for(server);
  o.concurrency = 1;
  const auto result = run(schedule_of(2), o);
  ASSERT_TRUE(result);
  EXPECT_EQ(result->records[1].outcome, Outcome::kOk);
  EXPECT_EQ(result->records[1].attempts, 2);
  EXPECT_EQ(result->stale_retries, 1u);
  EXPECT_EQ(server.posts(), 3);
}

TEST(Load, Case24ResetOfANewConnectionIsTheServersFault) {
  ScriptedServer server([](int n, const std::string&, Peer& peer) {
    if (n == 0)
      return last_of_connection(peer);
    peer.reset();
  });
  LoadOptions o = options_for(server);
  o.concurrency = 1;
  const auto result = run(schedule_of(2), o);
  ASSERT_TRUE(result);
  EXPECT_EQ(result->records[1].outcome, Outcome::kReset);
  EXPECT_EQ(result->records[1].attempts, 1);
}

TEST(Load, IdleConnectionsThatTheServerClosesAreDropped) {
  ScriptedServer server([](int, const std::string&, Peer& peer) {
    peer.send(ScriptedServer::good(3));
    peer.close();  // although HTTP/1.1 said keep-alive
  });
  LoadOptions o = options_for(server);
  o.concurrency = 1;
  const auto result = run(schedule_of(12), o);
  ASSERT_TRUE(result);
  for (const auto& r : result->records)
    EXPECT_EQ(r.outcome, Outcome::kOk);
}

TEST(Load, ConnectionsAreReused) {
  ScriptedServer server([](int, const std::string&, Peer& peer) { peer.send(ScriptedServer::good(3)); });
  LoadOptions o = options_for(server);
  o.concurrency = 1;
  const auto result = run(schedule_of(30), o);
  ASSERT_TRUE(result);
  EXPECT_EQ(result->connections, 1u);
  EXPECT_EQ(result->stale_retries, 0u);
}

TEST(Load, StallsTimeOutAndKeepWhatCame) {
  const auto r = second(
      [](int, const std::string&, Peer& peer) {
        peer.send(ScriptedServer::stream_head() + ScriptedServer::chunk(ScriptedServer::token("a")));
        peer.stall();
      },
      milliseconds(500));
  EXPECT_EQ(r.outcome, Outcome::kTimeout);
  EXPECT_EQ(r.events.size(), 1u);
  EXPECT_GE(*r.closed - r.scheduled, milliseconds(500));
}

TEST(Load, NeverEndingStreamIsBoundedByItsTimeout) {
  const auto r = second(
      [](int, const std::string&, Peer& peer) {
        peer.send(ScriptedServer::stream_head());
        char byte;
        while (!peer.stopping && ::recv(peer.fd, &byte, 1, MSG_DONTWAIT) != 0) {
          peer.send(ScriptedServer::chunk(ScriptedServer::token("x")));
          usleep(1000);
        }
        peer.close();
      },
      milliseconds(500));
  EXPECT_EQ(r.outcome, Outcome::kTimeout);
  EXPECT_GT(r.events.size(), 1u);
}

TEST(Load, AServerThatStaysSilentBehindDoneIsDone) {
  const auto r = second([](int, const std::string&, Peer& peer) {
    peer.send(ScriptedServer::stream_head() +
              ScriptedServer::chunk(ScriptedServer::token("a") + ScriptedServer::finish(1) + "data: [DONE]\n\n"));
    peer.stall();
  });
  EXPECT_EQ(r.outcome, Outcome::kOk);
}

TEST(Load, WhatIsOpenWhenTheRunEndsIsUnfinished) {
  ScriptedServer server([](int n, const std::string&, Peer& peer) {
    if (n != 1)
      return peer.send(ScriptedServer::good(3));
    peer.stall();
  });
  LoadOptions o = options_for(server);
  o.drain_limit = milliseconds(500);
  const auto result = run(schedule_of(3, milliseconds(20)), o);
  ASSERT_TRUE(result);
  EXPECT_EQ(result->records[0].outcome, Outcome::kOk);
  EXPECT_EQ(result->records[1].outcome, Outcome::kUnfinished);
  EXPECT_EQ(result->records[2].outcome, Outcome::kOk);
  ASSERT_EQ(result->problems.size(), 1u);
  EXPECT_EQ(result->problems[0].count, 1u);
}

TEST(Load, StopSendsNoMoreAndReportsWhatThereIs) {
  std::atomic<bool> stop = false;
  ScriptedServer server([&](int n, const std::string&, Peer& peer) {
    peer.send(ScriptedServer::good(3));
    if (n == 2)
      stop = true;
  });
  NoProgress progress;
  const auto result = run_load(schedule_of(1000, milliseconds(100)), options_for(server), nullptr, progress, stop);
  ASSERT_TRUE(result);
  EXPECT_TRUE(result->interrupted);
  EXPECT_EQ(result->records.size(), 1000u);
  EXPECT_EQ(result->records[0].outcome, Outcome::kOk);
  EXPECT_EQ(result->records[999].outcome, Outcome::kNotSent);
  EXPECT_LT(result->window.end, result->records[999].scheduled) << "the window ends at the stop";
}

TEST(Load, WindowIsFixedAndLaterArrivalsAreUncounted) {
  ScriptedServer server([](int, const std::string&, Peer& peer) { peer.send(ScriptedServer::good(3)); });
  LoadOptions o = options_for(server);
  o.warm_up = milliseconds(50);
  o.window = milliseconds(100);
  const auto result = run(schedule_of(2000, milliseconds(10)), o);
  ASSERT_TRUE(result);
  EXPECT_EQ(result->window.end - result->window.start, milliseconds(100));
  for (const auto& r : result->records) {
    if (result->window.contains(r.scheduled)) {
      EXPECT_EQ(r.outcome, Outcome::kOk);
    }
  }
  EXPECT_EQ(result->records.back().outcome, Outcome::kNotSent);
  EXPECT_GE(result->records.back().scheduled, result->window.end);
}

TEST(Load, PrimingComesFirstOneByOne) {
  ScriptedServer server([](int, const std::string&, Peer& peer) { peer.send(ScriptedServer::good(1)); });
  Schedule s = schedule_of(2);
  s.priming = schedule_of(3).requests;
  for (auto& r : s.priming)
    r.text = "document";
  const auto result = run(s, options_for(server));
  ASSERT_TRUE(result);
  EXPECT_EQ(result->records.size(), 2u);
  const auto seen = server.requests();
  ASSERT_EQ(seen.size(), 5u);
  for (size_t i = 0; i < 5; ++i)
    EXPECT_EQ(seen[i].find("document") != std::string::npos, i < 3) << i;
}

TEST(Load, Case36ClientQueueUnderACap) {
  ScriptedServer server([](int, const std::string&, Peer& peer) {
    usleep(50'000);
    peer.send(ScriptedServer::good(3));
  });
  LoadOptions o = options_for(server);
  o.max_in_flight = 1;
  const auto result = run(schedule_of(8, milliseconds(10)), o);
  ASSERT_TRUE(result);
  for (size_t i = 0; i < 8; ++i) {
    const RequestRecord& r = result->records[i];
    EXPECT_EQ(r.outcome, Outcome::kOk);
    EXPECT_EQ(r.scheduled, result->records[0].scheduled + milliseconds(10) * static_cast<int64_t>(i))
        << "never re-paced";
    if (i > 0) {
      EXPECT_GE(*r.dispatched, *result->records[i - 1].closed);
    }
    EXPECT_GE(*r.dispatched - r.scheduled, milliseconds(40) * static_cast<int64_t>(i)) << "the wait is in the delay";
    EXPECT_GE(*r.done - r.scheduled, milliseconds(50) + milliseconds(40) * static_cast<int64_t>(i))
        << "and in the latency";
  }
}

TEST(Load, OpenLoopHasNoCap) {
  std::atomic<int> open = 0, most = 0;
  ScriptedServer server([&](int, const std::string&, Peer& peer) {
    const int now = ++open;
    int seen = most;
    while (now > seen && !most.compare_exchange_weak(seen, now)) {
    }
    while (most < 100 && !peer.stopping)
      usleep(1000);  // nobody is answered before a hundred wait together
    peer.send(ScriptedServer::good(3));
    --open;
  });
  const auto result = run(schedule_of(100, microseconds(100)), options_for(server));
  ASSERT_TRUE(result);
  EXPECT_EQ(most, 100);
  for (const auto& r : result->records)
    EXPECT_EQ(r.outcome, Outcome::kOk);
}

TEST(Load, Case37ArrivalsAreTheSchedulesToTheNanosecond) {
  ScriptedServer server([](int, const std::string&, Peer& peer) { peer.send(ScriptedServer::good(3)); });
  Schedule s = schedule_of(30);
  for (size_t i = 0; i < s.requests.size(); ++i)
    s.requests[i].at = Nanos(static_cast<int64_t>(i * i * 12'345));
  const auto result = run(s, options_for(server));
  ASSERT_TRUE(result);
  const TimePoint start = result->records[0].scheduled;
  for (size_t i = 0; i < s.requests.size(); ++i)
    EXPECT_EQ(result->records[i].scheduled - start, s.requests[i].at) << "not rescaled";
}

TEST(Load, ClosedLoopKeepsItsConcurrencyAndThinks) {
  std::atomic<int> open = 0;
  std::atomic<bool> too_many = false;
  ScriptedServer server([&](int, const std::string&, Peer& peer) {
    if (++open > 3)
      too_many = true;
    usleep(2000);
    --open;
    peer.send(ScriptedServer::good(3));
  });
  LoadOptions o = options_for(server);
  o.concurrency = 3;
  o.think_time = milliseconds(1);
  const auto result = run(schedule_of(30), o);
  ASSERT_TRUE(result);
  EXPECT_FALSE(too_many);
  std::multiset<int64_t> ends;
  for (const auto& r : result->records) {
    EXPECT_EQ(r.outcome, Outcome::kOk);
    ends.insert(r.closed->since_zero().count());
  }
  for (size_t i = 3; i < 30; ++i) {
    EXPECT_EQ(ends.count((result->records[i].scheduled - milliseconds(1)).since_zero().count()), 1u)
        << "an end plus the think time";
  }
}

TEST(Load, SinkSeesEachRecordOnce) {
  ScriptedServer server([](int, const std::string&, Peer& peer) { peer.send(ScriptedServer::good(3)); });
  struct Sink : RecordSink {
    std::multiset<uint64_t> seen;
    void write(const RequestRecord& r) override { seen.insert(r.index); }
  } sink;
  ASSERT_TRUE(run(schedule_of(25), options_for(server), &sink));
  EXPECT_EQ(sink.seen.size(), 25u);
  EXPECT_EQ(std::set<uint64_t>(sink.seen.begin(), sink.seen.end()).size(), 25u);
}

TEST(Load, Unreachable) {
  const auto message = [](const LoadOptions& o) {
    const auto result = run(schedule_of(2), o);
    EXPECT_FALSE(result);
    EXPECT_EQ(result.error().code, ErrorCode::kUnreachable);
    return describe(result.error());
  };
  LoadOptions o;
  {
    ScriptedServer gone([](int, const std::string&, Peer&) {});
    o.base_url = gone.url();
  }
  EXPECT_NE(message(o).find("refused"), std::string::npos);
  const auto greeting = [](const std::string& bytes) {
    return [bytes](int, const std::string&, Peer& peer) {
      peer.send(bytes);
      peer.close();
    };
  };
  ScriptedServer ssh({}, greeting("SSH-2.0-OpenSSH_9.2p1\r\n"));
  EXPECT_NE(message(options_for(ssh)).find("SSH-2.0-OpenSSH"), std::string::npos);
  ScriptedServer tls({}, greeting(std::string("\x15\x03\x01\x00\x02\x02\x46", 7)));
  EXPECT_NE(message(options_for(tls)).find("TLS"), std::string::npos);
  ScriptedServer shut({}, greeting(""));
  EXPECT_NE(message(options_for(shut)).find("without an answer"), std::string::npos);
  ScriptedServer nameless({}, greeting(ScriptedServer::body(404, "text/plain", "")));
  EXPECT_NE(message(options_for(nameless)).find("--model"), std::string::npos);
  ScriptedServer web(greeting(ScriptedServer::body(404, "text/html", "nothing here")));
  EXPECT_NE(message(options_for(web)).find("404: nothing here"), std::string::npos);
  o.base_url = "http://no.such.host.invalid";
  EXPECT_NE(message(o).find("no.such.host.invalid"), std::string::npos);
}

TEST(Load, TooManyDescriptorsAreRefusedBeforeTheRun) {
  LoadOptions o;
  o.base_url = "http://127.0.0.1:9";
  o.concurrency = 10'000'000;
  EXPECT_EQ(run(schedule_of(1), o).error().code, ErrorCode::kExhausted);
}

TEST(Load, ASmallWindowOfAnEmptyScheduleIsLegal) {
  ScriptedServer server([](int, const std::string&, Peer& peer) { peer.send(ScriptedServer::good(3)); });
  const auto result = run(Schedule{}, options_for(server));
  ASSERT_TRUE(result);
  EXPECT_TRUE(result->records.empty());
}

}  // namespace
}  // namespace goodput
