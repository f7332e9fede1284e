#include "serve/stop_strings.h"

#include <algorithm>
#include <utility>

namespace goodput {

StopMatcher::StopMatcher(std::vector<std::string> stops) {
  for (auto& stop : stops) {
    if (stop.empty())
      continue;
    Pattern pattern{std::move(stop), {0, 0}, 0};
    for (size_t i = 1, k = 0; i < pattern.text.size(); ++i) {
      while (k > 0 && pattern.text[i] != pattern.text[k])
        k = pattern.fallback[k];
      if (pattern.text[i] == pattern.text[k])
        ++k;
      pattern.fallback.push_back(k);
    }
    patterns_.push_back(std::move(pattern));
  }
}

bool StopMatcher::feed(std::string_view text, std::string& out) {
  if (patterns_.empty()) {
    out += text;
    return false;
  }
  size_t hold = 0;
  for (const char c : text) {
    held_ += c;
    hold = 0;
    size_t complete = 0;
    for (auto& p : patterns_) {
      while (p.matched > 0 && p.text[p.matched] != c)
        p.matched = p.fallback[p.matched];
      if (p.text[p.matched] == c)
        ++p.matched;
      hold = std::max(hold, p.matched);
      if (p.matched == p.text.size())
        complete = std::max(complete, p.matched);
    }
    if (complete > 0) {
      out.append(held_, 0, held_.size() - complete);
      held_.clear();
      for (auto& p : patterns_)
        p.matched = 0;
      return true;
    }
  }
  if (text.empty())
    return false;
  out.append(held_, 0, held_.size() - hold);
  held_.erase(0, held_.size() - hold);
  return false;
}

void StopMatcher::finish(std::string& out) {
  out += held_;
  held_.clear();
  for (auto& p : patterns_)
    p.matched = 0;
}

}  // namespace goodput
