// Reads a published trace as it is: columns by name, times exact, a line at a time. The only state is one line, one
// read buffer and the few rows held back to put near neighbours in order. One thread per call.
#include "workload/trace.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <memory>
#include <optional>
#include <queue>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "base/limits.h"
#include "base/log.h"
#include "base/text.h"

namespace goodput {
namespace {

enum Column : size_t { kTimestamp, kContext, kGenerated };
constexpr std::array<std::string_view, 3> kColumns = {"TIMESTAMP", "ContextTokens", "GeneratedTokens"};

class LineReader {
 public:
  static Result<LineReader> open(const std::string& path) {
    std::FILE* file = std::fopen(path.c_str(), "re");
    if (!file)
      return fail(errno == ENOENT ? ErrorCode::kNotFound : ErrorCode::kIo,
                  fmt::format("cannot open the trace: {}", std::strerror(errno)), path);
    return LineReader(file, path);
  }

  // The next line without its end (LF or CRLF); false at the end of the file.
  Result<bool> next(std::string& line) {
    line.clear();
    for (;;) {
      if (begin_ == end_ && !TRY(fill())) {
        number_ += !line.empty();
        strip(line);
        return !line.empty();
      }
      const std::string_view rest(buffer_.data() + begin_, end_ - begin_);
      const size_t newline = rest.find('\n');
      line += rest.substr(0, newline);
      if (line.size() > limits::kMaxTraceLine) {
        ++number_;
        return wrong(fmt::format("line longer than {} bytes", limits::kMaxTraceLine));
      }
      begin_ += newline == rest.npos ? rest.size() : newline + 1;
      if (newline == rest.npos)
        continue;
      ++number_;
      strip(line);
      return true;
    }
  }

  // An error at the line last read.
  tl::unexpected<Error> wrong(std::string message) const {
    return fail(ErrorCode::kUsage, std::move(message), fmt::format("{}:{}", path_, number_));
  }
  uint64_t number() const { return number_; }

 private:
  LineReader(std::FILE* file, std::string path) : file_(file), path_(std::move(path)), buffer_(65536) {}

  static void strip(std::string& line) {
    if (line.ends_with('\r'))
      line.pop_back();
  }

  Result<bool> fill() {
    begin_ = 0;
    end_ = std::fread(buffer_.data(), 1, buffer_.size(), file_.get());
    if (end_ == 0 && std::ferror(file_.get()))
      return fail(ErrorCode::kIo, fmt::format("cannot read the trace: {}", std::strerror(errno)), path_);
    return end_ > 0;
  }

