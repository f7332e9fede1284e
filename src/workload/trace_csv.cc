// Traces in CSV: Azure's and BurstGPT's. Columns by name; a row is read without allocating once its buffers have grown.
#include <array>
#include <optional>

#include <fmt/format.h>

#include "base/limits.h"
#include "base/text.h"
#include "workload/trace_formats.h"
#include "workload/trace_time.h"

namespace goodput {
namespace {

enum Column : size_t { kTime, kPrompt, kOutput };
using Columns = std::array<std::string_view, 3>;

constexpr Columns kAzureColumns = {"TIMESTAMP", "ContextTokens", "GeneratedTokens"};
constexpr Columns kBurstGptColumns = {"Timestamp", "Request tokens", "Response tokens"};

const Columns& columns_of(TraceFormat format) {
  return format == TraceFormat::kAzure ? kAzureColumns : kBurstGptColumns;
}

// Splits lines into fields (RFC 4180, without line breaks inside quotes).
class Fields {
 public:
  // False: a quote that does not close, or text after one. The views are valid until the next call.
  bool split(std::string_view line) {
    fields_.clear();
    unquoted_.clear();
    unquoted_.reserve(line.size());  // so that views into it stay
    size_t i = 0;
    for (;;) {
      if (i < line.size() && line[i] == '"') {
        if (!take_quoted(line, i))
          return false;
      } else {
        const size_t comma = std::min(line.find(',', i), line.size());
        fields_.push_back(line.substr(i, comma - i));
        i = comma;
      }
      if (i == line.size())
        return true;
      ++i;  // the comma
    }
  }
  size_t size() const { return fields_.size(); }
  std::string_view operator[](size_t i) const { return trim(fields_[i]); }
  const std::vector<std::string_view>& all() const { return fields_; }

 private:
  bool take_quoted(std::string_view line, size_t& i) {
    const size_t start = unquoted_.size();
    for (++i;; ++i) {
      if (i == line.size())
        return false;
      if (line[i] == '"') {
        if (i + 1 == line.size() || line[i + 1] != '"')
          break;
        ++i;
      }
      unquoted_ += line[i];
    }
    ++i;
    fields_.push_back(std::string_view(unquoted_).substr(start));
    return i == line.size() || line[i] == ',';
  }

  std::vector<std::string_view> fields_;
  std::string unquoted_;
};

// Which field holds which column, from the header's names.
Result<std::array<size_t, 3>> find_columns(const TraceInput& input, const Columns& wanted, const Fields& names) {
  std::array<size_t, 3> at{};
  for (size_t c = 0; c < wanted.size(); ++c) {
    std::optional<size_t> found;
    for (size_t i = 0; i < names.size(); ++i) {
      if (names[i] != wanted[c])
        continue;
      if (found)
        return input.wrong(fmt::format("column '{}' stands twice in the header", wanted[c]));
      found = i;
    }
    if (!found)
      return input.wrong(fmt::format("expected a column '{}' in the header, found '{}'", wanted[c],
                                     shown(fmt::format("{}", fmt::join(names.all(), ",")))));
    at[c] = *found;
  }
  return at;
}

Result<Tokens> parse_tokens(const TraceInput& input, std::string_view column, std::string_view text) {
  const auto value = parse_int(text);
  if (!value || *value < 0 || *value > limits::kMaxModelLen.count())
    return input.wrong(
        fmt::format("{}: expected 0 to {} tokens, found '{}'", column, limits::kMaxModelLen.count(), shown(text)));
  return Tokens(*value);
}

Result<Nanos> parse_time(const TraceInput& input, TraceFormat format, std::string_view text) {
  const std::string_view column = columns_of(format)[kTime];
  if (format == TraceFormat::kAzure) {
    if (const auto time = parse_timestamp(text))
      return *time;
    return input.wrong(
        fmt::format("{}: expected a time such as '2023-11-16 18:17:03.9799600', found '{}'", column, shown(text)));
  }
  const auto number = parse_decimal(text);
  const auto time = number ? in_nanos(*number, seconds(1)) : std::nullopt;
  if (time)
    return *time;
  return input.wrong(fmt::format("{}: expected seconds, found '{}'", column, shown(text)));
}

}  // namespace

Result<TraceFormat> find_csv_format(const TraceInput& input, std::string_view header) {
  Fields names;
  if (!names.split(header))
    return input.wrong("a quote in the header does not close");
  for (const TraceFormat format : {TraceFormat::kAzure, TraceFormat::kBurstGpt})
    if (find_columns(input, columns_of(format), names))
      return format;
  return input.wrong(
      fmt::format("not the header of a known trace: expected the columns {} (azure) or {} (burstgpt), "
                  "or JSON; found '{}'",
                  fmt::join(kAzureColumns, ","), fmt::join(kBurstGptColumns, ","), shown(header)));
}

Result<void> read_csv_trace(TraceFormat format, TraceInput& input, const RowSink& sink) {
  const Columns& names = columns_of(format);
  std::string line;
  Fields fields;
  if (!TRY(input.next_line(line)))
    return input.wrong("the trace is empty: expected a header");
  if (!fields.split(line))
    return input.wrong("a quote in the header does not close");
  const auto at = TRY(find_columns(input, names, fields));
  const size_t width = fields.size();
  while (TRY(input.next_line(line))) {
    if (trim(line).empty())
      continue;
    if (!fields.split(line))
      return input.wrong("a quote does not close at the end of its field");
    if (fields.size() != width)
      return input.wrong(fmt::format("expected {} fields as in the header, found {}", width, fields.size()));
    TraceRow row;
    row.at = TRY(parse_time(input, format, fields[at[kTime]]));
    row.prompt = TRY(parse_tokens(input, names[kPrompt], fields[at[kPrompt]]));
    row.output = TRY(parse_tokens(input, names[kOutput], fields[at[kOutput]]));
    row.line = input.line();
    TRY(sink(std::move(row)));
  }
  return {};
}

}  // namespace goodput
