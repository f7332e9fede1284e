// An executor's capabilities as stored with a point, so that a resumed study simulates the same engine.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "scheduler/capabilities.h"

namespace goodput {

std::string encode_capabilities(const Capabilities&);
Result<Capabilities> decode_capabilities(std::string_view);  // kFailed: not encode_capabilities' text

}  // namespace goodput
