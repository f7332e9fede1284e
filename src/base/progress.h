// Where long work says how far it is. `map` and `load` report; `report` draws; nobody else prints.
#pragma once

#include <optional>
#include <string_view>

#include "base/units.h"

namespace goodput {

class Progress {
 public:
  virtual ~Progress() = default;
  // A phase of a study begins: its ordinal of `of`, its name, its expected length if known.
  virtual void phase(int ordinal, int of, std::string_view name, std::optional<Nanos> expected) = 0;
  // Within the phase: share done in [0, 1] and one line of what is happening now.
  virtual void update(double done, std::string_view now) = 0;
  // A finding worth keeping on screen: one line.
  virtual void note(std::string_view line) = 0;
};

// For tests and scripts.
class NoProgress final : public Progress {
 public:
  void phase(int, int, std::string_view, std::optional<Nanos>) override {}
  void update(double, std::string_view) override {}
  void note(std::string_view) override {}
};

}  // namespace goodput
