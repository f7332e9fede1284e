// Stop strings end a text, are never part of it, and may lie across any number of tokens. So text that could still
// become a stop string is held back until it is one or cannot be one. Knuth, Morris, Pratt (1977) per string: its state
// is exactly the number of bytes to hold back, and the result does not depend on how the text was cut. One thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace goodput {

class StopMatcher {
 public:
  // Empty strings never match.
  explicit StopMatcher(std::vector<std::string> stops = {});

  // Appends to `out` what certainly belongs to the text. True: a stop string is complete; the text ends before it and
  // the rest is dropped. Among strings that complete at the same byte the longest counts.
  bool feed(std::string_view text, std::string& out);
  // The text is over: what was held back belongs to it.
  void finish(std::string& out);

 private:
  struct Pattern {
    std::string text;
    std::vector<size_t> fallback;  // per matched length, the longest shorter one that is matched too
    size_t matched = 0;
  };
  std::vector<Pattern> patterns_;
  std::string held_;
};

}  // namespace goodput
