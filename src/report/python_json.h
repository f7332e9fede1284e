// JSON as Python's json.dump writes it: ", " and ": " between, 20.0 for a whole float. Scripts that cut vLLM's results
// with grep and awk read ours then too. Private to this room's .cc files, since boost::json stands in it.
#pragma once

#include <string>

#include <boost/json.hpp>

namespace goodput {

// On one line, without a line break at its end. Every number must be finite.
std::string python_json(const boost::json::value&);
// As Python prints a float: "4.0", "0.5", "1e-07", "inf".
std::string python_float(double);

}  // namespace goodput
