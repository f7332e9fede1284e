#include "store/point.h"

#include <cmath>

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <simdjson.h>

#include "store/arbitrary.h"

namespace goodput {
namespace {

TEST(Point, ReadsBackAsItWas) {
  // Its JSON has every field (the golden keys below), so equal JSON means equal points.
  EXPECT_TRUE(rc::check([](uint64_t seed) {
    Random random(seed, "points");
    const Point p = arbitrary::point(random);
    const auto back = point_from_json(to_json(p));
    RC_ASSERT(back.has_value());
    RC_ASSERT(back->settings == p.settings);
    RC_ASSERT(back->seed == p.seed);
    RC_ASSERT(back->summary.by_class.size() == p.summary.by_class.size());
    RC_ASSERT(back->summary.window.end == p.summary.window.end);
    RC_ASSERT(to_json(*back) == to_json(p));
  }));
}

std::string keys_of(simdjson::dom::element element) {
  simdjson::dom::object object;
  if (element.get(object))
    return "?";
  std::string keys;
  for (const auto [key, value] : object)
    (keys += keys.empty() ? "" : " ") += key;
  return keys;
}

TEST(Point, KeysAreThoseThatScriptsRelyOn) {
  Random random(1, "keys");
  Point p = arbitrary::point(random);
  p.summary.by_class = {arbitrary::class_summary(random, "chat")};
  p.summary.overall.attainment = Estimate{0.9, 0.8, std::nullopt};
  p.audit = ClientAudit{};
  simdjson::dom::parser parser;
  const std::string json = to_json(p);
  const simdjson::dom::element root = parser.parse(json);
  EXPECT_EQ(
      keys_of(root),
      "phase key executor settings rate offered_rate achieved_rate seed schedule_hash primed window requests good "
      "unmeasurable not_applicable regime verdict attainment goodput_rps token_goodput interactive_goodput_rps "
      "ttft_ms ttft_service_ms tpot_ms itl_ms icl_ms e2e_ms by_class throughput observed outcomes wrong_length "
      "kernel_stamp_share dispatch_delay_ms read_lag_ms audit");
  EXPECT_EQ(keys_of(root["attainment"]), "overall by_class");
  EXPECT_EQ(keys_of(root["attainment"]["overall"]), "value low high");
  EXPECT_EQ(keys_of(root["attainment"]["by_class"]), "chat");
  EXPECT_EQ(keys_of(root["verdict"]), "valid reasons");
  EXPECT_EQ(keys_of(root["ttft_ms"]), "n p50 p95 p99 max");
  EXPECT_EQ(keys_of(root["by_class"]["chat"]),
            "requests good unmeasurable not_applicable ttft_ms ttft_service_ms tpot_ms itl_ms icl_ms e2e_ms");
  EXPECT_EQ(keys_of(root["throughput"]), "requests_per_s input_tokens_per_s output_tokens_per_s total_tokens_per_s");
  EXPECT_EQ(keys_of(root["observed"]),
            "running batched_tokens queue_depth kv_usage preemptions prefix_query_tokens prefix_hit_tokens rejected "
            "peak_rss_bytes prefix_hit_rate");
  EXPECT_EQ(keys_of(root["observed"]["running"]), "mean p95 max");
  EXPECT_EQ(keys_of(root["outcomes"]), "ok rejected error timeout reset cancelled unfinished not_sent");
}

TEST(Point, SettingsAreTyped) {
  Settings s;
  s.max_num_seqs = 8;
  const std::string json = to_json(s);
  EXPECT_NE(json.find("\"max_num_seqs\":8,"), std::string::npos) << json;
  EXPECT_NE(json.find("\"enable_prefix_caching\":true"), std::string::npos) << json;
  EXPECT_NE(json.find("\"scheduling_policy\":\"fcfs\""), std::string::npos) << json;
}

TEST(Point, NotFiniteIsNullAndReadsBackAsSuch) {
  Random random(1, "nan");
  Point p = arbitrary::point(random);
  p.rate = std::nan("");
  const auto back = point_from_json(to_json(p));
  ASSERT_TRUE(back) << describe(back.error());
  EXPECT_TRUE(std::isnan(back->rate));
  EXPECT_EQ(to_json(p).find("nan"), std::string::npos);
}

TEST(Point, UnknownKeysAreIgnoredMissingAndWrongOnesNamed) {
  Random random(2, "keys");
  const std::string json = to_json(arbitrary::point(random));
  const auto changed = [&](std::string_view from, std::string_view to) {
    std::string text = json;
    const size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return point_from_json(text.replace(at, from.size(), to));
  };
  EXPECT_TRUE(changed("\"executor\"", "\"later\":[1],\"executor\""));
  EXPECT_EQ(changed("\"throughput\"", "\"thruput\"").error().message, "`throughput` of a point is missing");
  EXPECT_EQ(changed("\"requests_per_s\":", "\"requests_per_s\":\"x\",\"y\":").error().message,
            "`throughput.requests_per_s` of a point: expected a number");
  EXPECT_EQ(changed("\"seed\":\"", "\"seed\":\"x").error().message, "`seed` of a point: expected digits");
  EXPECT_EQ(changed("\"max_num_seqs\":", "\"max_num_seqs\":\"many\",\"y\":").error().context,
            "`settings.max_num_seqs` of a point");
}

TEST(Point, HostileJsonIsAnError) {
  EXPECT_FALSE(point_from_json(""));
  EXPECT_FALSE(point_from_json("[]"));
  EXPECT_FALSE(point_from_json("{"));
  EXPECT_FALSE(point_from_json(std::string(100'000, '[')));
  EXPECT_TRUE(rc::check([](uint64_t seed) {
    Random random(seed, "hostile");
    std::string json = to_json(arbitrary::point(random));
    for (int64_t n = random.uniform_int(1, 5); n > 0; --n)
      json[static_cast<size_t>(random.uniform_int(0, std::ssize(json) - 1))] = static_cast<char>(random.next());
    if (const auto p = point_from_json(json))
      (void)to_json(*p);
  }));
}

}  // namespace
}  // namespace goodput
