#include "report/html.h"

#include <gtest/gtest.h>
#include <simdjson.h>

#include "base/file.h"
#include "report/example_map.h"
#include "report/study_json.h"

namespace goodput {
namespace {

std::string_view between(std::string_view text, std::string_view before, std::string_view after) {
  const size_t start = text.find(before);
  if (start == std::string_view::npos)
    return {};
  text.remove_prefix(start + before.size());
  return text.substr(0, text.find(after));
}

// Left in the test's folder, to be looked at.
TEST(ReportHtml, ExampleIsWritten) {
  const std::string path = testing::TempDir() + "goodput-example-report.html";
  EXPECT_TRUE(write_file_atomically(path, report_html(example::map())));
}

TEST(ReportHtml, CarriesTheSameDataAsJson) {
  const MapResult m = example::map();
  const std::string page = report_html(m);
  const std::string_view data = between(page, "<script type=\"application/json\" id=\"data\">", "</script>");
  simdjson::dom::parser parser, other;
  const std::string padded(data), json = to_json(m);
  EXPECT_EQ(simdjson::minify(parser.parse(padded).value()), simdjson::minify(other.parse(json).value()));
}

TEST(ReportHtml, HostileTextCannotLeaveTheData) {
  MapResult m = example::map();
  m.notes = {"</script><script>alert(1)</script><!-- {{report.js}} \xff"};
  m.model = "<img src=x onerror=alert(1)>";
  const std::string page = report_html(m);
  EXPECT_EQ(page.find("<script>alert"), std::string::npos);
  EXPECT_EQ(page.find("<img"), std::string::npos);
  EXPECT_NE(page.find("{{report.js}}"), std::string::npos);  // what is filled in is not filled again
}

TEST(ReportHtml, AsksNobodyForAnything) {
  const std::string page = report_html(example::map());
  for (const char* outside :
       {"src=\"http", "href=\"http", "url(", "@import", "fetch(", "XMLHttpRequest", "<link rel=\"stylesheet"})
    EXPECT_EQ(page.find(outside), std::string::npos) << outside;
  EXPECT_EQ(page.find("{{"), std::string::npos);
}

TEST(ReportHtml, AnEmptyStudyIsAPageToo) {
  const std::string page = report_html(MapResult{});
  EXPECT_NE(page.find("\"chosen\":null"), std::string::npos);
  EXPECT_TRUE(write_file_atomically(testing::TempDir() + "goodput-empty-report.html", page));
}

}  // namespace
}  // namespace goodput