  struct Close {
    void operator()(std::FILE* f) const { std::fclose(f); }
  };
  std::unique_ptr<std::FILE, Close> file_;
  std::string path_;
  std::vector<char> buffer_;
  size_t begin_ = 0, end_ = 0;
  uint64_t number_ = 0;
};

std::string shown(std::string_view text) {
  return text.size() <= 60 ? std::string(text) : std::string(text.substr(0, 60)) + "…";
}

// Fields of one CSV line (RFC 4180, without line breaks inside quotes); nullopt: a quote that does not close, or text
// after one.
std::optional<std::vector<std::string>> csv_fields(std::string_view line) {
  std::vector<std::string> fields(1);
  for (size_t i = 0; i < line.size(); ++i) {
    if (line[i] == ',') {
      fields.emplace_back();
    } else if (line[i] == '"' && fields.back().empty()) {
      for (++i;; ++i) {
        if (i == line.size())
          return std::nullopt;
        if (line[i] != '"') {
          fields.back() += line[i];
        } else if (i + 1 < line.size() && line[i + 1] == '"') {
          fields.back() += line[i++];
        } else {
          break;
        }
      }
      if (i + 1 < line.size() && line[i + 1] != ',')
        return std::nullopt;
    } else {
      fields.back() += line[i];
    }
  }
  return fields;
}

// Consumes exactly `digits` digits and then `then` (0: nothing).
bool take_number(std::string_view& text, size_t digits, char then, int& out) {
  if (text.size() < digits + (then != 0))
    return false;
  out = 0;
  for (size_t i = 0; i < digits; ++i) {
    if (text[i] < '0' || text[i] > '9')
      return false;
    out = out * 10 + (text[i] - '0');
  }
  if (then != 0 && text[digits] != then)
    return false;
  text.remove_prefix(digits + (then != 0));
  return true;
}

// ".9799600" as nanoseconds; nothing is 0.
bool take_fraction(std::string_view& text, int64_t& nanos) {
  nanos = 0;
  if (!text.starts_with('.'))
    return true;
  text.remove_prefix(1);
  size_t digits = 0;
  while (digits < text.size() && text[digits] >= '0' && text[digits] <= '9')
    ++digits;
  if (digits == 0 || digits > 9)
    return false;
  for (size_t i = 0; i < 9; ++i)
    nanos = nanos * 10 + (i < digits ? text[i] - '0' : 0);
  text.remove_prefix(digits);
  return true;
}

// Minutes east of UTC: "", "Z", "+hh:mm", "-hh:mm".
bool take_zone(std::string_view& text, int& minutes) {
  minutes = 0;
  if (text.empty())
    return true;
  const char sign = text.front();
  text.remove_prefix(1);
  if (sign == 'Z')
    return text.empty();
  int hour = 0, minute = 0;
  if ((sign != '+' && sign != '-') || !take_number(text, 2, ':', hour) || !take_number(text, 2, 0, minute))
    return false;
  minutes = (sign == '-' ? -1 : 1) * (hour * 60 + minute);
  return text.empty() && hour < 24 && minute < 60;
}

// Nanoseconds since the Unix epoch, exactly.
std::optional<Nanos> parse_timestamp(std::string_view text) {
  int year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0, zone = 0;
  int64_t fraction = 0;
  if (!take_number(text, 4, '-', year) || !take_number(text, 2, '-', month) || !take_number(text, 2, 0, day))
    return {};
  if (text.empty() || (text.front() != ' ' && text.front() != 'T'))
    return {};
  text.remove_prefix(1);
  if (!take_number(text, 2, ':', hour) || !take_number(text, 2, ':', minute) || !take_number(text, 2, 0, second))
    return {};
  if (!take_fraction(text, fraction) || !take_zone(text, zone))
    return {};
  const std::chrono::year_month_day date{std::chrono::year(year), std::chrono::month(static_cast<unsigned>(month)),
                                         std::chrono::day(static_cast<unsigned>(day))};
  // Int64 nanoseconds reach from 1678 to 2262.
  if (!date.ok() || year < 1970 || year > 2200 || hour > 23 || minute > 59 || second > 60)
    return {};
  const int64_t days = std::chrono::sys_days(date).time_since_epoch().count();
  return seconds(days * 86'400 + hour * 3'600 + (minute - zone) * 60 + second) + Nanos(fraction);
}

// Which field holds which column, from the header's names.
Result<std::array<size_t, 3>> find_columns(const LineReader& lines, const std::vector<std::string>& names) {
  std::array<size_t, 3> at{};
  for (size_t c = 0; c < kColumns.size(); ++c) {
    std::optional<size_t> found;
    for (size_t i = 0; i < names.size(); ++i) {
      if (trim(names[i]) != kColumns[c])
        continue;
      if (found)
        return lines.wrong(fmt::format("column '{}' stands twice in the header", kColumns[c]));
      found = i;
    }
    if (!found)
      return lines.wrong(fmt::format("expected a column '{}' in the header, found '{}'", kColumns[c],
                                     shown(fmt::format("{}", fmt::join(names, ",")))));
    at[c] = *found;
  }
  return at;
}

Result<Tokens> parse_tokens(const LineReader& lines, Column column, std::string_view text) {
  const auto value = parse_int(trim(text));
  if (!value || *value < 0 || *value > limits::kMaxModelLen.count())
    return lines.wrong(fmt::format("{}: expected 0 to {} tokens, found '{}'", kColumns[column],
                                   limits::kMaxModelLen.count(), shown(text)));
  return Tokens(*value);
}

// Puts rows that stand a little out of order in order: holds the earliest few back until no closer neighbour can come.
class Reorder {
 public:
  explicit Reorder(const std::function<void(const TraceRow&)>& row) : row_(row) {}

