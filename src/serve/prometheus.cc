#include "serve/prometheus.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace goodput {
namespace {

// Integers without exponent or fraction, other numbers in the shortest form that reads back as the same double.
std::string number(double value) {
  if (std::isnan(value))
    return "NaN";
  if (std::isinf(value))
    return value > 0 ? "+Inf" : "-Inf";
  if (value == std::floor(value) && std::abs(value) < 1e15)
    return fmt::format("{}", static_cast<int64_t>(value));
  return fmt::format("{}", value);
}

void append_escaped(std::string& to, std::string_view text, bool quotes) {
  for (const char c : text) {
    if (c == '\\')
      to += "\\\\";
    else if (c == '\n')
      to += "\\n";
    else if (c == '"' && quotes)
      to += "\\\"";
    else
      to += c;
  }
}

}  // namespace

void Histogram::observe(double value) {
  ++counts_[static_cast<size_t>(std::lower_bound(bounds_.begin(), bounds_.end(), value) - bounds_.begin())];
  sum_ += value;
}

void Exposition::head(const MetricRow& row) {
  if (current_ == row.name)
    return;
  current_ = row.name;
  page_ += fmt::format("# HELP {} ", row.name);
  append_escaped(page_, row.help, false);
  page_ += fmt::format("\n# TYPE {} {}\n", row.name, row.type);
}

void Exposition::line(std::string_view name, std::string_view suffix, const Labels& labels, double value) {
  page_ += name;
  page_ += suffix;
  char separator = '{';
  for (const Labels* list : {&std::as_const(common_), &labels}) {
    for (const auto& [key, text] : *list) {
      page_ += separator;
      page_ += key;
      page_ += "=\"";
      append_escaped(page_, text, true);
      page_ += '"';
      separator = ',';
    }
  }
  if (separator == ',')
    page_ += '}';
  page_ += ' ';
  page_ += number(value);
  page_ += '\n';
}

void Exposition::sample(const MetricRow& row, double value, const Labels& labels) {
  head(row);
  line(row.name, "", labels, value);
}

void Exposition::histogram(const MetricRow& row, const Histogram& histogram) {
  head(row);
  uint64_t below = 0;
  for (size_t i = 0; i <= histogram.bounds().size(); ++i) {
    below += histogram.count_in(i);
    const std::string bound = i < histogram.bounds().size() ? number(histogram.bounds()[i]) : "+Inf";
    line(row.name, "_bucket", {{"le", bound}}, static_cast<double>(below));
  }
  line(row.name, "_sum", {}, histogram.sum());
  line(row.name, "_count", {}, static_cast<double>(below));
}

}  // namespace goodput
