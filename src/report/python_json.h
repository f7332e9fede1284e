// JSON as Python's json.dump writes it: ", " and ": " between, 20.0 for a whole float. Scripts that cut vLLM's results
// with grep and awk read ours then too.
#pragma once

#include <string>
#include <string_view>

namespace goodput {

// A JSON document, however spelt, on one line and without a line break at its end.
std::string python_json(std::string_view json);
// As Python prints a float: "4.0", "0.5", "1e-07", "inf".
std::string python_float(double);

}  // namespace goodput