  // `row.at` since the epoch. False: later than what was already given on.
  bool add(const TraceRow& row) {
    if (last_given_ && row.at < *last_given_)
      return false;
    if (newest_ && row.at < *newest_)
      ++moved_;
    newest_ = std::max(newest_.value_or(row.at), row.at);
    held_.push({row, order_++});
    if (held_.size() > limits::kTraceReorderRows)
      give();
    return true;
  }
  void finish() {
    while (!held_.empty())
      give();
  }
  uint64_t moved() const { return moved_; }

 private:
  struct Held {
    TraceRow row;
    uint64_t order;  // rows of one time keep the file's order
    bool operator>(const Held& o) const { return std::pair(row.at, order) > std::pair(o.row.at, o.order); }
  };

  void give() {
    TraceRow row = held_.top().row;
    held_.pop();
    last_given_ = row.at;
    if (!zero_)
      zero_ = row.at;
    row.at -= *zero_;
    row_(row);
  }

  const std::function<void(const TraceRow&)>& row_;
  std::priority_queue<Held, std::vector<Held>, std::greater<>> held_;
  std::optional<Nanos> newest_, last_given_, zero_;
  uint64_t order_ = 0, moved_ = 0;
};

Result<TraceRow> parse_row(const LineReader& lines, const std::vector<std::string>& fields,
                           const std::array<size_t, 3>& at) {
  const std::string_view stamp = trim(fields[at[kTimestamp]]);
  const auto time = parse_timestamp(stamp);
  if (!time)
    return lines.wrong(fmt::format("{}: expected a time such as '2023-11-16 18:17:03.9799600', found '{}'",
                                   kColumns[kTimestamp], shown(stamp)));
  return TraceRow{*time, TRY(parse_tokens(lines, kContext, fields[at[kContext]])),
                  TRY(parse_tokens(lines, kGenerated, fields[at[kGenerated]]))};
}

}  // namespace

Result<void> read_azure_trace(const std::string& path, const std::function<void(const TraceRow&)>& row) {
  LineReader lines = TRY(LineReader::open(path));
  std::string line;
  if (!TRY(lines.next(line)))
    return fail(ErrorCode::kUsage, "the trace is empty: expected a header", path + ":1");
  if (line.starts_with("\xEF\xBB\xBF"))
    line.erase(0, 3);
  const auto header = csv_fields(line);
  if (!header)
    return lines.wrong("a quote in the header does not close");
  const auto columns = TRY(find_columns(lines, *header));

  Reorder reorder(row);
  while (TRY(lines.next(line))) {
    if (trim(line).empty())
      continue;
    const auto fields = csv_fields(line);
    if (!fields)
      return lines.wrong("a quote does not close at the end of its field");
    if (fields->size() != header->size())
      return lines.wrong(fmt::format("expected {} fields as in the header, found {}", header->size(), fields->size()));
    const TraceRow parsed = TRY(parse_row(lines, *fields, columns));
    if (!reorder.add(parsed))
      return lines.wrong(fmt::format("{}: more than {} rows out of order: sort the trace by time", kColumns[kTimestamp],
                                     limits::kTraceReorderRows));
  }
  reorder.finish();
  if (reorder.moved() > 0)
    log::warn(fmt::format("{}: {} rows stood out of order in time and were put in order", path, reorder.moved()));
  return {};
}

}  // namespace goodput
