// Command lines of vLLM's bench become plans of ours; what cannot be served is refused by name.
#include "cli/bench_plan.h"

#include <gtest/gtest.h>

#include <set>

namespace goodput {
namespace {

using Words = std::vector<std::string>;

Result<BenchFlags> parsed(Words words) {
  words = TRY(complete_bench_arguments(std::move(words)));
  CLI::App app;
  BenchFlags flags;
  declare_bench_flags(app, flags);
  std::reverse(words.begin(), words.end());
  try {
    app.parse(words);
  } catch (const CLI::ParseError& e) {
    return fail(ErrorCode::kUsage, e.what());
  }
  TRY(check_refused_flags(app));
  return flags;
}

Result<BenchPlan> plan(Words words) {
  const auto flags = TRY(parsed(std::move(words)));
  return bench_plan(flags, {[](const std::string&) { return std::string("secret"); }, "20260102-030405"});
}

std::string refusal(const Words& words) {
  const auto p = plan(words);
  return p ? "accepted" : describe(p.error());
}

TEST(BenchFlags, OneRowForEachName) {
  std::set<std::string_view> names;
  for (const FlagRow& row : bench_flag_rows()) {
    EXPECT_TRUE(names.insert(row.name).second) << row.name;
    EXPECT_FALSE(row.meaning.empty()) << row.name;
    EXPECT_EQ(row.name.find('_'), std::string_view::npos) << row.name;
  }
}

TEST(BenchFlags, DefaultsAreVllms) {
  const auto p = plan({});
  ASSERT_TRUE(p) << describe(p.error());
  EXPECT_EQ(p->load.base_url, "http://127.0.0.1:8000");
  EXPECT_EQ(p->schedule.requests, 1000u);
  EXPECT_EQ(p->schedule.seed, 0u);
  EXPECT_EQ(p->spec.classes[0].prompt.low, Tokens(1024));
  EXPECT_EQ(p->spec.classes[0].output.low, Tokens(128));
  EXPECT_EQ(p->spec.arrivals, ArrivalKind::kClosed);
  EXPECT_EQ(p->load.concurrency, 1000);
  EXPECT_FALSE(p->report.concurrency);
  EXPECT_EQ(p->load.api_key, "secret");
  EXPECT_EQ(p->report.percents, std::vector<double>{99});
}

TEST(BenchFlags, AScriptOfVllmWorksByItsNameAlone) {
  const auto p = plan({"serve",
                       "--backend",
                       "openai-chat",
                       "--base-url",
                       "http://host:81/",
                       "--endpoint",
                       "/v1/chat/completions",
                       "--model",
                       "meta/llama",
                       "--served-model-name",
                       "llama",
                       "--tokenizer",
                       "meta/llama",
                       "--dataset-name",
                       "random",
                       "--random-input",
                       "200",
                       "--random_output_len=50",
                       "--random-range-ratio",
                       "{\"input\":0.5}",
                       "--num-prompts",
                       "20",
                       "--request-rate",
                       "inf",
                       "--burstiness",
                       "1.0",
                       "--max-concurrency",
                       "8",
                       "--goodput",
                       "ttft:200",
                       "tpot:50",
                       "--header",
                       "a=b=c",
                       "x-y = z ",
                       "--extra-body",
                       "{\"n\":{\"m\":[1]},\"top_p\":0.5}",
                       "--top-p",
                       "0.9",
                       "--temperature",
                       "0.7",
                       "--percentile-metrics",
                       "ttft,tpot,itl,e2el",
                       "--metric-percentiles",
                       "50,90,99.9",
                       "--metadata",
                       "tp=2",
                       "v=0.3",
                       "--ignore-eos",
                       "--disable-tqdm",
                       "--tokenizer-mode",
                       "auto",
                       "--skip-tokenizer-init",
                       "--trust-remote-code",
                       "--label",
                       "l",
                       "--request-id-prefix",
                       "r-",
                       "--num-warmups",
                       "3",
                       "--seed",
                       "7"});
  ASSERT_TRUE(p) << describe(p.error());
  EXPECT_EQ(p->load.base_url, "http://host:81");
  EXPECT_EQ(p->load.api, Api::kChat);
  EXPECT_EQ(p->load.model, "llama");
  EXPECT_EQ(p->report.model, "meta/llama");
  EXPECT_TRUE(p->tokenizer.empty());
  EXPECT_EQ(p->spec.classes[0].prompt.low, Tokens(100));
  EXPECT_EQ(p->spec.classes[0].prompt.high, Tokens(300));
  EXPECT_EQ(p->spec.classes[0].output.low, Tokens(50));
  EXPECT_EQ(p->load.concurrency, 8);
  EXPECT_EQ(to_text(p->spec.classes[0].targets), "ttft:200 tpot:50");
  ASSERT_EQ(p->load.headers.size(), 2u);
  EXPECT_EQ(p->load.headers[0].second, "b=c");
  EXPECT_EQ(p->load.headers[1].first, "x-y");
  EXPECT_EQ(p->load.extra_body, R"({"temperature":7E-1,"top_p":5E-1,"n":{"m":[1]}})");
  EXPECT_EQ(p->report.metrics.size(), 4u);
  EXPECT_EQ(p->report.percents, (std::vector<double>{50, 90, 99.9}));
  EXPECT_EQ(p->report.metadata[0], (std::pair<std::string, std::string>("tp", "2")));
  EXPECT_EQ(p->warmups, 3u);
  EXPECT_EQ(p->load.request_id_prefix, "r-");
  EXPECT_TRUE(p->output.quiet);
}

TEST(BenchFlags, EndpointsAsPaths) {
  const auto at = [](Words words) {
    const auto p = plan(std::move(words));
    return p ? p->load.base_url + (p->load.api == Api::kChat ? " chat" : " completions") : describe(p.error());
  };
  EXPECT_EQ(at({"--host", "h", "--port", "81"}), "http://h:81 completions");
  EXPECT_EQ(at({"--host", "::1", "--port", "81"}), "http://[::1]:81 completions");
  EXPECT_EQ(at({"--base-url", "http://h/v1"}), "http://h/v1 completions");
  EXPECT_EQ(at({"--base-url", "http://h/v1", "--endpoint", "/v1/completions"}), "http://h completions");
  EXPECT_EQ(at({"--base-url", "http://h/v1", "--endpoint", "/chat/completions"}), "http://h chat");
  EXPECT_EQ(at({"--base-url", "http://h", "--endpoint", "/openai/v1/chat/completions"}), "http://h/openai chat");
  EXPECT_EQ(at({"--base-url", "http://h", "--endpoint", "chat"}), "http://h chat");
  EXPECT_EQ(at({"--backend", "vllm", "--endpoint", "v1/chat/completions"}), "http://127.0.0.1:8000 chat");
  EXPECT_EQ(plan({"--backend", "tgi"})->report.endpoint, "/generate_stream");
  EXPECT_EQ(plan({"--base-url", "http://h", "--endpoint", "/api/generate"})->load.api, Api::kOllamaGenerate);
  EXPECT_EQ(plan({"--endpoint", "responses"})->load.api, Api::kResponses);
  EXPECT_NE(at({"--endpoint", "/rerank"}).find("--endpoint"), std::string::npos);
}

TEST(BenchFlags, Abbreviations) {
  EXPECT_EQ(*complete_bench_arguments({"serve", "--random-in", "5", "--save_det", "--max-c=3"}),
            (Words{"--random-input-len", "5", "--save-detailed", "--max-concurrency=3"}));
  EXPECT_EQ(*complete_bench_arguments({"--goodput", "ttft:1"}), (Words{"--goodput", "ttft:1"}));
  EXPECT_EQ(*complete_bench_arguments({"--model", "serve"}), (Words{"--model", "serve"}));
  EXPECT_EQ(*complete_bench_arguments({"--no-such", "--"}), (Words{"--no-such", "--"}));
  const auto ambiguous = complete_bench_arguments({"--random", "5"});
  ASSERT_FALSE(ambiguous);
  for (const char* word : {"--random-input-len", "--random-prefix-len", "ambiguous"})
    EXPECT_NE(describe(ambiguous.error()).find(word), std::string::npos) << word;
  EXPECT_TRUE(complete_bench_arguments({"--seed", "1"}));  // exact, though --s… has more
}

TEST(BenchPlan, Arrivals) {
  const auto open = plan({"--request-rate", "4", "--max-concurrency", "2", "--num-prompts", "10"});
  ASSERT_TRUE(open);
  EXPECT_EQ(open->spec.arrivals, ArrivalKind::kPoisson);
  EXPECT_EQ(open->load.max_in_flight, 2);
  EXPECT_EQ(open->load.concurrency, 0);
  const auto constant = plan({"--request-rate", "4", "--burstiness", "inf"});
  ASSERT_TRUE(constant);
  EXPECT_EQ(constant->spec.arrivals, ArrivalKind::kConstant);
  const auto timed = plan({"--request-rate", "4", "--duration", "30s"});
  ASSERT_TRUE(timed);
  EXPECT_EQ(timed->schedule.duration, seconds(45));
  EXPECT_FALSE(timed->schedule.requests);
}

// Rates below one request a second are real numbers everywhere, and the plan says how long they take.
TEST(BenchPlan, Case47RatesBelowOne) {
  for (const char* rate : {"0.21", "0.26375", "0.3175", "0.37125", "0.425"}) {
    const auto p = plan({"--request-rate", rate, "--num-prompts", "30", "--burstiness", "inf"});
    ASSERT_TRUE(p) << rate;
    EXPECT_EQ(p->spec.rate, std::stod(rate));
    const auto schedule = make_schedule(p->spec, p->schedule, nullptr);
    ASSERT_TRUE(schedule);
    EXPECT_EQ(schedule->requests.size(), 30u);
    EXPECT_NEAR(to_seconds(schedule->requests.back().at), 29 / std::stod(rate), 1e-6);
  }
}

TEST(BenchPlan, PrefixesAreShared) {
  const auto p = plan({"--dataset-name", "prefix_repetition", "--prefix-repetition-num-prefixes", "4"});
  ASSERT_TRUE(p) << describe(p.error());
  EXPECT_EQ(p->spec.classes[0].prefix_groups, 4);
  EXPECT_EQ(p->spec.classes[0].prefix_len, Tokens(256));
  EXPECT_EQ(p->spec.classes[0].prompt.low, Tokens(256));
  const auto random = plan({"--random-prefix-len", "50", "--random-range-ratio", "0.5", "--input-len", "100"});
  ASSERT_TRUE(random) << describe(random.error());
  EXPECT_EQ(random->spec.classes[0].prefix_groups, 1);
  EXPECT_EQ(random->spec.classes[0].prompt.high, Tokens(150));
}

TEST(BenchPlan, BurstinessRampsAndVllmsArrivals) {
  const auto gamma = plan({"--request-rate", "4", "--burstiness", "0.5", "--rate-normalize"});
  ASSERT_TRUE(gamma) << describe(gamma.error());
  EXPECT_EQ(gamma->spec.arrivals, ArrivalKind::kGamma);
  EXPECT_EQ(gamma->spec.burstiness, 0.5);
  EXPECT_TRUE(gamma->spec.rescale);
  const auto ramp = plan(
      {"--ramp-up-strategy", "linear", "--ramp-up-start-rps", "1", "--ramp-up-end-rps", "9", "--num-prompts", "50"});
  ASSERT_TRUE(ramp) << describe(ramp.error());
  EXPECT_EQ(ramp->spec.ramp->by, RampSpec::By::kIndex);
  EXPECT_FALSE(ramp->report.rate);
  const auto schedule = make_schedule(ramp->spec, ramp->schedule, nullptr);
  ASSERT_TRUE(schedule) << describe(schedule.error());
  EXPECT_EQ(schedule->requests.size(), 50u);
}

TEST(BenchPlan, FilesAtTheirTimesOrAtOurs) {
  const auto own = plan({"--dataset-name", "timed_trace", "--dataset-path", "t.jsonl", "--self-timed",
                         "--timed-trace-sec-multiplier", "0.001", "--timed-trace-label-timestamp", "ts"});
  ASSERT_TRUE(own) << describe(own.error());
  EXPECT_EQ(own->spec.arrivals, ArrivalKind::kTrace);
  EXPECT_FALSE(own->spec.trace->requests_only);
  EXPECT_EQ(own->spec.trace->time_unit, milliseconds(1));
  EXPECT_EQ(own->spec.trace->labels.timestamp, "ts");
  const auto ours = plan({"--dataset-name", "sharegpt", "--dataset-path", "s.json", "--request-rate", "2"});
  ASSERT_TRUE(ours) << describe(ours.error());
  EXPECT_EQ(ours->spec.arrivals, ArrivalKind::kPoisson);
  EXPECT_TRUE(ours->spec.trace->requests_only);
  EXPECT_FALSE(ours->load.ignore_eos);
}

TEST(BenchPlan, SamplingStandsWhereTheProtocolHasIt) {
  const auto body = [](Words words) {
    const auto p = plan(std::move(words));
    return p ? p->load.extra_body : describe(p.error());
  };
  EXPECT_EQ(
      body({"--backend", "ollama", "--top-k", "5", "--extra-body", "{\"options\":{\"num_ctx\":9},\"keep_alive\":1}"}),
      R"({"options":{"top_k":5,"num_ctx":9},"keep_alive":1})");
  EXPECT_EQ(body({"--backend", "tgi", "--top-k", "5"}), R"({"parameters":{"top_k":5}})");
  EXPECT_EQ(body({"--backend", "openai", "--top-k", "5"}), R"({"top_k":5})");
}

TEST(BenchPlan, WhatCannotBeServedIsRefusedByName) {
  const struct {
    Words words;
    Words expected;
  } cases[] = {
      {{"--dataset-name", "sonnet"}, {"--dataset-name", "sonnet", "random", "prefix_repetition", "--workload"}},
      {{"--dataset-name", "shargpt"}, {"unknown", "shargpt"}},
      {{"--dataset-name", "timed_trace"}, {"--dataset-path"}},
      {{"--backend", "tensorrt-llm"}, {"--backend", "tensorrt-llm", "openai-chat"}},
      {{"--backend", "vlm"}, {"unknown", "vlm"}},
      {{"--header", "novalue"}, {"--header", "novalue", "NAME=VALUE"}},
      {{"--header", "=v"}, {"--header"}},
      {{"--extra-body", "{\"a\":"}, {"--extra-body", "JSON object"}},
      {{"--extra-body", "[1]"}, {"--extra-body", "[1]"}},
      {{"--metadata", "novalue"}, {"--metadata"}},
      {{"--random-range-ratio", "1"}, {"--random-range-ratio", "[0, 1)"}},
      {{"--random-range-ratio", "{\"inptu\":0.1}"}, {"--random-range-ratio"}},
      {{"--random-range-ratio", "{\"input\":\"x\"}"}, {"--random-range-ratio"}},
      {{"--request-rate", "0"}, {"--request-rate", "above 0"}},
      {{"--request-rate", "-1"}, {"--request-rate"}},
      {{"--request-rate", "nan"}, {"--request-rate"}},
      {{"--request-rate", "2", "--burstiness", "0"}, {"--burstiness"}},
      {{"--goodput", "ttfd:200"}, {"ttfd", "ttft"}},
      {{"--percentile-metrics", "ttft,x"}, {"--percentile-metrics", "'x'"}},
      {{"--metric-percentiles", "99,200"}, {"--metric-percentiles", "200"}},
      {{"--profile"}, {"--profile", "profiler"}},
      {{"--plot-timeline"}, {"--plot-timeline"}},
      {{"--lora-modules", "a", "b"}, {"--lora-modules"}},
      {{"--ramp-up-strategy", "linear"}, {"--ramp-up-start-rps"}},
      {{"--ramp-up-strategy", "square", "--ramp-up-start-rps", "1"}, {"square", "exponential"}},
      {{"--ramp-up-start-rps", "1"}, {"--ramp-up-strategy"}},
      {{"--ramp-up-strategy", "linear", "--request-rate", "3"}, {"--request-rate"}},
      {{"--table", "x"}, {"--table", "lmdeploy"}},
      {{"--lang", "fr"}, {"--lang"}},
      {{"--floor", "2"}, {"--floor"}},
      {{"--floor", "0.9"}, {"--floor", "--goodput"}},
      {{"--duration", "30s"}, {"--duration", "--max-concurrency"}},
      {{"--num-prompts", "0"}, {"--num-prompts"}},
      {{"--num-prompts", "30000"}, {"--num-prompts", "--max-concurrency"}},
      {{"--base-url", "ftp://x"}, {"ftp"}},
      {{"--workload", "/absent.toml"}, {"absent.toml"}},
  };
  for (const auto& c : cases) {
    const std::string text = refusal(c.words);
    for (const std::string& word : c.expected)
      EXPECT_NE(text.find(word), std::string::npos) << c.words.front() << ": " << text << " lacks " << word;
    EXPECT_EQ(text.find("secret"), std::string::npos);
  }
}

}  // namespace
}  // namespace goodput
