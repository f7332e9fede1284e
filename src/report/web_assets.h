// Files of web/ and of uPlot as they are inside the binary (cmake/web_assets.cmake).
#pragma once

#include <string_view>

namespace goodput::web {

std::string_view report_html();  // the template: {{name}} marks what html.cc fills in
std::string_view report_css();
std::string_view plots_js();
std::string_view report_js();
std::string_view uplot_css();
std::string_view uplot_js();
std::string_view uplot_license();

}  // namespace goodput::web
