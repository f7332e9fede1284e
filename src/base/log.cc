#include "base/log.h"

#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

namespace goodput::log {
namespace {

spdlog::logger& logger() {
  // The one process-wide object: stderr itself is process-wide.
  static const auto instance = [] {
    auto made = std::make_shared<spdlog::logger>("goodput", std::make_shared<spdlog::sinks::stderr_color_sink_mt>());
    made->set_pattern("%^%L%$ %H:%M:%S.%e %v");
    made->set_level(spdlog::level::warn);
    return made;
  }();
  return *instance;
}

}  // namespace

void set_level(Level level) {
  constexpr spdlog::level::level_enum kLevels[] = {spdlog::level::debug, spdlog::level::info, spdlog::level::warn,
                                                   spdlog::level::err, spdlog::level::off};
  logger().set_level(kLevels[static_cast<int>(level)]);
}
void debug(std::string_view message) { logger().debug("{}", message); }
void info(std::string_view message) { logger().info("{}", message); }
void warn(std::string_view message) { logger().warn("{}", message); }
void error(std::string_view message) { logger().error("{}", message); }

}  // namespace goodput::log
