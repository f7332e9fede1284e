# The report page and its plotting library become part of the binary: goodput_web holds the files of web/ and uPlot as
# bytes (report/web_assets.h). A page must not depend on a file beside it or on the network.
set(GOODPUT_UPLOT ${CMAKE_SOURCE_DIR}/.deps/uplot)
foreach(file dist/uPlot.iife.min.js dist/uPlot.min.css LICENSE)
  if(NOT EXISTS ${GOODPUT_UPLOT}/${file})
    message(FATAL_ERROR "uPlot is missing (${GOODPUT_UPLOT}/${file}): run ./run setup, which fetches it once")
  endif()
endforeach()

set(web_assets
    report_html ${CMAKE_SOURCE_DIR}/web/report.html
    report_css ${CMAKE_SOURCE_DIR}/web/report.css
    plots_js ${CMAKE_SOURCE_DIR}/web/plots.js
    report_js ${CMAKE_SOURCE_DIR}/web/report.js
    uplot_css ${GOODPUT_UPLOT}/dist/uPlot.min.css
    uplot_js ${GOODPUT_UPLOT}/dist/uPlot.iife.min.js
    uplot_license ${GOODPUT_UPLOT}/LICENSE)
set(web_source "// Made by cmake/web_assets.cmake.\n#include \"report/web_assets.h\"\n")
set(web_files)
while(web_assets)
  list(POP_FRONT web_assets name file)
  list(APPEND web_files ${file})
  string(APPEND web_source "
asm(\".pushsection .rodata\\n.global goodput_web_${name}, goodput_web_${name}_end\\n\"
    \"goodput_web_${name}: .incbin \\\"${file}\\\"\\ngoodput_web_${name}_end:\\n.popsection\\n\");
extern \"C\" const char goodput_web_${name}[], goodput_web_${name}_end[];
std::string_view goodput::web::${name}() { return {goodput_web_${name}, goodput_web_${name}_end}; }
")
endwhile()
file(GENERATE OUTPUT ${CMAKE_BINARY_DIR}/web_assets.cc CONTENT "${web_source}")
set_source_files_properties(${CMAKE_BINARY_DIR}/web_assets.cc PROPERTIES OBJECT_DEPENDS "${web_files}")
add_library(goodput_web STATIC ${CMAKE_BINARY_DIR}/web_assets.cc)
target_include_directories(goodput_web PRIVATE ${CMAKE_SOURCE_DIR}/src)
