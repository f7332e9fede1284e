#include "report/html.h"

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "base/check.h"
#include "report/study_json.h"
#include "report/web_assets.h"

namespace goodput {
namespace {

// Inside <script> only "</" and "<!--" could end or bend the data; in JSON "<" stands only in strings, where < is the
// same character. "&" needs nothing there.
std::string safe_in_script(std::string_view json) {
  std::string out;
  out.reserve(json.size());
  for (const char c : json)
    c == '<' ? out += "\\u003c" : out += c;
  return out;
}

// Fills {{name}} once each, in one pass: what is filled in is never looked at again.
std::string fill(std::string_view page, std::span<const std::pair<std::string_view, std::string_view>> parts) {
  std::string out;
  while (!page.empty()) {
    const size_t open = page.find("{{");
    out += page.substr(0, open);
    if (open == std::string_view::npos)
      break;
    const size_t close = page.find("}}", open);
    CHECK(close != std::string_view::npos, "an unclosed mark in web/report.html");
    const std::string_view name = page.substr(open + 2, close - open - 2);
    const auto part = std::ranges::find(parts, name, &std::pair<std::string_view, std::string_view>::first);
    CHECK(part != parts.end(), "an unknown mark in web/report.html");
    out += part->second;
    page.remove_prefix(close + 2);
  }
  return out;
}

}  // namespace

std::string report_html(const MapResult& m) {
  const std::string data = safe_in_script(to_json(m));
  const std::array<std::pair<std::string_view, std::string_view>, 7> parts = {{
      {"report.css", web::report_css()},
      {"plots.js", web::plots_js()},
      {"report.js", web::report_js()},
      {"uplot.css", web::uplot_css()},
      {"uplot.js", web::uplot_js()},
      {"uplot.license", web::uplot_license()},
      {"data", data},
  }};
  return fill(web::report_html(), parts);
}

}  // namespace goodput
