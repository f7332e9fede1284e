#include "load/job.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

namespace goodput {
namespace {

LoadJob sample() {
  LoadJob j;
  j.base_url = "http://127.0.0.1:1";
  j.api = Api::kChat;
  j.model_path = "/m.gguf";
  j.workload_toml = "[workload]\nname = \"x\"\n";
  j.rate = 2.5;
  j.concurrency = 7;
  j.seed = UINT64_MAX;
  j.warm_up = seconds(2);
  j.window = milliseconds(12'500);
  j.cpus = {0, 1};
  j.server_pid = 42;
  return j;
}

TEST(Job, GoesThereAndBack) {
  const LoadJob j = sample();
  const auto back = parse_job(encode_job(j));
  ASSERT_TRUE(back) << describe(back.error());
  EXPECT_EQ(encode_job(*back), encode_job(j));
  EXPECT_EQ(back->seed, UINT64_MAX);
  EXPECT_EQ(back->window, milliseconds(12'500));
}

TEST(Job, DefaultsAndMistakes) {
  const auto j = parse_job(R"({"base_url":"u","workload_toml":"","duration_s":1,"seed":5})");
  ASSERT_TRUE(j);
  EXPECT_EQ(j->seed, 5u);
  EXPECT_FALSE(j->concurrency);
  for (const char* bad : {"", "[]", "{}", R"({"base_url":1,"workload_toml":"","duration_s":1})",
                          R"({"base_url":"u","workload_toml":"","duration_s":-1})",
                          R"({"base_url":"u","workload_toml":"","duration_s":1,"rate":0})",
                          R"({"base_url":"u","workload_toml":"","duration_s":1,"cpus":[-1]})",
                          R"({"base_url":"u","workload_toml":"","duration_s":1,"api":"smtp"})",
                          R"({"base_url":"u","workload_toml":"","duration_s":1,"seed":"x"})",
                          R"({"base_url":"u","workload_toml":"","duration_s":1,"rte":1})"}) {
    const auto r = parse_job(bad);
    ASSERT_FALSE(r) << bad;
    EXPECT_EQ(r.error().code, ErrorCode::kUsage);
  }
  EXPECT_NE(parse_job(R"({"base_url":"u","workload_toml":"","duration_s":1,"rte":1})").error().message.find("rte"),
            std::string::npos);
}

TEST(Job, ResultGoesThereAndBack) {
  LoadJobResult r;
  r.window = {TimePoint(Nanos(123456789012345)), TimePoint(Nanos(223456789012345))};
  r.audit.loop_busy_share = 0.25;
  r.audit.wait_share = 0.001;
  r.audit.server_before = r.audit.server_after = "m";
  r.schedule_hash = "abc";
  r.implied_hit_rate = 0.5;
  r.model = "m \"x\"";
  r.problems = {{"HTTP 500", 3}};
  r.records = std::string("\0\n{binary", 9);
  const auto back = parse_result(encode_result(r));
  ASSERT_TRUE(back) << describe(back.error());
  EXPECT_EQ(encode_result(*back), encode_result(r));
  EXPECT_FALSE(back->audit.server_wait_share);
  EXPECT_EQ(back->records, r.records);
}

TEST(Job, BrokenResultsAreRefused) {
  LoadJobResult r;
  r.records = "1234567890";
  const std::string whole = encode_result(r);
  for (size_t i = 0; i < whole.size(); ++i)
    EXPECT_FALSE(parse_result(whole.substr(0, i))) << i;
  EXPECT_TRUE(rc::check([](const std::string& bytes) { static_cast<void>(parse_result(bytes)); }));
}

TEST(Job, ProgressLines) {
  const auto c = parse_progress_line(progress_line({5, 3, 9}));
  ASSERT_TRUE(c);
  EXPECT_EQ(c->sent, 5u);
  EXPECT_EQ(c->done, 3u);
  EXPECT_EQ(c->of, 9u);
  EXPECT_FALSE(parse_progress_line("hello"));
  EXPECT_FALSE(parse_progress_line("{}"));
}

}  // namespace
}  // namespace goodput
