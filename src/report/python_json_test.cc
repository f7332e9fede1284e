#include "report/python_json.h"

#include <gtest/gtest.h>

#include <boost/json.hpp>

namespace goodput {
namespace {

TEST(PythonJson, AsJsonDumpWritesIt) {
  const char* text = R"({"a": 20.0, "b": [1, null, true, "x\"\\"], "c": {}, "d": [], "e": {"f": {"g": 1.5}, "h": -3}})";
  EXPECT_EQ(python_json(text), text);
  EXPECT_EQ(python_json(boost::json::serialize(boost::json::parse(text))), text);
  EXPECT_EQ(boost::json::parse(python_json(text)), boost::json::parse(text));
  EXPECT_EQ(python_json(R"({"{":"{"})"), R"({"{": "{"})");
}

TEST(PythonJson, Floats) {
  EXPECT_EQ(python_float(4), "4.0");
  EXPECT_EQ(python_float(0.21), "0.21");
  EXPECT_EQ(python_float(1e-7), "1e-07");
  EXPECT_EQ(python_float(-0.0), "-0.0");
}

}  // namespace
}  // namespace goodput
