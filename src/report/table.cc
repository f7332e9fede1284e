#include "report/table.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <numeric>
#include <string_view>

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/check.h"

namespace goodput {
namespace {

constexpr int kGap = 2;  // blanks between columns

std::string padded(std::string_view text, int width, bool right) {
  const std::string blanks(static_cast<size_t>(std::max(0, width - text_width(text))), ' ');
  return right ? blanks + std::string(text) : std::string(text) + blanks;
}

std::vector<int> column_widths(const TextTable& t) {
  std::vector<int> widths;
  for (size_t c = 0; c < t.columns.size(); ++c) {
    int width = text_width(t.columns[c].header);
    for (const auto& row : t.rows)
      width = std::max(width, text_width(row[c]));
    widths.push_back(width);
  }
  return widths;
}

// Indices of the columns that are shown, in order.
std::vector<size_t> fitting(const TextTable& t, const std::vector<int>& widths, int limit) {
  std::vector<size_t> shown(t.columns.size());
  std::iota(shown.begin(), shown.end(), size_t{0});
  const auto total = [&] {
    int sum = -kGap;
    for (const size_t c : shown)
      sum += widths[c] + kGap;
    return sum;
  };
  while (limit > 0 && shown.size() > 1 && total() > limit) {
    size_t least = 1;
    for (size_t i = 1; i < shown.size(); ++i)
      if (t.columns[shown[i]].importance <= t.columns[shown[least]].importance)
        least = i;
    shown.erase(shown.begin() + static_cast<std::ptrdiff_t>(least));
  }
  return shown;
}

std::string without_trailing_blanks(std::string line) {
  line.erase(line.find_last_not_of(' ') + 1);
  return line;
}

std::string plain_text(const TextTable& t) {
  std::string out;
  const auto line = [&](const auto& cells, auto text) {
    for (size_t c = 0; c < cells.size(); ++c)
      (out += c ? "\t" : "") += text(cells[c]);
    out += '\n';
  };
  line(t.columns, [](const TableColumn& c) { return c.header; });
  for (const auto& row : t.rows)
    line(row, [](const std::string& cell) { return cell; });
  return out;
}

}  // namespace

int text_width(std::string_view text) {
  int width = 0;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if ((byte & 0xC0) != 0x80)  // the first byte of a code point
      // Hangul, kana, CJK and full-width forms begin with 0xE3..0xED or 0xEF; so does little that we print.
      width += (byte >= 0xE3 && byte <= 0xED) || byte == 0xEF ? 2 : 1;
  }
  return width;
}

std::string figure(double value) {
  if (!std::isfinite(value))
    return "-";
  if (value == 0)
    return "0";
  const int digits = std::clamp(2 - static_cast<int>(std::floor(std::log10(std::fabs(value)))), 0, 6);
  return fmt::format("{:.{}f}", value, digits);
}

std::string percent(double share) { return std::isfinite(share) ? fmt::format("{:.0f} %", share * 100) : "-"; }

std::string TextStyle::strong(std::string_view text) const {
  return colour ? fmt::format("\x1b[1m{}\x1b[0m", text) : std::string(text);
}
std::string TextStyle::faint(std::string_view text) const {
  return colour ? fmt::format("\x1b[2m{}\x1b[0m", text) : std::string(text);
}

TextStyle text_style(int fd, bool plain) {
  TextStyle style{.width = 0, .colour = false, .plain = plain};
  if (plain || !::isatty(fd))
    return style;
  winsize size{};
  style.width = ::ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
  const char* no_colour = std::getenv("NO_COLOR");
  const char* term = std::getenv("TERM");
  style.colour = !(no_colour && *no_colour) && term && std::string_view(term) != "dumb";
  return style;
}

TextStyle text_style(bool plain) { return text_style(STDOUT_FILENO, plain); }

std::string TextTable::render(const TextStyle& style) const {
  for (const auto& row : rows)
    CHECK(row.size() == columns.size(), "a row as long as the header");
  if (style.plain)
    return plain_text(*this);
  const std::vector<int> widths = column_widths(*this);
  const std::vector<size_t> shown = fitting(*this, widths, style.width);
  const auto line = [&](auto text) {
    std::string out;
    for (const size_t c : shown)
      out += padded(text(c), widths[c], columns[c].number) + std::string(kGap, ' ');
    return without_trailing_blanks(out);
  };
  std::string out = style.strong(line([&](size_t c) { return columns[c].header; })) + "\n";
  for (const auto& row : rows)
    out += line([&](size_t c) { return row[c]; }) + "\n";
  std::string left_out;
  for (size_t c = 0; c < columns.size(); ++c)
    if (!std::ranges::binary_search(shown, c))
      left_out += (left_out.empty() ? "" : ", ") + columns[c].header;
  if (!left_out.empty())
    out += style.faint("not shown for want of width: " + left_out) + "\n";
  return out;
}

}  // namespace goodput
