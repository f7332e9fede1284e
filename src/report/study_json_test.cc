#include "report/study_json.h"

#include <gtest/gtest.h>
#include <simdjson.h>

#include "report/example_map.h"

namespace goodput {
namespace {

namespace dom = simdjson::dom;

class StudyJson : public ::testing::Test {
 protected:
  static std::string keys(dom::element element) {
    dom::object object;
    if (element.get(object))
      return "not an object";
    std::string out;
    for (const auto [key, value] : object)
      (out += out.empty() ? "" : " ") += key;
    return out;
  }
  std::string json_ = to_json(example::map());
  dom::parser parser_;
  dom::element root_ = parser_.parse(json_);
};

TEST_F(StudyJson, KeysAreThoseThatScriptsRelyOn) {
  EXPECT_EQ(keys(root_),
            "schema study_file report version machine model started workload targets floor seed chosen largest_batch "
            "offline_throughput background capacity frontier prediction_error unloaded_ms step_cost ttft_map timelines "
            "notes points");
  EXPECT_EQ(std::string_view(root_["schema"]), "goodput.study/1");
  EXPECT_EQ(keys(root_["workload"]), "name arrivals classes hash");
  EXPECT_EQ(keys(root_["targets"]), "chat rag background");
  EXPECT_EQ(keys(root_["targets"]["chat"]), "ttft_ms tpot_ms");
  EXPECT_EQ(
      keys(root_["chosen"]),
      "settings label offered_rate goodput capacity_rate headroom not_separable_from not_separable_labels flags why "
      "undecided");
  EXPECT_EQ(keys(root_["chosen"]["goodput"]), "value low high");
  for (const char* rule : {"largest_batch", "offline_throughput"}) {
    EXPECT_EQ(keys(root_[rule]), "settings label goodput regret measured");
    EXPECT_EQ(keys(root_[rule]["regret"]), "value low high");
  }
  EXPECT_EQ(keys(root_["background"]), "interactive_goodput_with interactive_goodput_without measured");
  for (const char* list : {"capacity", "frontier"})
    EXPECT_EQ(keys(root_[list].at(0)),
              "settings label rate goodput_rps attainment_by_class predicted measured offline_tokens_per_s");
  EXPECT_EQ(keys(root_["prediction_error"]), "ttft_p50 tpot_p50 goodput at_speed rows");
  EXPECT_EQ(keys(root_["ttft_map"]["measured"].at(0)), "prompt_tokens running n ttft_p50_ms");
  EXPECT_EQ(keys(root_["timelines"].at(0)), "title steps ended");
}

TEST_F(StudyJson, PointsStandInItAsInTheStudyFile) {
  const MapResult m = example::map();
  dom::array points = root_["points"];
  ASSERT_EQ(points.size(), m.points.size());
  for (size_t i = 0; i < m.points.size(); ++i)
    EXPECT_EQ(simdjson::minify(points.at(i).value()), to_json(m.points[i]));
}

TEST_F(StudyJson, MeasuredCapacityWinsOverPredicted) {
  for (const dom::element c : dom::array(root_["capacity"])) {
    if (c["measured"].is_null())
      continue;
    EXPECT_EQ(double(c["rate"]), double(c["measured"]["rate"]));
    EXPECT_NE(double(c["rate"]), double(c["predicted"]["rate"]));
  }
}

TEST_F(StudyJson, WhatIsAbsentIsNull) {
  const std::string json = to_json(MapResult{});
  dom::parser parser;
  const dom::element root = parser.parse(json);
  for (const char* key :
       {"chosen", "largest_batch", "offline_throughput", "background", "prediction_error", "step_cost", "ttft_map"})
    EXPECT_TRUE(root[key].is_null()) << key;
  EXPECT_EQ(dom::array(root["points"]).size(), 0u);
}

}  // namespace
}  // namespace goodput
