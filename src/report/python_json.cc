#include "report/python_json.h"

#include <fmt/format.h>
#include <boost/json.hpp>

#include "base/check.h"

namespace goodput {
namespace {

void write(const boost::json::value& value, std::string& out) {
  if (const auto* object = value.if_object()) {
    out += '{';
    for (const auto& [key, member] : *object) {
      if (out.back() != '{')
        out += ", ";
      out += boost::json::serialize(boost::json::string(key)) + ": ";
      write(member, out);
    }
    out += '}';
  } else if (const auto* array = value.if_array()) {
    out += '[';
    for (size_t i = 0; i < array->size(); ++i) {
      if (i > 0)
        out += ", ";
      write((*array)[i], out);
    }
    out += ']';
  } else if (const auto* number = value.if_double()) {
    out += python_float(*number);
  } else {
    out += boost::json::serialize(value);
  }
}

}  // namespace

std::string python_json(std::string_view text) {
  boost::system::error_code error;
  const boost::json::value value = boost::json::parse(text, error);
  CHECK(!error, "a JSON document");
  std::string out;
  write(value, out);
  return out;
}

std::string python_float(double v) {
  const std::string text = fmt::format("{}", v);
  return text.find_first_of(".en") == std::string::npos ? text + ".0" : text;
}

}  // namespace goodput
