#include "report/terminal_progress.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <unistd.h>

#include "report/table.h"

namespace goodput {
namespace {

constexpr Nanos kRedraw = milliseconds(100);  // ten a second
constexpr Nanos kPlainLine = seconds(10);
constexpr int kPlainWidth = 1000;  // of a line elsewhere
constexpr size_t kNotesShown = 3;  // with phase, bar and activity: six lines

// The first `width` columns, on one line, without control characters: text from a server must not move our cursor.
std::string clipped(std::string_view text, int width) {
  std::string out;
  int used = 0;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const bool begins = (byte & 0xC0) != 0x80;
    if (begins && ++used > width)
      break;
    out += byte < 0x20 || byte == 0x7F ? ' ' : c;
  }
  return out;
}

bool can_draw_on_stderr() {
  const char* term = std::getenv("TERM");
  return ::isatty(STDERR_FILENO) && term && std::string_view(term) != "dumb";
}

}  // namespace

// (A delegating constructor must not pass a member on: the object has not begun.)
TerminalProgress::TerminalProgress()
    : TerminalProgress(STDERR_FILENO, can_draw_on_stderr(), text_style(STDERR_FILENO, false).width, nullptr) {}

TerminalProgress::TerminalProgress(int fd, bool terminal, int width, const Clock& clock)
    : TerminalProgress(fd, terminal, width, &clock) {}

TerminalProgress::TerminalProgress(int fd, bool terminal, int width, const Clock* clock)
    : fd_(fd),
      terminal_(terminal),
      width_(std::max(20, width)),
      clock_(clock != nullptr ? *clock : wall_clock_),
      phase_began_(clock_.now()) {}

TerminalProgress::~TerminalProgress() { finish(); }

void TerminalProgress::finish() {
  const std::lock_guard lock(mutex_);
  if (!std::exchange(finished_, true) && terminal_)
    draw(true);
}

void TerminalProgress::write(std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = ::write(fd_, text.data(), text.size());
    if (n < 0 && errno == EINTR)
      continue;
    if (n <= 0)
      return;  // nobody looks: not worth failing a measurement for
    text.remove_prefix(static_cast<size_t>(n));
  }
}

void TerminalProgress::phase(int ordinal, int of, std::string_view name, std::optional<Nanos> expected) {
  const std::lock_guard lock(mutex_);
  if (finished_)
    return;
  ordinal_ = ordinal, of_ = of, name_ = name, expected_ = expected;
  done_ = 0;
  now_.clear();
  phase_began_ = clock_.now();
  draw(true);
}

void TerminalProgress::update(double done, std::string_view now) {
  const std::lock_guard lock(mutex_);
  if (finished_)
    return;
  done_ = std::clamp(done, 0.0, 1.0);
  now_ = now;
  draw(false);
}

void TerminalProgress::note(std::string_view line) {
  const std::lock_guard lock(mutex_);
  if (finished_)
    return;
  if (!terminal_) {
    write(clipped(line, kPlainWidth) + "\n");
    return;
  }
  notes_.push_back(std::string(line));
  if (notes_.size() > kNotesShown)
    notes_.pop_front();
  draw(true);
}

std::string TerminalProgress::bar(double done) const {
  const int cells = std::clamp(width_ - 40, 10, 40);
  const int full = static_cast<int>(std::lround(done * cells));
  std::string out;
  for (int i = 0; i < cells; ++i)
    out += i < full ? "█" : "░";
  return out;
}

// From what was expected, or from the pace so far; nothing when neither says anything.
std::string TerminalProgress::remaining() const {
  const Nanos spent = clock_.now() - phase_began_;
  std::optional<Nanos> left;
  if (done_ >= 0.05)
    left = Nanos(static_cast<int64_t>(static_cast<double>(spent.count()) * (1 - done_) / done_));
  else if (expected_)
    left = std::max(Nanos(0), *expected_ - spent);
  return left ? fmt::format(", {:.0f} s left", to_seconds(*left)) : "";
}

std::string TerminalProgress::headline() const {
  return of_ > 0 ? fmt::format("{}/{} {}", ordinal_, of_, name_) : name_;
}

std::string TerminalProgress::block() const {
  std::string out = clipped(headline(), width_) + "\n";
  out += clipped(fmt::format("{} {:3.0f} %{}", bar(done_), done_ * 100, remaining()), width_) + "\n";
  out += clipped(now_, width_) + "\n";
  for (const std::string& note : notes_)
    out += clipped("  " + note, width_) + "\n";
  return out;
}

void TerminalProgress::draw(bool now) {
  const TimePoint at = clock_.now();
  const Nanos pause = terminal_ ? kRedraw : kPlainLine;
  if (!now && drawn_at_ && at - *drawn_at_ < pause)
    return;
  drawn_at_ = at;
  if (!terminal_) {
    write(
        clipped(fmt::format("{}: {:.0f} %{}{}{}", headline(), done_ * 100, remaining(), now_.empty() ? "" : ", ", now_),
                kPlainWidth) +
        "\n");
    return;
  }
  // Up to the first line of the block, erase from there, draw: one write, so that nothing flickers.
  std::string text = lines_drawn_ > 0 ? fmt::format("\x1b[{}A\r\x1b[J", lines_drawn_) : std::string();
  const std::string lines = block();
  lines_drawn_ = static_cast<int>(std::ranges::count(lines, '\n'));
  write(text + lines);
}

}  // namespace goodput
