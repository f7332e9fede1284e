// Progress of long work on stderr. On a terminal: a block of at most six lines, redrawn at most ten times a second.
// Elsewhere: one plain line every ten seconds, and every phase and note at once. Any thread may report; a lock keeps
// lines whole. The cursor is never hidden: between two redraws it stands at the start of the line below the block, so
// that whatever ends the process, kill -9 included, leaves the terminal as it should be.
#pragma once

#include <deque>
#include <mutex>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/progress.h"

namespace goodput {

class TerminalProgress final : public Progress {
 public:
  TerminalProgress();  // on stderr, drawing if that is a terminal that can move its cursor
  // Elsewhere, for tests; `clock` outlives this.
  TerminalProgress(int fd, bool terminal, int width, const Clock& clock);
  ~TerminalProgress() override;  // finishes
  TerminalProgress(const TerminalProgress&) = delete;
  TerminalProgress& operator=(const TerminalProgress&) = delete;

  void phase(int ordinal, int of, std::string_view name, std::optional<Nanos> expected) override;
  void update(double done, std::string_view now) override;
  void note(std::string_view line) override;
  // Leaves the last state on screen; reports after it are not shown. May be called twice.
  void finish();

 private:
  TerminalProgress(int fd, bool terminal, int width, const Clock* clock);  // null: the wall clock

  void draw(bool now);
  void write(std::string_view text);
  std::string block() const;
  std::string bar(double done) const;
  std::string remaining() const;
  std::string headline() const;

  const int fd_;
  const bool terminal_;
  const int width_;
  const WallClock wall_clock_;
  const Clock& clock_;
  bool finished_ = false;
  mutable std::mutex mutex_;
  int ordinal_ = 0, of_ = 0;
  std::string name_, now_;
  std::optional<Nanos> expected_;
  double done_ = 0;
  TimePoint phase_began_;
  std::optional<TimePoint> drawn_at_;
  int lines_drawn_ = 0;
  std::deque<std::string> notes_;
};

}  // namespace goodput
