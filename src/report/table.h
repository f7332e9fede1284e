// Tables for a terminal: numbers right-aligned, units in the headers, and where the width does not suffice the least
// important columns are left out rather than wrapped.
#pragma once

#include <string>
#include <vector>

namespace goodput {

// How to write to somebody: a terminal of a width, a pipe, a script.
struct TextStyle {
  int width = 100;      // columns; 0: no limit
  bool colour = false;  // ANSI emphasis
  bool plain = false;   // tab-separated, all columns, no ornament

  std::string strong(std::string_view text) const;
  std::string faint(std::string_view text) const;
};
// What fits the descriptor: its width where it is a terminal, else no limit; colour only on a terminal that can show it
// and without NO_COLOR.
TextStyle text_style(int fd, bool plain);
TextStyle text_style(bool plain);  // of stdout, where results go

struct TableColumn {
  std::string header;  // with its unit: "TTFT p50 ms"
  bool number = true;  // right-aligned
  int importance = 0;  // the lowest is dropped first; of equals, the rightmost
};

struct TextTable {
  std::vector<TableColumn> columns;
  std::vector<std::vector<std::string>> rows;  // each as long as columns

  // Lines, each ended by a newline. The first column is never dropped. Below the table, one line names what was left
  // out.
  std::string render(const TextStyle&) const;
};

// Columns that text occupies on a terminal: two for East Asian wide characters, one for any other code point.
int text_width(std::string_view text);
// Three significant digits; "-" when absent.
std::string figure(double value);
std::string percent(double share);  // "93 %"

}  // namespace goodput
