#include "report/study_show.h"

#include <filesystem>

#include <gtest/gtest.h>
#include <simdjson.h>
#include <unistd.h>

#include "report/example_map.h"
#include "report/study_json.h"

namespace goodput {
namespace {

class StudyShowTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (std::filesystem::temp_directory_path() / "goodput-show-XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
    for (const Point& p : map_.points) {
      PointRow row{.phase = p.phase,
                   .key = p.key,
                   .settings_json = to_json(p.settings),
                   .offered_rate = p.rate,
                   .seed = p.seed,
                   .executor = p.executor,
                   .schedule_hash = p.schedule_hash,
                   .summary_json = to_json(p),
                   .records_hash = {}};
      ASSERT_TRUE(study().add_point(row, {}, {}));
    }
  }
  void TearDown() override {
    study_.reset();
    std::filesystem::remove_all(folder_);
  }
  std::string file() const { return folder_ / "study.db"; }
  Study& study() {
    if (!study_)
      study_ = std::move(Study::open(file(), true).value());
    return *study_;
  }

  MapResult map_ = example::map();
  std::filesystem::path folder_;
  std::unique_ptr<Study> study_;
};

TEST_F(StudyShowTest, ListsThePointsOfAnUnfinishedStudy) {
  const auto shown = read_study(file());
  ASSERT_TRUE(shown) << describe(shown.error());
  const std::string text = render_study(*shown, {.width = 200});
  EXPECT_EQ(text.find("setting"), 0u);
  EXPECT_NE(text.find("INVALID contended"), std::string::npos);
  EXPECT_NE(text.find("27 points in"), std::string::npos) << text;
  EXPECT_NE(text.find("--resume"), std::string::npos);
  simdjson::dom::parser parser;
  const std::string json = study_json(*shown);
  const simdjson::dom::element root = parser.parse(json);
  EXPECT_EQ(simdjson::dom::array(root["points"]).size(), map_.points.size());
  EXPECT_TRUE(root["chosen"].is_null());
}

TEST_F(StudyShowTest, AFinishedStudyShowsItsChoiceAndItsDocument) {
  const std::string document = to_json(map_);
  ASSERT_TRUE(study().set_meta("result", document));
  const auto shown = read_study(file());
  ASSERT_TRUE(shown);
  EXPECT_EQ(study_json(*shown), document);
  EXPECT_NE(render_study(*shown, {}).find("Chosen: max_num_seqs 8, 256 tokens, priority, 4.62 requests/s"),
            std::string::npos);
}

TEST_F(StudyShowTest, APointThatCannotBeReadIsNamed) {
  PointRow row{.phase = "measure",
               .key = "broken",
               .settings_json = "{}",
               .offered_rate = 1,
               .seed = 1,
               .executor = "llama",
               .schedule_hash = "",
               .summary_json = "{}",
               .records_hash = {}};
  ASSERT_TRUE(study().add_point(row, {}, {}));
  const auto shown = read_study(file());
  ASSERT_FALSE(shown);
  EXPECT_EQ(shown.error().message, "point \"broken\": `phase` of a point is missing");
}

}  // namespace
}  // namespace goodput
