#include <array>

#include "cli/verb.h"

namespace goodput {

extern const Verb kMapVerb;

std::span<const Verb> verbs() {
  static const std::array kVerbs{kMapVerb};
  return kVerbs;
}

}  // namespace goodput
