#include "report/terminal.h"

#include <gtest/gtest.h>

#include "report/example_map.h"

namespace goodput {
namespace {

bool has(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

TEST(StudyText, SaysTheAnswerFirstThenWhatToSetAndWhatOthersCost) {
  const std::string text = study_text(example::map(), {.width = 120});
  EXPECT_TRUE(
      text.starts_with("Run max_num_seqs 8, 256 tokens, priority\n"
                       "  goodput      4.62 requests/s (95 % interval 4.31 to 4.93), confirmed on fresh seeds at 4.90 "
                       "requests/s offered\n"))
      << text;
  for (const char* part :
       {"  set          --max-num-seqs 8 --max-num-batched-tokens 256 --scheduling-policy priority\n",
        "largest batch        regret +23 % (95 % interval +12 to +33 %): 3.55 requests/s",
        "offline throughput   regret +20 %", ", simulated\n",
        "background work      interactive goodput 3.74 requests/s with it, 4.21 without\n", "not separable",
        "headroom +5 %", "Prediction, largest error: goodput +8 %, TTFT p50 +6 %, TPOT p50 -4 %",
        "at the speed the machine had in each point: goodput +0 %, TTFT p50 +2 %, TPOT p50 -1 %",
        "Note: 1 of 15 measured points is INVALID", "Report: goodput-study/report.html\n"})
    EXPECT_TRUE(has(text, part)) << part << "\n" << text;
}

TEST(StudyText, NoTableLineIsWiderThanTheTerminal) {
  for (const int width : {60, 80, 100, 160}) {
    const std::string text = study_text(example::map(), {.width = width});
    const size_t table = text.find("\nsetting");
    ASSERT_NE(table, std::string::npos);
    size_t at = table + 1;
    for (int rows = 0; rows < 10; ++rows) {
      const size_t end = text.find('\n', at);
      EXPECT_LE(text_width(std::string_view(text).substr(at, end - at)), width) << text;
      at = end + 1;
    }
  }
}

TEST(StudyText, PlainIsTheWholeTable) {
  const MapResult m = example::map();
  const std::string text = study_text(m, {.plain = true});
  EXPECT_EQ(std::ranges::count(text, '\n'), std::ssize(m.capacity) + 1);
  EXPECT_TRUE(text.starts_with("setting\t\tgoodput req/s\t"));
}

TEST(StudyText, WithoutAChoiceItSaysWhy) {
  MapResult m;
  EXPECT_TRUE(has(study_text(m, {}), "No choice yet."));
  m.capacity.push_back({example::settings(8, 256, SchedulingPolicy::kFcfs), {}, {}, {}});
  EXPECT_TRUE(has(study_text(m, {}), "No setting keeps 90 % of every class inside its targets"));
}

}  // namespace
}  // namespace goodput
